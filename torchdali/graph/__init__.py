"""The graph of a pipeline, from the function that defines it to the plan that the executor runs.

==================  ============================================================================
`nodes`             `Node`, `DataNode` and `Graph`, and the `Tracer` that collects them
`constants`         constants in arithmetic, and as nodes
`conditionals`      ``if`` on a node, by rewriting the pipeline function
`rewrite`           operators that are faster together, replaced by one
`plan`              the graph in stages: steps over a batch, chains for each sample
`serialization`     the graph as JSON and back, and as a drawing
==================  ============================================================================
"""
