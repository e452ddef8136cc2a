"""The data that a pipeline reads, and its order.

================  =================================================================
`datasets`        datasets of readers, and the arguments that all readers take
`cursor`          the order of an epoch, shards, and the place in them
`sources`         sources of batches that are not readers
`user_random`     random numbers of the user's own code while it is read
================  =================================================================

`torchdali.formats` converts bytes to records.
"""
