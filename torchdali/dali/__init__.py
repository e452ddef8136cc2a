"""The corner that is read last: names and modes that are there for programs written for DALI.

The rest of the package does not import it, except through the doors that `tests/test_layers.py` lists. The dynamic mode
and the transforms of `torchdali.experimental` belong to this corner, too.
"""
