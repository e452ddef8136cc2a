"""Kernels for batches on an accelerator, compiled for GPUs that need not be there."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.helpers.own_process import in_own_process
from torchdali.kernels.device.reduce import KINDS
from torchdali.kernels.device.resize import COLUMNS
from torchdali.kernels.device.warp import KINDS as WARP_KINDS

REGISTERS = 128  # of a thread: four blocks of 128 threads on a processor


def compiled(capability: int) -> dict[str, dict[str, int]]:
    """Compile the kernels for a GPU that need not be there; registers, spills and shared memory of each."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from torchdali.kernels.device.triton_kernels import (
        filtering,
        geometry,
        jpeg,
        noise,
        resizing,
        tiles,
        values,
    )
    from torchdali.kernels.device.triton_kernels._common import BLOCK as block

    tools = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
    sources = {
        "rows": (resizing.rows_kernel, "*u8 *i64 *fp32 *fp32", {"channels": 3, "fields": len(COLUMNS), "block": block}),
        "columns": (
            resizing.columns_kernel, "*fp32 *i64 *fp32 *u8",
            {"channels": 3, "fields": len(COLUMNS), "as_float": False, "block": block},
        ),
        "normalize": (
            resizing.normalize_kernel, "*u8 *i64 *i32 *fp32 *fp32 i32 i32",
            {"channels": 3, "channel_first": True, "has_flags": True, "mirror": False, "block": block},
        ),
        "rows of floats": (resizing.rows_kernel, "*fp32 *i64 *fp32 *fp32", {"channels": 3, "fields": len(COLUMNS), "block": block}),
        "finished columns": (
            resizing.finished_columns_kernel, "*fp32 *i64 *fp32 *i32 *fp32 *fp32 i32 i32",
            {"channels": 3, "fields": len(COLUMNS), "channel_first": True, "has_flags": True, "mirror": False, "block": block},
        ),
    }
    warping = {"channels": 3, "fields": 18, "kind": 0, "mode": 1, "border": 4, "as_bytes": True, "block": block}
    sources["warp"] = geometry.warp_kernel, "*u8 *i64 *i64 *u8 i32", warping
    sources["warp floats"] = geometry.warp_kernel, "*fp32 *i64 *i64 *fp32 i32", {**warping, "as_bytes": False}
    sources["nearest"] = geometry.warp_kernel, "*u8 *i64 *i64 *u8 i32", {**warping, "mode": 0, "border": 2}
    for mode, border in ((0, 4), (1, 4), (2, 0), (2, 4)):
        sources[f"perspective {mode} {border}"] = geometry.warp_kernel, "*u8 *i64 *i64 *u8 i32", {**warping, "kind": 1, "mode": mode, "border": border}
    for kind, extra in (("waves", "fp32"), ("sphere", "i64"), ("moves", "i8")):
        sources[kind] = geometry.warp_kernel, f"*u8 *i64 *{extra} *u8 i32", {**warping, "kind": WARP_KINDS.index(kind)}
    for name, types, last in (("first pass", "*u8 *i64 *fp32", False), ("second pass", "*fp32 *i64 *u8", True)):
        sources[name] = filtering.filter_kernel, types, {"channels": 3, "fields": 8, "last": last, "as_bytes": last, "block": block}
    correlating = "*u8 *i64 *fp32 *u8 i32 i32 i32 i32", {"channels": 3, "fields": 4, "border": 0, "as_bytes": True, "block": block}
    sources["correlate"] = filtering.correlate_kernel, *correlating
    sources["correlate with a constant"] = filtering.correlate_kernel, correlating[0], {**correlating[1], "border": 4}
    sources["correlate floats"] = filtering.correlate_kernel, "*fp32 *i64 *fp32 *fp32 i32 i32 i32 i32", {**correlating[1], "as_bytes": False}
    sources["erase"] = geometry.erase_kernel, "*u8 *i64 *u8", {"channels": 3, "fields": 7, "block": block}
    sources["compose"] = geometry.compose_kernel, "*u8 *i64 *i64 *u8 i32", {"fields": 5, "block": block}
    sources["take"] = geometry.take_kernel, "*u8 *i64 *u8", {"channels": 3, "fields": 6, "block": block}
    sources["grid"] = values.grid_kernel, "*u8 *i64 *u8", {"fields": 10, "block": block}
    sources["median"] = filtering.median_kernel, "*u8 *i64 *u8", {"channels": 3, "fields": 6, "block": block}
    tiling = {"channels": 1, "fields": 5, "block": block}
    sources["counts of tiles"] = tiles.count_tiles_kernel, "*u8 *i64 *i32 i32 i32", tiling
    sources["tiles"] = tiles.map_tiles_kernel, "*u8 *i64 *fp32 *u8 i32 i32", tiling
    for chroma, name in enumerate(("luma", "chroma")):
        constants = {"fields": 8, "chroma": bool(chroma), "count": jpeg.BLOCKS}
        sources[name] = jpeg.blocks_kernel, "*u8 *i64 *i32 *u8", constants
    sources["rgb"] = jpeg.rgb_kernel, "*u8 *i64 *u8", {"fields": 8, "block": block}
    sources["turn"] = geometry.turn_kernel, "*fp32 *i64 *fp32", {"fields": 4, "block": block}
    sources["windows"] = geometry.windows_kernel, "*u8 *i64 *u8 fp32", {"channels": 3, "fields": 9, "block": block}
    sources["colors"] = (values.colors_kernel, "*u8 *i64 *u8", {"fields": 15, "block": block})
    sources["counts"] = values.counts_kernel, "*u8 *i64 *i32", {"channels": 3, "fields": 3, "pieces": values.PIECES, "block": block}
    sources["values"] = values.values_kernel, "*u8 *i64 *u8 *u8", {"channels": 3, "fields": 3, "block": block}
    sources["normal"] = noise.normal_kernel, "*u8 *i64 *u8", {"fields": 9, "block": block}
    for kind, name in enumerate(KINDS):
        constants = {"fields": 3, "kind": kind, "has_means": name == "squares", "block": 2 * block}
        sources[f"reduce {name}"] = values.reduce_kernel, "*fp32 *i64 *fp32 *fp32 i32 i32 i32", constants
    sources["reduce bytes"] = values.reduce_kernel, "*u8" + sources["reduce sum"][1][5:], sources["reduce sum"][2]
    sources["standardize"] = values.standardize_kernel, "*u8 *i64 *fp32 *fp32 *fp32 fp32 i32", {"fields": 5, "block": block}
    sources["spots"] = noise.spots_kernel, "*u8 *i64 *u8", {"step": 3, "fields": 9, "block": block}
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
    assert set(found) == {"rows", "rows of floats", "columns", "finished columns", "normalize", "colors", "warp", "nearest", "perspective 0 4", "perspective 1 4", "perspective 2 0", "perspective 2 4", "warp floats", "waves", "sphere", "moves", "first pass", "second pass", "correlate", "correlate with a constant", "correlate floats", "erase", "windows", "counts", "values", "normal", "spots", "compose", "take", "turn", "grid", "median", "luma", "chroma", "rgb", "counts of tiles", "tiles", "standardize", "reduce bytes", *[f"reduce {kind}" for kind in KINDS]}
    for name, used in found.items():
        assert used["STACK"] == used["LOCAL"] == 0 and used["REG"] <= REGISTERS, f"{name}: {used}"
