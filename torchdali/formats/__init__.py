"""Containers of samples, parsed from bytes: one file a format, none of which knows an operator.

`storage` opens what holds the bytes. A parser takes a `storage.Storage`, or a buffer, and says where the
records are and what they hold; the data themselves it copies only if it must.
"""
