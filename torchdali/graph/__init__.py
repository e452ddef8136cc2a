"""The graph of a pipeline, from the function that defines it to the plan that the executor runs.

==================  ============================================================================
`nodes`             `Node`, `DataNode` and `Graph`, and the `Tracer` that collects nodes
`constants`         numbers and arrays as constants in arithmetic, and as nodes
`conditionals`      support for ``if`` on a node, by rewriting the pipeline function
`rewrite`           replaces operators by one operator that does the same work faster
`plan`              divides the graph into stages: steps over a batch, chains for each sample
`serialization`     converts the graph to JSON and back, and to a drawing
==================  ============================================================================
"""
