"""Scripts in the style of DALI's examples: they import ``nvidia.dali``, and run on it or by ``torchdali run``.

Each is called with a folder of data, which `tests.parity.test_scripts` writes, and a file for its results, arrays by name.
"""
