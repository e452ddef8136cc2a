"""Short name of `torchdali.experimental.dynamic`."""

import sys

from torchdali.experimental import dynamic

sys.modules[__name__] = dynamic
