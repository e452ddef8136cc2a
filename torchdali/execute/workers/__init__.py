"""Replicas of a pipeline: processes that make whole batches.

The user's process draws the samples, calls the sources and keeps the order, as without worker processes. So states and
checkpoints stay there, and are the same. The stages' results for a batch are a pure function of its records, its random
keys and the sources' data. So a batch goes to any replica, which runs the stages as a pipeline without processes does,
and returns the batch in shared memory; and a batch whose replica died goes to another one. Stages that cannot run there
(on a device, with side effects), and those after them, run in the process of the user.

- `placing` decides how many replicas there are, and which stages run there; `starting` starts them, by a `server` that
  has a spare; `served` is a process that a server forked.
- `messages` are the data in the pipe, `blocks` the shared memory.
- `replica` is a replica, `channel` its end of the connection; `sent_plan` is how a plan gets there.
- `pool` deals out jobs and watches the processes, each a `worker`, also those of parallel sources
  (`execute/process_pool.py`); `batches` is between executor and pool.
- `actors` are replicas that Ray places.
"""
