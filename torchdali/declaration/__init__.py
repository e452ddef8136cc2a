"""Declarations of operators: what is known of one before anybody calls it.

==================  ==========================================================================
`schema`            what the signature of its body says: inputs, arguments, outputs
`batching`          bodies for several samples in one call, and columns of arguments
`registry`          an `Operator` is schema, options and bodies together; all of them by name
`descriptions`      what its docstring says of each argument
==================  ==========================================================================

`torchdali.calls` makes its function, and does what a call of it asks for.
"""
