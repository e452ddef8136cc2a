"""Replicas of a pipeline: processes that compute whole batches.

The main process chooses the records of each batch, calls the sources and keeps the batches in order, as it does without
worker processes. Therefore checkpoints don't depend on replicas. The result of a batch depends only on its records, its
random keys and the sources' data, so any replica can compute any batch. A replica runs the first stages (groups of
operators) of the pipeline, and returns the batch in shared memory. If a replica dies, another replica computes its
batches. If a stage uses a device or has side effects, this stage and all later stages run in the main process.

- `placing` chooses the number of replicas and their stages.
- `server` is a process that forks the replicas, and `starting` requests replicas from the server. `served` represents
  the forked processes.
- `messages` defines the messages between the processes, and `blocks` the shared memory.
- `replica` is the program of a replica, `channel` is the replica's end of the connection, and `sent_plan` is the
  message with the plan.
- `pool` distributes jobs and watches the processes, including the processes of parallel sources
  (`execute/process_pool.py`). `worker` represents one process. `batches` connects the executor with the pool.
- `actors` starts replicas as Ray actors.
"""
