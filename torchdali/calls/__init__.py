"""Functions of operators, and the execution of a call.

================  ============================================================================
`decorators`      ``@operator``, ``@reader`` and ``@source`` create the function that users
                  call; ``@chunk`` adds batched implementations
`dispatch`        checks a call, then records it in a graph or runs it immediately
`preparing`       binds an operator to its constants and layouts
`layouts`         checks layouts, and assumes a layout if an input has none
`running`         evaluates an operator over a batch; this defines the operator's results
`results`         checks results, and collects them into batches
`chunk_function`  evaluates a prepared operator on several samples: with a batched
                  implementation, or one by one
`namespaces`      creates the modules with the operators' functions: `fn` and `ops`
================  ============================================================================
"""
