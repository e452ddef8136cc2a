"""Small programs in the style of published ones, which use DALI's internal names of pipelines and iterators."""

from __future__ import annotations

from tests.helpers.programs import iterators, pipelines  # noqa: F401  they fill the table
from tests.helpers.programs._table import PROGRAMS, files, results

__all__ = ["PROGRAMS", "files", "results"]
