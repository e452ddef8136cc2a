"""On the ``PYTHONPATH`` of what ``torchdali run`` starts, so that its child processes have the alias as well."""
