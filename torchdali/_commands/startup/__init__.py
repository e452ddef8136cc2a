"""A folder that ``torchdali run`` adds to ``PYTHONPATH``, so that its replacements apply to child processes, too."""
