"""DALI's module ``backend``: memory settings, library versions, and operator schemas."""

from torchdali.dali.backend import *  # noqa: F403
from torchdali.dali.backend import __all__ as __all__
from torchdali.dali.backend import __cuda_version__ as __cuda_version__
