"""Parsers of container formats: one file per format, without dependencies on operators.

`storage` opens files and objects. A parser receives a `storage.ByteStorage` or a buffer, and returns the positions and
contents of the records. It copies data only if necessary.
"""
