"""The data that a pipeline reads, and its order.

================  ======================================================================
`datasets`        interface of readers' datasets, and arguments that all readers accept
`cursor`          order of an epoch, shards, and the position of a reader
`sources`         interface of sources of batches that are not readers
`user_random`     seeds for random numbers that the user's own code draws
================  ======================================================================

`torchdali.formats` converts bytes to records.
"""
