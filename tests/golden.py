"""Results of the real DALI, stored in ``tests/answers``: tests compare with DALI without an installation of it.

A helper that runs something on the real DALI gets the result from `answer`. `make golden` writes the results of
the tests that are marked ``golden``. TORCHDALI_LIVE_DALI selects another mode than reading them:

- ``compare`` runs the real DALI, and fails if its result differs from the stored one;
- ``write`` runs it, and stores its results.

Tests that are marked ``parity`` always run it, and store nothing: they read files, run programs, or have large results.
"""

from __future__ import annotations

import copy
import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import pytest

from tests.helpers import answers
from tests.helpers.answers import Refusal

__all__ = ["StoredResults", "answer", "answered", "begin", "save"]

FOLDER = Path(__file__).resolve().parent / "answers"
HOW = "with the real DALI installed, `make golden` stores it"

T = TypeVar("T")


class StoredResults:
    """Results of the tests of one file, and the current test's calls."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._test, self._live, self._count = "none", True, 0
        self._files: dict[Path, dict[str, Any]] = {}
        self._changed: set[Path] = set()

    def begin(self, test: str, *, live: bool) -> None:
        """Set the current test, and write the new results of the previous file."""
        if test.partition("::")[0] != self._test.partition("::")[0]:
            self.save()
            self._files.clear()
        self._test, self._live, self._count = test, live, 0

    def answer(self, question: Any, ask: Callable[[], T]) -> T:
        """Return the real DALI's result, or raise its exception.

        Args:
            question: The key of the result is its hash: nested values and arrays.
            ask: Runs the real DALI.
        """
        if self._live:
            return ask()
        mode, key, stored = os.environ.get("TORCHDALI_LIVE_DALI"), answers.digest(question), self._stored()
        if mode != "write" and key not in stored:
            self._missing()
        if not mode:
            return _raise_or_return(copy.deepcopy(stored[key]))
        result = answers.stored(_call(ask))
        if mode == "write":
            stored[key] = result
            self._changed.add(self._path())
        elif answers.differs(stored[key], result):
            pytest.fail(f"the real DALI returned {repr(result)[:600]}\nbut the stored result is {repr(stored[key])[:600]}\n{HOW}, if that is correct")
        return _raise_or_return(result)

    def next_of_test(self) -> tuple[str, int]:
        """Return the test's name without its file, and a count: the key of its next call, if that depends on a function."""
        self._count += 1
        return self._test.partition("::")[2], self._count

    def save(self) -> None:
        """Write new results."""
        for path in self._changed:
            answers.write(path, self._files[path])
        self._changed.clear()

    def _missing(self) -> NoReturn:
        pytest.fail(f"no result of the real DALI is stored for a call of {self._test}: {HOW}")

    def _path(self) -> Path:
        file = self._test.partition("::")[0].removeprefix("tests/")
        return (self._folder / file).with_suffix(".xz")

    def _stored(self) -> dict[str, Any]:
        path = self._path()
        if path not in self._files:
            self._files[path] = answers.read(path)
        return self._files[path]


def _call(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except Exception as error:
        return answers.refusal(error)


def _raise_or_return(result: Any) -> Any:
    if isinstance(result, Refusal):
        raise result.exception()
    return result


_all = StoredResults()
answer, begin, save = _all.answer, _all.begin, _all.save


def answered(run: Callable[..., T]) -> Callable[..., T]:
    """Decorate a function whose first argument is a library's name: it runs for torchdali; for the real DALI, its result is stored."""

    @functools.wraps(run)
    def ask(library: str, *arguments: Any, **named: Any) -> T:
        if library == "torchdali":
            return run(library, *arguments, **named)
        return answer((_all.next_of_test(), arguments, named), lambda: run(library, *arguments, **named))

    return ask
