"""Parsers of sample containers: one file per format, without dependencies on operators.

`storage` opens the underlying bytes. A parser takes a `storage.ByteStorage`, or a buffer, and returns the records'
positions and contents; it copies data only if it must.
"""
