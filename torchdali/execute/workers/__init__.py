"""Replicas of a pipeline: processes that compute whole batches.

The main process draws the samples, calls the sources and keeps the batches in order, as it does without worker
processes. Therefore states and checkpoints don't depend on replicas. The result of a batch depends only on its records,
its random keys and the sources' data, so any replica can compute any batch. A replica runs the same stages (groups of
operators) as a pipeline without processes, and returns the batch in shared memory. If a replica dies, another one
computes its batches. A stage that uses a device or has side effects can't run in a replica. This stage and all later
stages run in the main process.

- `placing` chooses the number of replicas and their stages.
- `starting` starts replicas: it requests them from a `server`, a process that forks them. `served` represents the
  forked processes.
- `messages` defines the messages between the processes, and `blocks` the shared memory.
- `replica` runs in a replica, `channel` is the replica's end of the connection, and `sent_plan` transfers a plan.
- `pool` distributes jobs and watches the processes, also the processes of parallel sources (`execute/process_pool.py`).
  `worker` represents one of these processes. `batches` connects the executor with the pool.
- `actors` starts replicas as Ray actors.
"""
