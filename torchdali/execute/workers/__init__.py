"""Replicas of a pipeline: processes that compute whole batches.

The main process draws the samples, calls the sources and maintains the order, as without worker processes. So states
and checkpoints are stored there, and are the same. The stages' results for a batch are a pure function of its records,
its random keys and the sources' data. So any replica can compute a batch. It runs the same stages as a pipeline without
processes, and returns the batch in shared memory. If a replica dies, another replica computes its batches. Stages that
can't run in a replica (on a device, with side effects), and all stages after them, run in the main process.

- `placing` chooses the number of replicas and their stages.
- `starting` starts replicas with the help of a `server`, which has a spare. `served` describes the processes that a
  server forked.
- `messages` defines the messages in the pipe, and `blocks` the shared memory.
- `replica` runs in a replica, `channel` is the replica's end of the connection, and `sent_plan` transfers a plan.
- `pool` distributes jobs and watches the processes, including the processes of parallel sources
  (`execute/process_pool.py`). A `worker` represents a process. `batches` connects executor and pool.
- `actors` starts replicas as Ray actors.
"""
