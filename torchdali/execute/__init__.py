"""The engine that runs plans: threads, processes, buffers and batches in flight.

All objects that exist longer than a call belong to this package.
"""
