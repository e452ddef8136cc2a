"""Declarations of operators: all data about an operator, independent of its calls.

==================  ==========================================================================
`schema`            the inputs, arguments and outputs, read from a function's signature
`batching`          the interface of batched implementations, and columns of arguments
`narrowing`         edits of an image's program before the image is decoded
`registry`          an `Operator` combines schema, options and implementations; the registry
                    finds operators by name
`descriptions`      the docstring's text for each argument
==================  ==========================================================================

`torchdali.calls` creates the operators' functions and runs their calls.
"""
