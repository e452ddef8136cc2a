"""Declarations of operators: all data about an operator, independent of its calls.

==================  ==========================================================================
`schema`            the signature of its implementation: inputs, arguments, outputs
`batching`          bodies for several samples in one call, and columns of arguments
`registry`          an `Operator` is schema, options and bodies together; all of them by name
`descriptions`      the docstring's text for each argument
==================  ==========================================================================

`torchdali.calls` builds its function and runs its calls.
"""
