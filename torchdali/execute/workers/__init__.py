"""Replicas of a pipeline: processes that compute whole batches.

The main process draws the samples, calls the sources and keeps the batches in order, as it does without worker
processes. Therefore states and checkpoints don't depend on replicas. The result of a batch depends only on its records,
its random keys and the sources' data, so any replica can compute any batch. A replica runs the same stages as a
pipeline without processes, and returns the batch in shared memory. If a replica dies, another replica computes its
batches. Some stages can't run in a replica, because they use a device or have side effects. These stages, and all
stages after them, run in the main process.

- `placing` chooses the number of replicas and their stages.
- `starting` starts replicas: it requests them from a `server`, a process that forks them and has a spare process.
  `served` describes processes that a server forked.
- `messages` defines the messages between the processes, and `blocks` the shared memory.
- `replica` runs in a replica, `channel` is the replica's end of the connection, and `sent_plan` transfers a plan.
- `pool` distributes jobs and watches the processes, including the processes of parallel sources
  (`execute/process_pool.py`). A `worker` represents a process. `batches` connects the executor with the pool.
- `actors` starts replicas as Ray actors.
"""
