"""Capture: the calls of a loop's body are recorded once and then run ahead.

`next_epoch(capture=True)` of a reader and `ExternalSource.captured` create captured loops.
"""

from torchdali.experimental.dynamic.capture._invariant import invariant

__all__ = ["invariant"]
