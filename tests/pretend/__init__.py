"""A mock accelerator: tensors that report ``cuda:N`` and are on the CPU, for machines without a GPU.

`accelerator` installs it for a ``with`` block. It rejects operations that CUDA rejects (tensors of two devices in one
operation, ``.numpy()`` of a device tensor), counts the costs of a GPU by source line (launches,
copies, waits of the host), and reports races of a GPU (`Report.races`), even if the operations ran in the correct
order here: a vector clock per stream records which operations are known to be done.
"""

from tests.pretend.device import Accelerator, accelerator, inner
from tests.pretend.report import Report
from tests.pretend.tensor import PretendTensor

__all__ = ["Accelerator", "PretendTensor", "Report", "accelerator", "inner"]
