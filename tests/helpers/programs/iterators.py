"""Programs with iterators: subclasses, copies of old iterators, attributes that are read and set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.helpers.programs._table import PROGRAMS, Counter, base, counting, files, numbers, plugin, program, taken

# ---------------------------------------------------------------- subclasses of the iterators

def _policies(dali: Any) -> Any:
    return plugin(dali).LastBatchPolicy


def _watching(dali: Any, log: list[Any]) -> Any:
    class Watching(plugin(dali).DALIGenericIterator):  # type: ignore[misc]
        def place(self) -> tuple[Any, ...]:
            return int(self._counter), int(self._size), len(self), self._ever_consumed, self._ever_scheduled

        def reset(self) -> None:
            log.append(("reset", *self.place()))
            super().reset()
            log.append(("reset done", *self.place()))

        def _end_iteration(self) -> None:
            log.append(("end", *self.place()))
            super()._end_iteration()

        def __iter__(self) -> Any:
            log.append("iter")
            return super().__iter__()

        def __next__(self) -> Any:
            batch = super().__next__()
            log.append((taken(batch), *self.place()))
            return batch

    return Watching


def _epochs_of(
    dali: Any, pipes: Any, *, epochs: int = 3, stop: int | None = None, **arguments: Any
) -> Iterator[Any]:
    log: list[Any] = []
    it = _watching(dali, log)(pipes, ["a", "b"], **arguments)
    for _ in range(epochs):
        for i, _batch in enumerate(it):
            if stop is not None and i + 1 == stop:
                break
        if not arguments.get("auto_reset"):
            it.reset()
        yield list(log)
        log.clear()


def _iterating(name: str, make: Callable[[Any], tuple[Any, dict[str, Any]]]) -> None:
    def run(dali: Any) -> Iterator[Any]:
        pipes, arguments = make(dali)
        return _epochs_of(dali, pipes, **arguments)

    PROGRAMS[f"epochs: {name}"] = run


_BY_NAME = {"reader_name": "Reader"}
_iterating("auto_reset", lambda d: (files(d), {**_BY_NAME, "auto_reset": True}))
_iterating("manual reset", lambda d: (files(d), _BY_NAME))
_iterating("drop", lambda d: (files(d), {**_BY_NAME, "last_batch_policy": _policies(d).DROP}))
_iterating(
    "drop, auto_reset", lambda d: (files(d), {**_BY_NAME, "auto_reset": True, "last_batch_policy": _policies(d).DROP})
)
_iterating(
    "partial, padded, no first batch",
    lambda d: (
        files(d, pad_last_batch=True),
        {**_BY_NAME, "last_batch_policy": _policies(d).PARTIAL, "prepare_first_batch": False},
    ),
)
_iterating(
    "partial, two of three shards",
    lambda d: (
        [files(d, pad_last_batch=True, shard_id=i, num_shards=3) for i in range(2)],
        {**_BY_NAME, "last_batch_policy": _policies(d).PARTIAL},
    ),
)
_iterating(
    "fill, two of three shards",
    lambda d: ([files(d, shard_id=i, num_shards=3) for i in range(2)], {**_BY_NAME, "auto_reset": True}),
)
_iterating("left in mid-epoch", lambda d: (files(d), {**_BY_NAME, "stop": 2}))
_iterating("partial, auto_reset", lambda d: (
    files(d), {**_BY_NAME, "auto_reset": True, "last_batch_policy": _policies(d).PARTIAL}
))
_iterating("size, partial", lambda d: (files(d), {"size": 10, "last_batch_policy": _policies(d).PARTIAL}))
_iterating(
    "size, two pipelines, partial",
    lambda d: ([files(d), files(d)], {"size": 10, "auto_reset": True, "last_batch_policy": _policies(d).PARTIAL}),
)
_iterating(
    "size, two pipelines, drop",
    lambda d: ([files(d), files(d)], {"size": 18, "auto_reset": True, "last_batch_policy": _policies(d).DROP}),
)


@program
def reset_is_called(dali: Any) -> Iterator[Any]:
    class Shuffling(plugin(dali).DALIGenericIterator):  # type: ignore[misc]
        resets = 0

        def reset(self) -> None:
            Shuffling.resets += 1
            super().reset()

    it = Shuffling(files(dali, pad_last_batch=True), ["a", "b"], reader_name="Reader", auto_reset=True)
    for _ in range(3):
        yield [taken(batch) for batch in it], Shuffling.resets


@program
def reset_of_a_pipeline_is_called(dali: Any) -> Iterator[Any]:
    calls: list[str] = []

    class Source(dali.Pipeline):  # type: ignore[misc,name-defined]
        def define_graph(self) -> Any:
            return dali.fn.external_source(Counter(3))

        def reset(self) -> None:
            calls.append("reset")
            super().reset()

    class Reader(dali.Pipeline):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__(4, 1, None)
            self.inner = files(dali)

        def define_graph(self) -> Any:
            return dali.fn.random.coin_flip(seed=1)

        def reset(self) -> None:
            calls.append("reader")
            super().reset()

    for pipe, arguments in ((Source(2, 1, None), {}), (Reader(), {"size": 8})):
        it = plugin(dali).DALIGenericIterator(pipe, ["a"], auto_reset=True, **arguments)
        for _ in range(2):
            yield len(list(it)), list(calls)


@program
def reset_of_a_pipeline_with_a_reader(dali: Any) -> Iterator[Any]:
    calls: list[str] = []

    class Reader(dali.Pipeline):  # type: ignore[misc,name-defined]
        def define_graph(self) -> Any:
            return dali.fn.readers.file(files=[__file__] * 10, labels=list(range(10)), name="Reader")[1]

        def reset(self) -> None:
            calls.append("reset")
            super().reset()

    it = plugin(dali).DALIGenericIterator(Reader(4, 1, None), ["a"], reader_name="Reader", auto_reset=True)
    for _ in range(3):
        yield len(list(it)), len(calls)


@program
def first_batch_is_taken_by_hand(dali: Any) -> Iterator[Any]:
    class Peeking(plugin(dali).DALIGenericIterator):  # type: ignore[misc]
        def __next__(self) -> Any:
            if self._first_batch is not None:
                batch, self._first_batch = self._first_batch, None
                return batch[0]["a"].ravel().tolist()
            return super().__next__()[0]["a"].ravel().tolist()

    it = Peeking(files(dali), ["a", "b"], reader_name="Reader")
    yield it._first_batch is not None
    yield list(it), it._first_batch


@program
def size_is_set(dali: Any) -> Iterator[Any]:
    class Early(plugin(dali).DALIGenericIterator):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **named: Any) -> None:
            self._size = 3
            self._counter = 7
            super().__init__(*arguments, **named)

    it = Early(files(dali), ["a", "b"], reader_name="Reader", auto_reset=True)
    yield int(it._size), int(it._counter)
    it._size = 8
    yield len(list(it)), int(it._size)
    it = plugin(dali).DALIGenericIterator(files(dali), ["a", "b"], size=12, auto_reset=True)
    it._size = 4
    yield len(it), [taken(batch) for batch in it], [taken(batch) for batch in it]


@program
def length_from_inner_names(dali: Any) -> Iterator[Any]:
    class Loader(plugin(dali).DALIClassificationIterator):  # type: ignore[misc]
        def __len__(self) -> int:
            whole = self._size // (self._num_gpus * self.batch_size)
            return whole + (self._last_batch_policy is not plugin(dali).LastBatchPolicy.DROP)

        def __next__(self) -> Any:
            data = super().__next__()[0]
            return [data[name].ravel().tolist() for name in self.output_map]

    it = Loader(files(dali), reader_name="Reader", auto_reset=True)
    yield len(it), list(it)


@program
def names_that_are_read(dali: Any) -> Iterator[Any]:
    it = plugin(dali).DALIGenericIterator(
        [files(dali, pad_last_batch=True, shard_id=i, num_shards=2) for i in range(2)], ["a", "b"], reader_name="Reader"
    )
    for name in (
        "_auto_reset", "_reader_name", "_num_gpus", "output_map", "_output_categories", "_shards_num", "_size_no_pad",
        "_ever_scheduled", "_ever_consumed", "batch_size", "_enable_checkpointing",
    ):  # fmt: skip
        yield name, getattr(it, name)
    for name in ("_last_batch_padded", "_is_stick_to_shard", "_counter"):
        yield name, int(getattr(it, name))
    for name in ("_shards_id", "_counter_per_gpu", "_shard_sizes_per_gpu", "_shard_sizes_per_gpu_initial"):
        yield name, getattr(it, name).tolist()
    yield it._last_batch_policy.name, len(it._pipes), it._calculate_shard_sizes(np.array([0, 1])).tolist()


@program
def while_counter(dali: Any) -> Iterator[Any]:
    it = plugin(dali).DALIGenericIterator(files(dali, pad_last_batch=True), ["a", "b"], reader_name="Reader")
    while it._counter < it._size:
        yield taken(next(it)), int(it._counter)


@program
def a_plugin_of_its_own(dali: Any) -> Iterator[Any]:
    """Code of DALI's plugins, which many programs have copied."""
    policy = plugin(dali).LastBatchPolicy

    class Own(base(dali)):  # type: ignore[misc]
        def __init__(self, pipes: Any, names: list[str], **arguments: Any) -> None:
            self._output_categories, self.output_map = set(names), names
            base(dali).__init__(self, pipes, **arguments)
            self._first_batch = None
            if self._prepare_first_batch:
                try:
                    self._first_batch = Own.__next__(self)
                    self._ever_consumed = False
                except StopIteration:
                    self._report_no_data_in_pipeline()

        def __next__(self) -> Any:
            self._ever_consumed = True
            if self._first_batch is not None:
                batch, self._first_batch = self._first_batch, None
                return batch
            outputs = self._get_outputs()
            self._check_batch_size(outputs)
            parts = [dict(zip(self.output_map, map(np.array, numbers(each)), strict=True)) for each in outputs]
            self._schedule_runs()
            self._advance_and_check_drop_last()
            if self._reader_name:
                dropping, left = self._remove_padded()
                if np.any(dropping):
                    return [{k: v[:n] for k, v in part.items()} for part, n in zip(parts, left, strict=True)]
            return parts

    for pad, each in ((False, policy.FILL), (True, policy.PARTIAL), (False, policy.PARTIAL)):
        pipe = files(dali, pad_last_batch=pad)
        it = Own(pipe, ["a", "b"], reader_name="Reader", auto_reset=True, last_batch_policy=each)
        for _ in range(2):
            yield [taken(batch) for batch in it], it.size


@program
def a_reset_of_its_own(dali: Any) -> Iterator[Any]:
    class Old(plugin(dali).DALIGenericIterator):  # type: ignore[misc]
        def reset(self) -> None:
            if self._counter >= self._size:
                self._counter = 0
                for pipe in self._pipes:
                    pipe.reset()
                    if pipe.empty():
                        with pipe._check_api_type_scope(dali.types.PipelineAPIType.ITERATOR):
                            pipe.schedule_run()

    it = Old(files(dali, pad_last_batch=True), ["a", "b"], reader_name="Reader", auto_reset=True)
    for _ in range(3):
        yield [taken(batch) for batch in it]


@program
def get_outputs_is_overridden(dali: Any) -> Iterator[Any]:
    calls: list[str] = []

    class Timed(plugin(dali).DALIGenericIterator):  # type: ignore[misc]
        def _get_outputs(self) -> Any:
            calls.append("get")
            return super()._get_outputs()

        def _schedule_runs(self, release_outputs: bool = True) -> None:
            calls.append(f"schedule {release_outputs}")
            super()._schedule_runs(release_outputs)

        def _advance_and_check_drop_last(self, *arguments: Any, **named: Any) -> Any:
            calls.append("advance")
            return super()._advance_and_check_drop_last(*arguments, **named)

    it = Timed(files(dali), ["a", "b"], reader_name="Reader")
    yield len(list(it)), calls


@program
def outputs_without_conversion(dali: Any) -> Iterator[Any]:
    it = plugin(dali).DALIGenericIterator(files(dali), ["a", "b"], reader_name="Reader", prepare_first_batch=False)
    for _ in range(3):
        yield numbers(it._get_outputs()[0])
        it._schedule_runs()
        it._advance_and_check_drop_last()
    yield it._get_outputs()


# ----------------------------------------------------------- older copies, and attributes that are set

@program
def copy_of_an_old_iterator(dali: Any) -> Iterator[Any]:
    """The iterator of DALI 0.x, which many programs have copied."""
    api = dali.types.PipelineAPIType.ITERATOR

    class Old:
        def __init__(self, pipes: list[Any], size: int) -> None:
            self._pipes, self._size, self._counter = pipes, size, 0
            for pipe in pipes:
                with pipe._check_api_type_scope(api):
                    pipe.build()
                    pipe.schedule_run()
            self._first: Any = None
            self._first = self.__next__()

        def __iter__(self) -> Any:
            return self

        def __next__(self) -> Any:
            if self._first is not None:
                batch, self._first = self._first, None
                return batch
            if self._counter >= self._size:
                self._counter %= self._size
                for pipe in self._pipes:
                    pipe.reset()
                    if pipe.empty():
                        with pipe._check_api_type_scope(api):
                            pipe.schedule_run()
                raise StopIteration
            values = []
            for pipe in self._pipes:
                with pipe._check_api_type_scope(api):
                    values.append(numbers(pipe.share_outputs())[0])
                    pipe.release_outputs()
                    pipe.schedule_run()
            self._counter += len(self._pipes) * self._pipes[0].max_batch_size
            return values

    it = Old([files(dali)], 10)
    for _ in range(3):
        yield list(it)


@program
def reset_by_a_wrapper(dali: Any) -> Iterator[Any]:
    it = plugin(dali).DALIGenericIterator(files(dali, pad_last_batch=True), ["a", "b"], reader_name="Reader")
    for _ in range(3):
        yield it._size // it.batch_size, [taken(batch) for batch in it]
        it.reset()


@program
def end_iteration_is_overridden(dali: Any) -> Iterator[Any]:
    class Ending(plugin(dali).DALIGenericIterator):  # type: ignore[misc]
        def _end_iteration(self) -> None:
            self.reset()
            raise StopIteration

    it = Ending(files(dali, pad_last_batch=True), ["a", "b"], reader_name="Reader")
    for _ in range(3):
        yield [taken(batch) for batch in it]


@program
def counter_is_set_to_the_end(dali: Any) -> Iterator[Any]:
    it = plugin(dali).DALIGenericIterator(files(dali, 40, pad_last_batch=True), ["a", "b"], reader_name="Reader")
    next(it)
    it._counter = it._size
    yield next(it, "end")
    it.reset()
    yield int(it._counter), len(list(it))


@program
def loop_ends_by_the_counter(dali: Any) -> Iterator[Any]:
    it = plugin(dali).DALIGenericIterator(files(dali, pad_last_batch=True), ["a", "b"], reader_name="Reader")
    for batch in it:
        yield taken(batch)
        if it._counter >= it._size:
            break
    it.reset()
    yield int(it._counter), len(list(it))


@program
def size_of_a_reader_is_set(dali: Any) -> Iterator[Any]:
    for policy in plugin(dali).LastBatchPolicy:
        it = plugin(dali).DALIGenericIterator(
            files(dali, 40, pad_last_batch=True), ["a", "b"], reader_name="Reader", last_batch_policy=policy,
            auto_reset=True,
        )  # fmt: skip
        it._size = 12
        for _ in range(3):
            yield policy.name, len(it), [taken(batch)[0] for batch in it], int(it._counter)


@program
def size_of_a_source_is_set(dali: Any) -> Iterator[Any]:
    it = plugin(dali).DALIGenericIterator(counting(dali), ["a"])
    it._size = 4
    yield len(list(it)), len(it)


@program
def names_are_set(dali: Any) -> Iterator[Any]:
    class Early(plugin(dali).DALIGenericIterator):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **named: Any) -> None:
            self._num_gpus, self._pipes, self.batch_size, self._reader_name = 9, None, 1, "x"
            super().__init__(*arguments, **named)

    it = Early(files(dali), ["a", "b"], reader_name="Reader")
    yield it._num_gpus, len(it._pipes), it.batch_size, it._reader_name
    for name, value in {
        "_ever_consumed": True, "_ever_scheduled": True, "_shards_num": 3, "_size_no_pad": 5, "_is_stick_to_shard": 1,
        "_last_batch_policy": plugin(dali).LastBatchPolicy.DROP, "_enable_checkpointing": True, "_auto_reset": "yes",
        "_fill_last_batch": True, "_data_batches": [], "_num_gpus": 2, "_output_categories": {"x", "y"},
        "output_map": ["x", "y"],
    }.items():  # fmt: skip
        setattr(it, name, value)
        yield name, getattr(it, name) == value


@program
def names_of_outputs_are_set(dali: Any) -> Iterator[Any]:
    it = plugin(dali).DALIGenericIterator(files(dali), ["a", "b"], reader_name="Reader")
    it.output_map, it._output_categories = ["x", "y"], {"x", "y"}
    next(it)
    yield sorted(next(it)[0])


@program
def next_calls_the_overridden(dali: Any) -> Iterator[Any]:
    class Plain(plugin(dali).DALIRaggedIterator):  # type: ignore[misc]
        def __next__(self) -> Any:
            return taken(super().__next__())

    it = Plain(files(dali), ["a", "b"], reader_name="Reader", auto_reset=True)
    yield it.next(), list(it), list(it)


@program
def a_pipeline_describes_one_reader(dali: Any) -> Iterator[Any]:
    class Described(dali.Pipeline):  # type: ignore[misc,name-defined]
        def define_graph(self) -> Any:
            return dali.fn.external_source(Counter(3))

        def reader_meta(self, name: str) -> Any:
            return {
                "epoch_size": 6, "epoch_size_padded": 6, "number_of_shards": 1, "shard_id": 0, "pad_last_batch": 0,
                "stick_to_shard": 0,
            }  # fmt: skip

    for arguments in ({"reader_name": "any"}, {}):
        it = plugin(dali).DALIGenericIterator(Described(2, 1, None), ["a"], auto_reset=True, **arguments)
        yield [taken(batch) for batch in it]


