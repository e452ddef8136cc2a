"""Scripts in the manner of DALI's examples: they import ``nvidia.dali``, and run on it or by ``torchdali run``.

Each is called with a folder of data (`tests.parity.test_scripts` makes it) and a file for its results, arrays by name.
"""
