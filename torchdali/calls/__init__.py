"""Functions of operators, and what a call of one does.

================  ============================================================================
`decorators`      ``@operator``, ``@reader``, ``@source``: make the function, and further bodies
`dispatch`        checks a call, and records it in a graph or runs it at once
`running`         evaluates an operator over a batch; the reference for what an operator means
`chunk_function`  evaluates it on several samples in one call: by a body for them, or one by one
`namespaces`      modules in which the functions are found: `fn` and `ops`
================  ============================================================================
"""
