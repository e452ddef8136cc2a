"""Batch kernels for accelerators, compiled for GPUs that need not be present."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.helpers.own_process import in_own_process
from torchdali.kernels.device.resize import COLUMNS

REGISTERS = 128  # per thread: four blocks of 128 threads on a multiprocessor


def compiled(capability: int) -> dict[str, dict[str, int]]:
    """Compile the kernels for a GPU that need not be present; return registers, spills and shared memory of each."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from torchdali.kernels.device.triton_kernels import geometry, resizing

    tools = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
    sources = {
        "rows": (resizing.rows_kernel, "*u8 *i64 *fp32 *fp32", {"channels": 3, "fields": len(COLUMNS), "block": resizing.BLOCK}),
        "columns": (
            resizing.columns_kernel, "*fp32 *i64 *fp32 *u8",
            {"channels": 3, "fields": len(COLUMNS), "as_float": False, "block": resizing.BLOCK},
        ),
        "normalize": (
            resizing.normalize_kernel, "*u8 *i64 *i32 *fp32 *fp32 i32 i32",
            {"channels": 3, "channel_first": True, "has_flags": True, "mirror": False, "block": resizing.BLOCK},
        ),
        "rows of floats": (resizing.rows_kernel, "*fp32 *i64 *fp32 *fp32", {"channels": 3, "fields": len(COLUMNS), "block": resizing.BLOCK}),
        "finished columns": (
            resizing.finished_columns_kernel, "*fp32 *i64 *fp32 *i32 *fp32 *fp32 i32 i32",
            {"channels": 3, "fields": len(COLUMNS), "channel_first": True, "has_flags": True, "mirror": False, "block": resizing.BLOCK},
        ),
    }
    warping = {"channels": 3, "fields": 18, "projective": False, "mode": 1, "border": 4, "as_bytes": True, "block": resizing.BLOCK}
    sources["warp"] = geometry.warp_kernel, "*u8 *i64 *u8", warping
    sources["warp floats"] = geometry.warp_kernel, "*fp32 *i64 *fp32", {**warping, "as_bytes": False}
    sources["nearest"] = geometry.warp_kernel, "*u8 *i64 *u8", {**warping, "mode": 0, "border": 2}
    for mode, border in ((0, 4), (1, 4), (2, 0), (2, 4)):
        sources[f"perspective {mode} {border}"] = geometry.warp_kernel, "*u8 *i64 *u8", {**warping, "projective": True, "mode": mode, "border": border}
    sources["windows"] = geometry.windows_kernel, "*u8 *i64 *u8 fp32", {"channels": 3, "fields": 8, "block": resizing.BLOCK}
    found = {}
    for name, (kernel, types, constants) in sources.items():
        names = kernel.arg_names
        signature = dict(zip(names, types.split(), strict=False)) | dict.fromkeys(constants, "constexpr")
        made = triton.compile(
            ASTSource(kernel, signature, constexprs=constants), target=GPUTarget("cuda", capability, 32)
        )
        cubin = Path(os.environ["KERNELS"]) / f"{name}{capability}.cubin"
        cubin.write_bytes(made.asm["cubin"])
        said = subprocess.run([tools / "cuobjdump", "--dump-resource-usage", cubin], capture_output=True, text=True).stdout
        numbers = dict(re.findall(r"(REG|STACK|LOCAL|SHARED):(\d+)", said))
        found[name] = {key: int(number) for key, number in numbers.items()}
    return found


@pytest.mark.slow
@pytest.mark.parametrize("capability", [80, 90, 100])
def test_kernels_compile_without_spills(capability: int, tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="comes with torch for CUDA")
    found = in_own_process(__name__, f"compiled({capability})", KERNELS=str(tmp_path), TRITON_CACHE_DIR=str(tmp_path))
    assert set(found) == {"rows", "rows of floats", "columns", "finished columns", "normalize", "warp", "warp floats", "nearest", "perspective 0 4", "perspective 1 4", "perspective 2 0", "perspective 2 4", "windows"}
    for name, used in found.items():
        assert used["STACK"] == used["LOCAL"] == 0 and used["REG"] <= REGISTERS, f"{name}: {used}"
