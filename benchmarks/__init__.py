"""Benchmarks of torchdali beside the real DALI and ``torch.utils.data.DataLoader``.

``python -m benchmarks.imagenet DIR`` compares rates, CPU time and memory; ``benchmarks.operators``
compares the operators one by one and writes ``benchmarks/speed.md``; ``benchmarks.memory`` looks for growth;
``benchmarks.overhead`` for the framework's own Python cost. What was tried and
did not help is in ``NOTES.md``.
"""
