"""The operator `numba_function`, which calls a Python function that Numba compiles."""

from __future__ import annotations

from typing import Any

from torchdali.plugin.numba.experimental import NumbaFunction

__all__ = ["numba_function"]


def numba_function(
    input_0: Any,
    /,
    *inputs: Any,
    device: str | None = None,
    name: str | None = None,
    batch_processing: bool = False,
    blocks: Any = None,
    bytes_per_sample_hint: Any = None,
    in_types: Any,
    ins_ndim: Any,
    out_types: Any,
    outs_ndim: Any,
    preserve: bool = False,
    run_fn: Any,
    setup_fn: Any = None,
    threads_per_block: Any = None,
) -> Any:
    """Call a function that Numba compiles. `torchdali.plugin.numba.experimental.NumbaFunction` lists the arguments."""
    function = NumbaFunction(
        run_fn, out_types, in_types, outs_ndim, ins_ndim, setup_fn, device or "cpu",
        batch_processing, blocks, threads_per_block, name=name, preserve=preserve,
    )  # fmt: skip
    return function(input_0, *inputs)
