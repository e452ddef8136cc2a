"""Declarations of operators: the facts about an operator before anybody calls it.

==================  ==========================================================================
`schema`            the signature of its implementation: inputs, arguments, outputs
`batching`          bodies for several samples in one call, and columns of arguments
`registry`          an `Operator` is schema, options and bodies together; all of them by name
`descriptions`      the docstring's text for each argument
==================  ==========================================================================

`torchdali.calls` builds its function and runs its calls.
"""
