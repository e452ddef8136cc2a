"""Programs that use DALI's internal names; tests/parity/plugin/test_programs.py compares all of them with the real DALI."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import torchdali
from tests.helpers.programs import files, results
from tests.helpers.programs._table import fed, pair
from torchdali.plugin.base_iterator import _DaliBaseIterator
from torchdali.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

A, B, C, AGAIN = [0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 9, 9], [8, 9, 0, 1]
RESULTS: dict[str, list[Any]] = {
    "reset_is_called": [([[A], [B], [C]], 1), ([[A], [B], [C]], 2), ([[A], [B], [C]], 3)],
    "reset_of_a_pipeline_is_called": [
        (3, ["reset"]), (3, ["reset"] * 2), (2, ["reset"] * 2 + ["reader"]), (2, ["reset"] * 2 + ["reader"] * 2),
    ],
    "reset_of_a_pipeline_with_a_reader": [(3, 1), (2, 2), (3, 3)],
    "first_batch_is_taken_by_hand": [True, ([A, B, AGAIN], None)],
    "size_is_set": [(12, 4), (2, 12), (1, [[A]], [[B]])],
    "length_from_inner_names": [(4, [[A, [0] * 4], [B, [0] * 4], [AGAIN, [0] * 4]])],
    "while_counter": [([A], 4), ([B], 8), ([C], 12)],
    "a_plugin_of_its_own": [
        ([[A], [B], [AGAIN]], 8), ([[[2, 3, 4, 5]], [[6, 7, 8, 9]]], 12),
        ([[A], [B], [[8, 9]]], 10), ([[A], [B], [[8, 9]]], 10),
        ([[A], [B], [[8, 9]]], 12), ([[[2, 3, 4, 5]], [[6, 7, 8, 9]], [[0, 1]]], 12),
    ],
    "a_reset_of_its_own": [[[A], [B], [C]]] * 3,
    "get_outputs_is_overridden": [
        (3, ["get", "schedule False", "schedule True", "advance"]
         + ["get", "schedule True", "advance"] * 2 + ["get"]),
    ],
    "copy_of_an_old_iterator": [[[A], [B], [AGAIN]], [[[2, 3, 4, 5]], [[6, 7, 8, 9]]], [[A], [B], [AGAIN]]],
    "counter_is_set_to_the_end": ["end", (0, 10)],
    "size_of_a_reader_is_set": [
        (name, 3, [list(range(i, i + 4)) for i in range(first, first + 12, 4)], 0)
        for name in ("FILL", "DROP", "PARTIAL")
        for first in (0, 12, 24)
    ],
    "size_of_a_source_is_set": [(2, 2)],
    "names_of_outputs_are_set": [["x", "y"]],
    "a_pipeline_describes_one_reader": [[[[0, 0]], [[1, 1]], [[2, 2]]]] * 2,
    "fed_in_iter_setup": [([[[0, 0]], [[1, 1]], [[2, 2]]],) * 2, [[0, 0]], [[1, 1]]],
    "prefetch_and_share": [[[i, i]] for i in range(4)],
    "prefetch_and_outputs": [[[i, i]] for i in range(4)],
    "prefetch_without_pipelining": [[[i, i]] for i in range(4)],
    "prefetch_twice": [[[0, 0]]],
    "fed_and_prefetched": [[[i, i], [-i, -i]] for i in range(1, 4)],
    "prefetch_and_run": [[[0, 0]], [[1, 1]]],
    "schedule_without_batch": ["RuntimeError"],
    "scope_of_an_iterator": [(None, "ITERATOR"), [[0, 0]], "RuntimeError"],
    "style_is_set": [[[1, 1]], [[2, 2]], "RuntimeError"],
    "end_and_reset": [[[0, 0]], [[1, 1]], [[2, 2]], True] * 2,
    "run_with_inputs_of_a_new_pipeline": [[[1, 1], [2, 2]], "RuntimeError"],
    "deserialized_from_a_file": [[[i, i], [-i, -i]] for i in range(3)],
    "deserialized_under_an_iterator": [[[i, i]] for i in range(3)],
    "deserialized: _mixed ": [[[0, 0], [1, 1]], [[2, 2], [3, 3]]],
    "deserialized: _scheduled ": [[[i, i], [-i, -i]] for i in range(3)],
    "written_for_triton": [[[2, 2]], [[3, 3]], [[2, 2]], [[4, 4]]],
}
for _depth in range(1, 5):
    for _drive in ("_one_a_run", "_inputs"):
        RESULTS[f"deserialized: {_drive} {{'prefetch_queue_depth': {_depth}}}"] = [
            [[i, i], [-i, -i]] for i in range(3)
        ]


@pytest.mark.parametrize("name", RESULTS)
def test_programs(name: str, caplog) -> None:
    caplog.set_level(logging.ERROR)
    assert results(name, torchdali) == RESULTS[name]


def test_a_double_constant_is_a_float_in_arithmetic() -> None:
    name, double = "float64", 0.10000000149011612
    seen = results("doubles_in_arithmetic", torchdali)
    assert seen[0] == (name, [double, 7 * double])
    assert seen[3] == (name, [double, 7.0])
    assert seen[5] == 0.1


def test_base_class() -> None:
    assert issubclass(DALIGenericIterator, _DaliBaseIterator)


def test_names_without_effect() -> None:
    """An iterator without a reader raises AttributeError for reader attributes."""
    pipe = torchdali.Pipeline(batch_size=1, num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs(torchdali.fn.external_source([np.ones((1, 1))], cycle=True))
    it = DALIGenericIterator(pipe, ["a"])
    assert (it._size, it._last_batch_padded, it._counter) == (-1, False, 1)
    with pytest.raises(AttributeError, match="shards and padding only if"):
        it._shards_num  # noqa: B018


def test_policy_is_set() -> None:
    it = DALIGenericIterator(files(torchdali), ["a", "b"], reader_name="Reader")
    it._last_batch_policy = LastBatchPolicy.PARTIAL
    assert [len(batch[0]["a"]) for batch in it] == [4, 4, 2]


def test_a_loaded_pipeline_prefetches_on_request() -> None:
    pipe = torchdali.Pipeline.deserialize(fed(torchdali).serialize(), exec_pipelined=True)
    with pytest.raises(RuntimeError, match="one batch is in flight"):
        pipe.run(A=pair(1), B=pair(2))


def test_setting_the_counter_starts_the_next_epoch() -> None:
    it = DALIGenericIterator(files(torchdali, pad_last_batch=True), ["a", "b"], reader_name="Reader")
    assert len(list(it)) == 3
    it._counter = 0
    assert it._counter == 0 and len(list(it)) == 3


@pytest.mark.parametrize("flag", [True, "yes", False, "no"])
def test_auto_reset_may_be_changed(flag: bool | str) -> None:
    it = DALIGenericIterator(files(torchdali), ["a", "b"], reader_name="Reader")
    it._auto_reset = flag
    counts = [len(list(it)) for _ in range(2)]
    assert counts == [3, 2] and it._auto_reset == ("yes" if flag in (True, "yes") else "no")
