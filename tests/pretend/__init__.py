"""A pretended accelerator: tensors that say ``cuda:N`` and lie on the CPU, on machines without one.

`accelerator` installs it for a ``with`` block. What CUDA would refuse is refused (tensors of two devices in one
operation, ``.numpy()`` of a device tensor), what costs time on a GPU is counted by the line that causes it (launches,
copies, waits of the host), and what would be a race there is reported (`Report.races`), whatever order the work is
done in here: a vector clock for each stream says what is known to be done.
"""

from tests.pretend.device import Accelerator, accelerator, inner
from tests.pretend.report import Report
from tests.pretend.tensor import PretendTensor

__all__ = ["Accelerator", "PretendTensor", "Report", "accelerator", "inner"]
