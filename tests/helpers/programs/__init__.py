"""Small programs in the style of published ones, which drive pipelines and iterators by DALI's inner names."""

from __future__ import annotations

from tests.helpers.programs import iterators, pipelines  # noqa: F401  they fill the table
from tests.helpers.programs._table import PROGRAMS, files, results

__all__ = ["PROGRAMS", "files", "results"]
