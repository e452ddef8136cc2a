"""Pipelines on other machines, by Ray (extra `ray`): as a stage of Ray Data, or whole on actors.

`RayStage` makes a pipeline whose inputs are fed a function of batches for ``ray.data.Dataset.map_batches``.
`RayPipeline` is a pipeline whose batches actors make: give it to an iterator, or use `RayLoader`. Its actors are the
replicas of ``num_processes`` on other machines: Ray places them, and the batches come over a connection of their own.
"""

from torchdali.errors import MissingExtraError

try:
    import ray as _ray  # noqa: F401
except ImportError:
    raise MissingExtraError("ray", "ray", "torchdali.plugin.ray") from None

from torchdali.plugin.ray._loader import RayLoader, RayPipeline
from torchdali.plugin.ray._stage import RayStage

__all__ = ["RayLoader", "RayPipeline", "RayStage"]
