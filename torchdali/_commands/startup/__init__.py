"""On the ``PYTHONPATH`` of programs under ``torchdali run``, so that child processes have the alias as well."""
