"""Problems of scripts that moved from DALI to torchdali: each case runs on both and returns the same.

Corner cases of single operators are in `ops/test_corners.py`.
"""

from __future__ import annotations

import collections.abc
import gc
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from tests.helpers.encoded_images import encoded
from tests.helpers.libraries import Case, Library, check, described, table

pytestmark = pytest.mark.parity
pytest.importorskip(
    "nvidia.dali",
    reason="the parity tests compare with the real DALI: install the extra 'parity'",
)

ONE = {"batch_size": 1, "num_threads": 1, "device_id": None}
PIXELS = np.random.default_rng(0).integers(0, 255, (9, 10, 3)).astype(np.uint8)


def run(library: Library, define: Callable[[], Any], **settings: Any) -> list[Any]:
    """Build a pipeline of some operators, and return dtypes, shapes and values of its outputs."""
    pipe = library.Pipeline(**{**ONE, **settings})
    with pipe:
        made = define()
        pipe.set_outputs(*(made if isinstance(made, (list, tuple)) else [made]))
    pipe.build()
    return described(pipe.run())


def source(library: Library, *samples: Any, layout: str | None = None) -> Any:
    """Return a node that gives these samples."""
    return library.fn.external_source(lambda: [np.asarray(sample) for sample in samples], layout=layout)


def of(define: Callable[[Library, Callable[..., Any]], Any], **settings: Any) -> Case:
    """Return a case that runs a definition with the library and its source of samples."""
    return lambda library: run(library, lambda: define(library, lambda *s, **k: source(library, *s, **k)), **settings)


def is_iterable(library: Library) -> bool:
    with library.Pipeline(**ONE):
        return isinstance(library.fn.constant(fdata=[1.0]), collections.abc.Iterable)


def workers_left(library: Library) -> int:
    """Count the worker processes that remain after a pipeline is dropped, while the garbage collector is off."""

    def use() -> None:
        pipe = library.Pipeline(**ONE, py_num_workers=2, py_start_method="fork")
        with pipe:
            pipe.set_outputs(library.fn.external_source(lambda info: np.int32([7]), parallel=True, batch=False))
        pipe.build()
        pipe.run()

    gc.collect()
    before = len(psutil.Process().children())
    gc.disable()
    try:
        use()
        return len(psutil.Process().children()) - before
    finally:
        gc.enable()


def thread_of_a_source(library: Library) -> bool:
    """Return whether a source is called in the thread that runs the pipeline."""
    seen = set()

    def make() -> list[Any]:
        seen.add(threading.get_ident())
        return [np.zeros(2, np.float32)]

    run(library, lambda: library.fn.external_source(make))
    return seen == {threading.get_ident()}


def numpy_integers(library: Library) -> Any:
    pipe = library.Pipeline(np.int64(4), np.int32(1), None)
    return pipe.max_batch_size, pipe.num_threads


def writes_to_its_argument(sample: Any) -> Any:
    sample[:] = 7
    return sample


def calls_of_a_python_function(library: Library) -> list[Any]:
    """Return dtype, shape and writability of a per-sample function's argument."""
    seen = []

    def note(sample: Any) -> Any:
        seen.append((type(sample).__name__, sample.shape, bool(sample.flags.writeable)))
        return sample

    run(library, lambda: library.fn.python_function(source(library, PIXELS, PIXELS), function=note), batch_size=2)
    return seen


def branches_when_made(library: Library) -> Any:
    """Turn conditionals on when the pipeline is created, not when it is defined."""

    @library.pipeline_def
    def define() -> Any:
        if source(library, np.array(True)):
            chosen = library.types.Constant(1)
        else:
            chosen = library.types.Constant(2)
        return chosen

    pipe = define(**ONE, enable_conditionals=True)
    pipe.build()
    return described(pipe.run())


def branches_in_a_lambda(library: Library) -> Any:
    def choose(flag: Any) -> Any:
        if flag:
            chosen = library.types.Constant(1)
        else:
            chosen = library.types.Constant(2)
        return chosen

    made = library.pipeline_def(enable_conditionals=True)(lambda: choose(source(library, np.array(False))))
    pipe = made(**ONE)
    pipe.build()
    return described(pipe.run())


def sets_outside_of_a_pipeline(library: Library) -> Any:
    """Record an operator on a list of nodes before there is a pipeline."""
    nodes = library.fn.external_source(lambda: ([PIXELS], [PIXELS + 1]), 2, layout="HWC")
    turned = library.fn.rotate(list(nodes), angle=90)
    pipe = library.Pipeline(**ONE)
    pipe.set_outputs(*turned)
    pipe.build()
    return described(pipe.run())


def one_element_set(library: Library) -> str:
    with library.Pipeline(**ONE):
        return type(library.fn.copy([source(library, PIXELS)])).__name__


def one_element_of_a_source(library: Library) -> str:
    with library.Pipeline(**ONE):
        return type(library.fn.external_source(lambda: ([PIXELS],), num_outputs=1)).__name__


def conditional_namespace(library: Library) -> Any:
    def define() -> Any:
        data, where = source(library, *[np.int32(n) for n in range(4)]), source(library, *map(np.array, [True, False] * 2))
        yes, no = library.fn._conditional.split(data, predicate=where)
        return library.fn._conditional.merge(yes + 10, no, predicate=where)

    return run(library, define, batch_size=4)


def over_a_condition(library: Library) -> Any:
    """Use a node as a truth value while conditionals are off."""
    with library.Pipeline(**ONE):
        return bool(library.fn.constant(idata=[1]))


def shared_memory_statistics(library: Library) -> Any:
    pipe = library.Pipeline(**ONE, py_num_workers=1, py_start_method="fork")
    with pipe:
        pipe.set_outputs(library.fn.external_source(lambda info: np.int32([7]), parallel=True, batch=False))
    pipe.build()
    pipe.run()
    return sorted(pipe.external_source_shm_statistics())


def drawn_filter(library: Library) -> Any:
    """Draw the filter of a resize among enum members."""
    kinds = [library.types.DALIInterpType.INTERP_NN]
    image = source(library, PIXELS, layout="HWC")
    return run(library, lambda: library.fn.resize(image, size=[5, 5], interp_type=library.fn.random.choice(kinds)))


def the_same_seed_twice(library: Library) -> bool:
    """Compare two equal operators: they draw the same numbers."""
    fn = library.fn
    found = run(library, lambda: [fn.random.uniform(range=[0, 1], seed=123) for _ in range(2)])
    return found[0] == found[1]


def size_of_an_iterator(library: Library, images: Path) -> Any:
    pipe = library.Pipeline(**ONE)
    with pipe:
        pipe.set_outputs(library.fn.readers.file(file_root=str(images), name="R")[1])
    return library.iterator(pipe, ["x"], reader_name="R")._size


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two classes with three JPEGs in total."""
    root = tmp_path_factory.mktemp("images")
    for name in ("a/0", "a/1", "b/2"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / f"{name}.jpg").write_bytes(encoded(PIXELS, "JPEG"))
    return root


HALVES = np.arange(256, dtype=np.uint8).reshape(16, 16, 1)
NOISE = np.random.default_rng(1).integers(0, 256, (256, 256, 3)).astype(np.uint8)
BATCH = {"batch_size": 2}

CASES: dict[str, Case] = {
    "a node counts as iterable": is_iterable,
    "workers of a dropped pipeline": workers_left,
    "the thread of a source": thread_of_a_source,
    "integers of NumPy": numpy_integers,
    "a function writes to its argument": of(
        lambda lib, x: lib.fn.python_function(x(np.zeros(3, np.uint8)), function=writes_to_its_argument)
    ),
    "what a function is given": calls_of_a_python_function,
    "two layouts, one output": of(
        lambda lib, x: lib.fn.python_function(x(PIXELS), function=np.copy, output_layouts=["A", "B"])
    ),
    "conditionals when made": branches_when_made,
    "conditionals in what a lambda calls": branches_in_a_lambda,
    "a set outside of a pipeline": sets_outside_of_a_pipeline,
    "a set of one node": one_element_set,
    "one output of a source": one_element_of_a_source,
    "fn._conditional": conditional_namespace,
    "a node's truth value": over_a_condition,
    "shared memory of workers": shared_memory_statistics,
    "a filter drawn of enums": drawn_filter,
    "two draws with one seed": the_same_seed_twice,
    "cast to a type of types": of(lambda lib, x: lib.fn.cast(x(np.int32(7)), dtype=lib.types.DALIDataType.DATA_TYPE)),
    "a matrix as an array": of(
        lambda lib, x: lib.fn.experimental.warp_perspective(
            x(PIXELS, layout="HWC"), matrix=np.float32([[1, 0, 2], [0, 1, 1], [0, 0, 1]]), interp_type=lib.types.INTERP_NN
        )
    ),
    "an affine matrix as an array": of(
        lambda lib, x: lib.fn.warp_affine(
            x(PIXELS, layout="HWC"), matrix=np.float32([[1, 0, 2], [0, 1, 1]]), interp_type=lib.types.INTERP_NN
        )
    ),
    "a constant node for an angle": of(
        lambda lib, x: lib.fn.rotate(x(PIXELS, layout="HWC"), angle=lib.types.Constant(90), interp_type=lib.types.INTERP_NN)
    ),
    "arrays of one number for numbers": of(
        lambda lib, x: lib.fn.flip(
            lib.fn.resize(x(PIXELS, layout="HWC"), resize_x=np.array([5.0]), interp_type=lib.types.INTERP_NN),
            horizontal=np.array([1]),
        )
    ),
    "samples of one element for a flag": of(
        lambda lib, x: lib.fn.flip(x(PIXELS, PIXELS, layout="HWC"), horizontal=x(np.int32([0]), np.int32([1]))), **BATCH
    ),
    "samples of two elements for a flag": of(
        lambda lib, x: lib.fn.flip(x(PIXELS, PIXELS, layout="HWC"), horizontal=x(np.int32([0, 1]), np.int32([1, 1]))), **BATCH
    ),
    "samples of one element for a size": of(
        lambda lib, x: lib.fn.crop(x(PIXELS, layout="HWC"), crop_w=x(np.float32([4])), crop_h=3, crop_pos_x=x(np.float32([0.5])))
    ),
    "a scalar sample for a list": of(
        lambda lib, x: lib.fn.resize(x(PIXELS, layout="HWC"), size=x(np.float32(4)), interp_type=lib.types.INTERP_NN)
    ),
    "probabilities that are none": of(lambda lib, x: lib.fn.random.choice(3, p=[0.5, 0.6, 0.7])),
    "probabilities that are no numbers": of(lambda lib, x: lib.fn.random.choice(3, p=[float("nan"), 0.5, 0.5])),
    "a table of parameters of beta": of(lambda lib, x: lib.fn.random.beta(alpha=np.ones((2, 2), np.float32))),
    "salt and pepper beyond one": of(lambda lib, x: lib.fn.noise.salt_and_pepper(x(PIXELS, layout="HWC"), prob=2.0)),
    "a window of the Laplacian beyond its limit": of(
        lambda lib, x: lib.fn.laplacian(x(PIXELS, layout="HWC"), window_size=1001)
    ),
    "a random crop to three sizes": of(lambda lib, x: lib.fn.random_resized_crop(x(PIXELS, layout="HWC"), size=[4, 4, 4])),
    "smoothing of each axis": of(
        lambda lib, x: lib.math.floor(
            lib.fn.laplacian(x(PIXELS, layout="HWC"), window_size=[5, 5], smoothing_size=[1, 3], dtype=lib.types.FLOAT) + 0.5
        )
    ),
    "axes that slice does not have": of(lambda lib, x: lib.fn.slice(x(PIXELS, layout="HWC"), [0.1], [0.5], axes=[5])),
    "unsigned 64-bit data": of(lambda lib, x: lib.fn.copy(x(np.zeros(3, np.ulonglong)))),
    "a size of nearly nothing": of(
        lambda lib, x: lib.fn.resize(x(PIXELS, layout="HWC"), size=(1e-10, 1e-10), interp_type=lib.types.INTERP_NN)
    ),
    "full_like of an array": of(lambda lib, x: lib.fn.full_like(x(np.int32([1, 2])), np.array([3]))),
    "the smallest label there is": of(
        lambda lib, x: lib.fn.segmentation.random_object_bbox(
            x(np.int32([[0, -(2**31)], [2**31 - 1, 0]])), classes=[0, -(2**31), 2**31 - 1], foreground_prob=0, format="box"
        )
    ),
    "halves of contrast": of(lambda lib, x: lib.fn.brightness_contrast(x(HALVES, layout="HWC"), contrast=0.5)),
    "halves of brightness": of(lambda lib, x: lib.fn.brightness(x(HALVES, layout="HWC"), brightness=0.7)),
    "halves of contrast and a shift": of(
        lambda lib, x: lib.fn.brightness_contrast(
            x(HALVES, layout="HWC"), contrast=1.5, brightness_shift=1.0, brightness=-1.0
        )
    ),
    "waves of whole numbers": of(lambda lib, x: lib.fn.water(x(NOISE, layout="HWC"))),
    "encoded data of one row": of(lambda lib, x: lib.fn.decoders.image(x(np.frombuffer(encoded(PIXELS, "JPEG"), np.uint8)[None]))),
    "the shape of encoded data of one row": of(
        lambda lib, x: lib.fn.peek_image_shape(x(np.frombuffer(encoded(PIXELS, "JPEG"), np.uint8)[None]))
    ),
}  # fmt: skip


@table(CASES)
def test_moving_over(case: Case) -> None:
    check(case)


def test_the_size_of_an_iterator(images: Path) -> None:
    check(lambda library: size_of_an_iterator(library, images))
