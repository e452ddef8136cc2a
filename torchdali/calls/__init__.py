"""Functions of operators, and the execution of a call.

================  ============================================================================
`decorators`      ``@operator``, ``@reader``, ``@source``: make the function, and further bodies
`dispatch`        checks a call, and records it in a graph or runs it at once
`preparing`       binds an operator to its constants and layouts
`layouts`         checks layouts, and assumes those that are unset
`running`         evaluates an operator over a batch: the reference for its results
`results`         checks results, and collects them into batches
`chunk_function`  evaluates it on several samples in one call: by a body for them, or one by one
`namespaces`      modules in which the functions are found: `fn` and `ops`
================  ============================================================================
"""
