"""Detect that a launcher like Slurm or MPI has started several processes, but `torch.distributed` isn't initialized."""

from __future__ import annotations

import os

import torch

from torchdali.errors import warn

__all__ = ["warn_of_unknown_ranks"]

_LAUNCHED = {
    "SLURM_NTASKS": "srun",
    "OMPI_COMM_WORLD_SIZE": "mpirun",
    "PMI_SIZE": "mpiexec",
    "MV2_COMM_WORLD_SIZE": "mpirun",
    "HOROVOD_SIZE": "horovodrun",
}
_warned: set[int] = set()  # ids of the processes that have warned


def warn_of_unknown_ranks() -> None:
    """Warn once per process if several processes were launched, but the samples are not divided among them."""
    has_process_group = torch.distributed.is_available() and torch.distributed.is_initialized()
    if has_process_group or "WORLD_SIZE" in os.environ or os.getpid() in _warned:
        return
    for name, launcher in _LAUNCHED.items():
        count = _read_count(name)
        if count > 1:
            _warned.add(os.getpid())
            warn(
                f"{launcher} has started {count} processes ({name}={count}), and each of them reads all samples, "
                f"because there is no process group. Call torch.distributed.init_process_group before the first "
                f"batch, or pass shard_id= and num_shards= to the reader. If every process must read all samples, "
                f"pass Loader(..., distributed=False)"
            )
            return


def _read_count(name: str) -> int:
    """Return the number of processes that a launcher's environment variable contains; 0 if it isn't set.

    For Slurm, return the number of tasks in the current step.
    """
    text = os.environ.get("SLURM_STEP_NUM_TASKS", "") if name == "SLURM_NTASKS" else ""
    text = text or os.environ.get(name, "")
    return int(text) if text.isdecimal() else 0
