"""A folder that ``torchdali run`` adds to ``PYTHONPATH``, so that child processes also use torchdali."""
