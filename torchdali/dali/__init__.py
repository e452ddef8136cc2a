"""Names and modes that exist only for programs that were written for DALI.

Only the modules that `tests/test_layers.py` lists may import this package. The dynamic mode and the transforms of
`torchdali.experimental` also exist only for programs that were written for DALI, but they are not in this package.
"""
