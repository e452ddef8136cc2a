"""Run plans: threads, buffers, batches in flight. The only lasting state of torchdali is here."""
