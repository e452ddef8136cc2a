"""Type stubs of operators, derived from the declarations: ``python -m torchdali.stubs`` writes them, as a build does.

Editors complete operators and arguments from these files, and type checkers check calls. `operators` writes stubs of
`fn` and `ops`, `dynamic` the dynamic mode's; `placeholders` lets a build make them without PyTorch.
"""
