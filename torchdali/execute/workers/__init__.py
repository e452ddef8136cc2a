"""Worker processes inside a pipeline: they run parts of the chains of its batches.

The process of the user draws the samples, runs the steps and keeps the order, as it does alone; so sources, states
and checkpoints stay there, and cannot differ. What a chain does for a sample is a pure function of the record, the
random key and what the steps computed for it. So a *part* of a batch, some samples of a chain, goes to any worker,
which writes into the batch's shared memory; and a part whose worker died goes to another one.

- `placing` decides which chains can go, and how many processes there are; `starting` starts them, by way of a `server`.
- `messages` are what goes over the pipe, `blocks` the shared memory.
- `worker` is a worker; `pool` deals out parts and watches the workers; `chains` is between the stages and the pool.
"""
