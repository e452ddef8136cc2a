"""Programs that use inner names of DALI's pipelines and iterators."""

from __future__ import annotations

import pytest

import torchdali
from tests.helpers import old_programs
from torchdali.plugin.pytorch import DALIGenericIterator

COUNTED = [0.0, 1.0, 2.0, 3.0]
EXPECTED = {
    "prefetch_then_share": COUNTED[:2],
    "prefetch_then_outputs": COUNTED[:3],
    "prefetch_twice": 0.0,
    "prefetch_then_run": COUNTED[:3],
    "run_and_outputs": COUNTED[:3],
    "inside_an_api_scope": COUNTED[:2],
    "fed_by_hand": [0.0, 1.0, 5.0],
    "fed_once_a_run": COUNTED,
    "fed_by_run": COUNTED,
    "fed_by_run_depth_one": COUNTED,
    "fed_once_a_run_deep": COUNTED,
    "fed_ahead": COUNTED,
    "fed_and_scheduled": 7.0,
    "overridden_reset": [3, 2, 3, 2, 2, 2, 3, 3, 3, True],
    "overridden_reset_of_the_pipeline": [3, 2, 3, 3],
    "inner_numbers": [4, 12, 10, 1, 1, False, 1, "Reader", "no", 4, False, 8, False, 12, True, True, 0, "PARTIAL"],
    "size_set_before_init": [12, 3],
    "size_set_after_init": [8, 2, 2],
    "overridden_next": [[0, 1, 2, 3], [4, 5]],
    "derived_from_the_base": [[[[0, 1, 2, 3]], [[4, 5, 6, 7]], [[8, 9]]], 0],
}


@pytest.mark.parametrize("program", old_programs.PROGRAMS, ids=lambda program: program.__name__)
def test_programs(program):
    assert program(torchdali) == EXPECTED[program.__name__]


def test_a_loaded_pipeline_works_ahead_if_it_is_asked_to():
    pipe = old_programs.loaded(torchdali, exec_pipelined=True)
    with pytest.raises(RuntimeError, match="one batch is in flight"):
        pipe.run(A=old_programs._array(1))


def test_a_counter_that_is_set_begins_the_next_epoch():
    iterator = DALIGenericIterator(old_programs.records(torchdali, pad=True), ["x"], reader_name="Reader")
    assert sum(1 for _ in iterator) == 3
    iterator._counter = 0
    assert iterator._counter == 0 and sum(1 for _ in iterator) == 3


@pytest.mark.parametrize("flag", [True, "yes", False, "no"])
def test_auto_reset_may_be_changed(flag):
    iterator = DALIGenericIterator(old_programs.records(torchdali), ["x"], reader_name="Reader")
    iterator._auto_reset = flag
    counts = [sum(1 for _ in iterator) for _ in range(2)]
    assert counts == [3, 2] and iterator._auto_reset == ("yes" if flag in (True, "yes") else "no")


@pytest.mark.parametrize("taken", [1, 2, 3])
@pytest.mark.parametrize("pad", [False, True])
def test_on_break_next_begins_the_next_epoch(taken, pad):
    def labels(iterator, count=None):
        batches = []
        for batch in iterator:
            batches.append(batch[0]["x"].flatten().tolist())
            if len(batches) == count:
                break
        return batches

    options = {"reader_name": "Reader", "last_batch_policy": torchdali.plugin.pytorch.LastBatchPolicy.PARTIAL}
    whole = DALIGenericIterator(old_programs.records(torchdali, pad=pad), ["x"], **options)
    expected = [labels(whole) for _ in range(3)] if pad else None
    left = DALIGenericIterator(old_programs.records(torchdali, pad=pad), ["x"], **options, on_break="next")
    labels(left, taken)
    if expected is not None:
        assert [labels(left), labels(left)] == expected[1:]
    assert sum(map(len, labels(left))) == 10


def test_on_break_next_with_a_source_that_is_told_its_place():
    def define():
        return torchdali.fn.external_source(source=_told, batch=False)

    pipe = torchdali.pipeline_def(define, batch_size=2, num_threads=1, device_id=None)()
    iterator = DALIGenericIterator(pipe, ["x"], on_break="next", auto_reset=True)
    next(iter(iterator))
    assert [batch[0]["x"].tolist() for batch in iterator] == [[[1, 0], [1, 1]], [[1, 2], [1, 3]]]


def _told(info):
    import numpy as np

    if info.idx_in_epoch >= 4:
        raise StopIteration
    return np.int32([info.epoch_idx, info.idx_in_epoch])
