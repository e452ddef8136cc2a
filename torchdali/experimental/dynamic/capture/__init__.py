"""Captured loops: the body's calls are recorded once, and then computed before later iterations need them.

A reader's `next_epoch(capture=True)` and `ExternalSource.captured` create captured loops.
"""

from torchdali.experimental.dynamic.capture._invariant import invariant

__all__ = ["invariant"]
