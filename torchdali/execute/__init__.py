"""The code that runs pipelines: threads, worker processes, memory for batches, and batches in flight."""
