"""Type stubs of operators, generated from the operators' declarations.

``python -m torchdali.stubs`` writes the stubs, and so does a build of the package. Editors complete operators and
arguments from the stubs, and type checkers check calls. `operators` writes the stubs of `fn` and `ops`; `dynamic`
writes the stubs of the dynamic mode. `placeholders` lets a build write stubs without PyTorch.
"""
