"""Small programs in the manner of published ones for DALI, with inner names: for torchdali and for the real DALI.

Each takes the package, and returns numbers.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np


def _number(outputs: Any) -> float:
    return float(np.array(outputs[0].at(0)).ravel()[0])


def _array(number: int) -> Any:
    return np.full((2, 1), number, np.float32)


def counting(package: Any, depth: int = 2) -> Any:
    """A pipeline whose batches are 0, 1, 2 ..."""
    pipe = package.Pipeline(batch_size=2, num_threads=1, device_id=None, prefetch_queue_depth=depth)
    with pipe:
        pipe.set_outputs(package.fn.external_source(source=_array))
    pipe.build()
    return pipe


def fed(package: Any, depth: int = 2) -> Any:
    """A pipeline that is fed."""
    pipe = package.Pipeline(batch_size=2, num_threads=1, device_id=None, prefetch_queue_depth=depth)
    with pipe:
        pipe.set_outputs(package.fn.external_source(name="A"))
    return pipe


def loaded(package: Any, depth: int = 2, **arguments: Any) -> Any:
    """The same, saved and loaded."""
    pipe = package.Pipeline.deserialize(fed(package, depth).serialize(), **arguments)
    pipe.build()
    return pipe


# ------------------------------------------------------------ pipelines that are driven by hand


def prefetch_then_share(package):
    pipe = counting(package)
    pipe._prefetch()
    numbers = [_number(pipe.share_outputs())]
    pipe.release_outputs()
    pipe.schedule_run()
    return [*numbers, _number(pipe.share_outputs())]


def prefetch_then_outputs(package):
    pipe = counting(package)
    pipe._prefetch()
    numbers = []
    for _ in range(3):
        numbers.append(_number(pipe.outputs()))
        pipe.schedule_run()
    return numbers


def prefetch_twice(package):
    pipe = counting(package)
    pipe._prefetch()
    pipe._prefetch()
    return _number(pipe.outputs())


def prefetch_then_run(package):
    pipe = counting(package)
    pipe._prefetch()
    return [_number(pipe.run()) for _ in range(3)]


def run_and_outputs(package):
    pipe = counting(package, 1)
    numbers = []
    for _ in range(3):
        pipe._run()
        numbers.append(_number(pipe._outputs()))
    return numbers


def inside_an_api_scope(package):
    pipe = counting(package)
    types = importlib.import_module(f"{package.__name__}.types")
    numbers = []
    with pipe._check_api_type_scope(types.PipelineAPIType.ITERATOR):
        for _ in range(2):
            pipe.schedule_run()
            numbers.append(_number(pipe.share_outputs()))
            pipe.release_outputs()
    return numbers


def fed_by_hand(package):
    pipe = fed(package)
    pipe.build()
    for number in range(2):
        pipe.feed_input("A", _array(number))
    pipe._prefetch()
    numbers = [_number(pipe.share_outputs())]
    pipe.release_outputs()
    pipe.feed_input("A", _array(5))
    pipe.schedule_run()
    for _ in range(2):
        numbers.append(_number(pipe.share_outputs()))
        pipe.release_outputs()
    return numbers


# ------------------------------------------------------------ pipelines that were saved


def fed_once_a_run(package):
    pipe = loaded(package)
    numbers = []
    for number in range(4):
        pipe.feed_input("A", _array(number))
        numbers.append(_number(pipe.run()))
    return numbers


def fed_by_run(package):
    pipe = loaded(package)
    return [_number(pipe.run(A=_array(number))) for number in range(4)]


def fed_by_run_depth_one(package):
    pipe = loaded(package, 1)
    return [_number(pipe.run(A=_array(number))) for number in range(4)]


def fed_once_a_run_deep(package):
    pipe = loaded(package, 4, prefetch_queue_depth=3)
    numbers = []
    for number in range(4):
        pipe.feed_input("A", _array(number))
        numbers.append(_number(pipe.run()))
    return numbers


def fed_ahead(package):
    pipe = loaded(package)
    for number in range(4):
        pipe.feed_input("A", _array(number))
    return [_number(pipe.run()) for _ in range(4)]


def fed_and_scheduled(package):
    pipe = loaded(package)
    pipe.feed_input("A", _array(7))
    pipe.schedule_run()
    return _number(pipe.share_outputs())


# ------------------------------------------------------------ subclasses of iterators


def records(package, size=10, pad=False):
    """A pipeline that reads numbers from 0, as labels of one file."""

    def define():
        files = [__file__] * size
        _, labels = package.fn.readers.file(
            files=files, labels=list(range(size)), name="Reader", pad_last_batch=pad
        )
        return labels

    return package.pipeline_def(define, batch_size=4, num_threads=1, device_id=None)()


def _plugin(package):
    return importlib.import_module(f"{package.__name__}.plugin.pytorch")


def overridden_reset(package):
    class Iterator(_plugin(package).DALIGenericIterator):
        resets = 0

        def reset(self):
            Iterator.resets += 1
            super().reset()

    counts = []
    for policy in _plugin(package).LastBatchPolicy:
        iterator = Iterator(records(package), ["x"], reader_name="Reader", auto_reset=True, last_batch_policy=policy)
        counts += [sum(1 for _ in iterator) for _ in range(3)]
    return [*counts, Iterator.resets >= 9]


def overridden_reset_of_the_pipeline(package):
    calls = []

    class Pipe(package.Pipeline):
        def define_graph(self):
            return package.fn.readers.file(
                files=[__file__] * 10, labels=list(range(10)), name="Reader"
            )[1]

        def reset(self):
            calls.append("reset")
            super().reset()

    pipe = Pipe(batch_size=4, num_threads=1, device_id=None)
    iterator = _plugin(package).DALIGenericIterator(pipe, ["x"], reader_name="Reader", auto_reset=True)
    return [sum(1 for _ in iterator) for _ in range(3)] + [len(calls)]


def inner_numbers(package):
    iterator = _plugin(package).DALIGenericIterator(
        records(package), ["x"], reader_name="Reader", last_batch_policy=_plugin(package).LastBatchPolicy.PARTIAL
    )
    seen = [iterator._counter, iterator._size, iterator._size_no_pad, iterator._shards_num, iterator._num_gpus]
    seen += [iterator._first_batch is None, len(iterator._pipes), iterator._reader_name, iterator._auto_reset]
    for _ in iterator:
        seen += [iterator._counter, iterator._counter >= iterator._size]
    return [*seen, iterator._first_batch is None, iterator._is_stick_to_shard, iterator._last_batch_policy.name]


def size_set_before_init(package):
    class Iterator(_plugin(package).DALIGenericIterator):
        def __init__(self, pipe):
            self._size = 3
            super().__init__(pipe, ["x"], reader_name="Reader", auto_reset=True)

    iterator = Iterator(records(package))
    return [iterator._size, sum(1 for _ in iterator)]


def size_set_after_init(package):
    class Iterator(_plugin(package).DALIGenericIterator):
        def __init__(self, pipe):
            super().__init__(pipe, ["x"], size=100, auto_reset=True)
            self._size = 8

    iterator = Iterator(records(package, 100))
    return [iterator._size, *(sum(1 for _ in iterator) for _ in range(2))]


def overridden_next(package):
    class Iterator(_plugin(package).DALIClassificationIterator):
        def __next__(self):
            batch = super().__next__()
            return batch[0]["label"].flatten().tolist()

    def define():
        _, labels = package.fn.readers.file(files=[__file__] * 6, labels=list(range(6)), name="Reader")
        return labels, labels

    pipe = package.pipeline_def(define, batch_size=4, num_threads=1, device_id=None)()
    return list(Iterator(pipe, reader_name="Reader", last_batch_policy=_plugin(package).LastBatchPolicy.PARTIAL))


def derived_from_the_base(package):
    base = importlib.import_module(f"{package.__name__}.plugin.base_iterator")._DaliBaseIterator

    class Iterator(base):
        def __init__(self, pipes, **options):
            super().__init__(pipes, **options)
            self._first_batch = None
            if self._prepare_first_batch:
                self._first_batch = self.__next__()

        def __next__(self):
            self._ever_consumed = True
            if self._first_batch is not None:
                batch, self._first_batch = self._first_batch, None
                return batch
            outputs = self._get_outputs()
            values = [np.array(output[0].as_tensor()).ravel().tolist() for output in outputs]
            self._schedule_runs()
            self._advance_and_check_drop_last()
            drop, left = self._remove_padded()
            if np.any(drop):
                values = [value[:count] for value, count in zip(values, left, strict=True)]
            return values

    policy = _plugin(package).LastBatchPolicy.PARTIAL
    iterator = Iterator([records(package)], reader_name="Reader", auto_reset=True, last_batch_policy=policy)
    return [list(iterator), iterator._counter]


PROGRAMS = [
    prefetch_then_share, prefetch_then_outputs, prefetch_twice, prefetch_then_run, run_and_outputs,
    inside_an_api_scope, fed_by_hand, fed_once_a_run, fed_by_run, fed_by_run_depth_one, fed_once_a_run_deep,
    fed_ahead, fed_and_scheduled, overridden_reset, overridden_reset_of_the_pipeline, inner_numbers,
    size_set_before_init, size_set_after_init, overridden_next, derived_from_the_base,
]
