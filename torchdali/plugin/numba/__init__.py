"""Functions that Numba compiles, as operators (extra package ``numba``)."""
