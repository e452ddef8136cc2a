"""Tests of `tests.golden`: results are stored exactly; wrong, missing and changed results fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import golden
from tests.check import PerSample, Result, check
from tests.golden import StoredResults
from tests.helpers import answers
from tests.helpers.answers import Refusal, differs, digest

IMAGES = [np.arange(h * 12, dtype=np.uint8).reshape(h, 4, 3) for h in (2, 3)]
TEST = "tests/ops/test_some.py::test_it[1]"
RANDOM = np.random.default_rng(7)
FIRST = np.random.default_rng(7).integers(1 << 40)


def never() -> Any:
    raise AssertionError("asked, though the answer is stored")


@pytest.fixture
def answers_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], StoredResults]:
    """Return stored results of one folder, as in a new process, in a mode of TORCHDALI_LIVE_DALI."""

    def make(mode: str, *, live: bool = False) -> StoredResults:
        monkeypatch.setenv("TORCHDALI_LIVE_DALI", mode)
        made = StoredResults(tmp_path)
        made.begin(TEST, live=live)
        return made

    return make


def store(answers_of: Callable[[str], StoredResults], question: Any, value: Any) -> None:
    writing = answers_of("write")
    writing.answer(question, lambda: value)
    writing.save()


VALUES: list[Any] = [
    None, True, 3, -2.5, float("inf"), "text", "", [], (), [1, (2, [3.5, None])], {"a": 1, 2: ["b"]},
    np.arange(6, dtype=np.uint8).reshape(2, 3), np.float32([[1.5, np.nan, -np.inf]]), np.zeros((0, 3), np.int64),
    np.array(7, np.int16), np.array(True), np.arange(12.0).reshape(3, 4)[:, ::2], np.arange(3, dtype=">i4"),
    np.float64(2.5), np.uint64(2**63), np.float16([0.1, 65504]), KeyError, [Result([np.arange(3.0)], "X"), Result([], "")],
]  # fmt: skip


@pytest.mark.thin(3)
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_stored_results_are_read_again(answers_of: Callable[[str], StoredResults], value: Any) -> None:
    store(answers_of, "question", value)
    said = answers_of("").answer("question", never)
    assert type(said) is type(value)
    assert not differs(answers.stored(value), said)
    if isinstance(value, np.ndarray):
        assert said.dtype == value.dtype.newbyteorder("=") and said.flags.writeable
        np.testing.assert_array_equal(said, value)


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes", lambda: 0, [np.array([object()])], 1j], ids=lambda v: type(v).__name__)
def test_results_that_cannot_be_stored_are_errors(value: Any) -> None:
    with pytest.raises(TypeError, match="cannot be stored"):
        answers.stored(value)


def test_results_too_large_for_git_are_errors() -> None:
    with pytest.raises(ValueError, match="smaller inputs"):
        answers.stored([np.zeros(answers.MOST + 1, np.uint8)])


class Own(ValueError):
    """An exception that only one library has."""


@pytest.mark.parametrize(
    ("error", "kind"),
    [(RuntimeError("no"), RuntimeError), (Own("no"), ValueError), (UnicodeDecodeError("a", b"b", 0, 1, "c"), ValueError), (StopIteration(), StopIteration)],
    ids=repr,
)
def test_exceptions_are_stored(answers_of: Callable[[str], StoredResults], error: Exception, kind: type[Exception]) -> None:
    def refuse() -> Any:
        raise error

    writing = answers_of("write")
    with pytest.raises(kind):
        writing.answer("question", refuse)
    writing.save()
    for mode, ask in (("", never), ("compare", refuse)):
        with pytest.raises(kind) as caught:
            answers_of(mode).answer("question", ask)
        assert caught.type is kind
    with pytest.raises(pytest.fail.Exception, match="make golden"):
        answers_of("compare").answer("question", lambda: 3)


def test_no_path_of_a_machine_is_stored() -> None:
    said = "Critical error:\nFile \"/home/me/x.py\", line 3\nwas encountered:\n\n[/opt/x.cc:12] Assert: too small\nStacktrace: 0x77"
    assert answers.refusal(RuntimeError(said)) == Refusal(("RuntimeError", "Exception", "BaseException", "object"), "Assert: too small")
    assert answers.refusal(OSError("/home/me/file: no")).message == ""


def test_the_error_of_a_missing_result_names_the_command(answers_of: Callable[[str], StoredResults]) -> None:
    for mode in ("", "compare"):
        with pytest.raises(pytest.fail.Exception, match=r"test_some.*make golden"):
            answers_of(mode).answer("question", lambda: 3)
    assert answers_of("", live=True).answer("question", lambda: 3) == 3  # type: ignore[call-arg]


@pytest.mark.thin(3)
@pytest.mark.parametrize(
    ("stored", "said"),
    [
        (1, 2), (1, 1.0), (1, True), ([1], (1,)), ([1], [1, 1]), ({"a": 1}, {"a": 2}), ({"a": 1}, {"b": 1}), (KeyError, ValueError),
        (np.uint8([1, 2]), np.uint8([1, 3])), (np.uint8([1]), np.int8([1])), (np.zeros((1, 2)), np.zeros((2, 1))),
        (np.float32([1, 100]), np.float32([1, 101])), (np.float32([np.nan]), np.float32([0])), (1.0, 1.1),
        ([Result([np.zeros(2)], "X")], [Result([np.zeros(2)], "Y")]), ([Result([np.zeros(2)], "X")], [Result([np.ones(2)], "X")]),
        ([Result([np.zeros(2)], "X")], [Result([np.zeros(2)] * 2, "X")]),
    ],
    ids=repr,
)  # fmt: skip
def test_drift_fails(answers_of: Callable[[str], StoredResults], stored: Any, said: Any) -> None:
    store(answers_of, "question", stored)
    assert not differs(answers_of("compare").answer("question", lambda: stored), answers.stored(stored))
    with pytest.raises(pytest.fail.Exception, match="make golden"):
        answers_of("compare").answer("question", lambda: said)


def test_the_last_digits_of_floats_may_differ() -> None:
    """Another processor sums in another order."""
    assert not differs(np.float32([1000, 1]), np.float32([1000, 1.001]))
    assert differs(np.float32([1000, 1]), np.float32([1000, 1.1]))
    assert not differs([1.0, float("nan")], [1.0 + 1e-7, float("nan")])


def test_a_result_shares_no_memory(answers_of: Callable[[str], StoredResults]) -> None:
    store(answers_of, "question", np.zeros(2))
    reading = answers_of("")
    reading.answer("question", never)[:] = 5
    assert reading.answer("question", never).tolist() == [0, 0]


def test_equal_results_are_equal_files(tmp_path: Path) -> None:
    for name, keys in (("a.xz", "ab"), ("b.xz", "ba")):
        answers.write(tmp_path / name, {key: np.arange(ord(key)) for key in keys})
    assert (tmp_path / "a.xz").read_bytes() == (tmp_path / "b.xz").read_bytes()


DIFFERENT: list[Any] = [
    None, 0, False, 0.0, "0", [0], (0,), {"a": 0}, {"a": 1}, {"b": 0}, PerSample([0]), np.int32(0), np.int32([0]), np.int64([0]),
    np.zeros((1, 1), np.int32), np.zeros((2, 1)), np.zeros((1, 2)), [np.int32([0, 1])], [np.int32([0]), np.int32([1])], len, str, ["a", "b"], ["ab"],
]  # fmt: skip


def test_different_calls_have_different_keys() -> None:
    assert len({digest(question) for question in DIFFERENT}) == len(DIFFERENT)
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert digest(np.arange(6).reshape(2, 3).T) == digest(np.ascontiguousarray(np.arange(6).reshape(2, 3).T))
    assert digest(np.arange(3, dtype=">i4")) == digest(np.arange(3, dtype="<i4"))
    with pytest.raises(TypeError, match="whose contents are not known"):
        digest(object())


def test_a_wrong_result_fails_the_test(answers_of: Callable[[str], StoredResults], monkeypatch: pytest.MonkeyPatch) -> None:
    right, wrong = [x[:, ::-1] for x in IMAGES], [x[::-1] for x in IMAGES]
    for samples, layout, message in ((right, "HWC", ""), (wrong, "HWC", "of the values within"), (right, "", "layout")):
        store(answers_of, ("pipeline", "flip", [IMAGES], {}, "HWC", {}), [Result(samples, layout)])
        monkeypatch.setattr(golden, "answer", answers_of("").answer)
        if not message:
            assert check("flip", [IMAGES], {}, "HWC") == 1.0
            continue
        with pytest.raises(AssertionError, match=message):
            check("flip", [IMAGES], {}, "HWC")


def test_a_call_without_a_stored_result_fails_the_test(answers_of: Callable[[str], StoredResults], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(golden, "answer", answers_of("").answer)
    with pytest.raises(pytest.fail.Exception, match="make golden"):
        check("flip", [IMAGES], {"vertical": 1}, "HWC")


@pytest.mark.parametrize("case", range(3))
def test_a_test_draws_the_same_numbers_when_it_runs_alone(case: int) -> None:
    """Otherwise the inputs of a test, and the keys of its calls, depend on earlier tests."""
    assert RANDOM.integers(1 << 40) == FIRST
