"""Pipelines on other machines, by Ray (extra `ray`): as a stage of Ray Data, or whole on actors.

`RayStage` makes a pipeline whose inputs are fed a function of batches for ``ray.data.Dataset.map_batches``.
`RayPipeline` stands for a pipeline with readers that actors run: give it to an iterator, or use `RayLoader`.

A batch of a pipeline with readers depends on its number and the seed alone. So any actor can make any batch: the
loader hands out numbers, and where an actor is lost, it hands out that actor's numbers again.
"""

from torchdali.errors import MissingExtraError

try:
    import ray as _ray  # noqa: F401
except ImportError:
    raise MissingExtraError("ray", "ray", "torchdali.plugin.ray") from None

from torchdali.plugin.ray._loader import RayLoader, RayPipeline
from torchdali.plugin.ray._stage import RayStage

__all__ = ["RayLoader", "RayPipeline", "RayStage"]
