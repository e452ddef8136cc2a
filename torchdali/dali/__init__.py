"""Names and modes that exist only for programs written for DALI.

The rest of the package does not import this package, except where `tests/test_layers.py` allows it. The dynamic mode
and the transforms of `torchdali.experimental` also exist only for these programs.
"""
