"""Run pipelines on other machines with Ray (needs the extra ``ray``).

`RayStage` turns a pipeline into a function for ``ray.data.Dataset.map_batches``, so that the pipeline is a stage of Ray
Data. The batches of Ray Data are fed to the pipeline's inputs.

`RayPipeline` is a pipeline whose batches are computed by Ray actors, each of which runs a copy of the pipeline on one
of the cluster's machines. The actors send the batches over their own connections to the main process. Pass a
`RayPipeline` to an iterator, or use `RayLoader`.
"""

from torchdali.errors import MissingExtraError

try:
    import ray as _ray  # noqa: F401
except ImportError:
    raise MissingExtraError("ray", "ray", "torchdali.plugin.ray") from None

from torchdali.plugin.ray._loader import RayLoader, RayPipeline
from torchdali.plugin.ray._stage import RayStage

__all__ = ["RayLoader", "RayPipeline", "RayStage"]
