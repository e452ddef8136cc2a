"""Mistakes, serialization and functions of the backend against the real DALI: the same results and exceptions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.libraries import Case, Library, check, described, table

pytestmark = pytest.mark.golden


# ---------------------------------------------------------------- common mistakes


def mistake(define: Callable[[Library], Any], **arguments: Any) -> Case:
    """Define one output, run it twice; the first error counts."""

    def case(lib: Library) -> Any:
        pipe = lib.Pipeline(**{"batch_size": 2, "num_threads": 1, "device_id": None, **arguments})
        with pipe:
            pipe.set_outputs(define(lib))
        return described(pipe.run()), described(pipe.run())

    return case


def image(lib: Library, data: bytes = b"P5\n2 1\n255\n\x01\x02", **arguments: Any) -> Any:
    encoded = np.frombuffer(data, np.uint8)
    source = lib.fn.external_source(source=lambda: [encoded] * 2)
    return lib.fn.decoders.image(source, **arguments)


def failing(error: type[Exception]) -> Callable[[int], Any]:
    def source(i: int) -> Any:
        raise error("in a source")

    return source


def fed(lib: Library, count: int, **arguments: Any) -> Any:
    return lib.fn.external_source(source=lambda: [np.zeros(2)] * count, **arguments)


MISTAKES: dict[str, Case] = {
    "unknown argument": mistake(lambda lib: lib.fn.crop(image(lib), foo=1)),
    "required argument missing": mistake(lambda lib: lib.fn.cast(image(lib))),
    "value of a wrong type": mistake(lambda lib: lib.fn.crop(image(lib), crop_h="a", crop_w=1)),
    "argument before and in the call": mistake(lambda lib: lib.ops.Crop(crop_h=1, crop_w=1)(image(lib), crop_w=1)),
    "nothing before, argument in the call": mistake(lambda lib: lib.ops.Crop(crop_h=1, crop_w=None)(image(lib), crop_w=1)),
    "too many inputs": mistake(lambda lib: lib.fn.crop(image(lib), image(lib))),
    "too few inputs": mistake(lambda lib: lib.fn.crop(crop=(1, 1))),
    "no device": mistake(lambda lib: image(lib), device_id="x"),
    "a pickler without need": mistake(lambda lib: image(lib), py_callback_pickler=3),
    "an old name without a value": mistake(
        lambda lib: lib.fn.crop(image(lib), crop=(1, 1), dtype=lib.types.FLOAT, output_dtype=None)
    ),
    "no parts to join": mistake(lambda lib: lib.fn.cat()),
    "no parts to stack": mistake(lambda lib: lib.fn.stack(axis=1)),
    "None for an input": mistake(lambda lib: lib.fn.copy(None)),
    "None in an input set": mistake(lambda lib: lib.fn.copy([image(lib), None])[0]),
    "None for a second input": mistake(lambda lib: lib.fn.cast_like(image(lib), None)),
    "a number for a name": mistake(lambda lib: lib.fn.copy(image(lib), name=3)),
    "types of several outputs of one": mistake(lambda lib: fed(lib, 2, dtype=[lib.types.FLOAT64])),
    "axes of several outputs of one": mistake(lambda lib: fed(lib, 2, ndim=[1])),
    "a node for a constant": mistake(
        lambda lib: lib.fn.decoders.image(image(lib), output_type=lib.fn.constant(idata=[1]))
    ),
    "unknown device": mistake(lambda lib: lib.fn.crop(image(lib), crop=(1, 1), device="cuda")),
    "a GPU operator without a GPU": mistake(lambda lib: image(lib).gpu()),
    "mixed without a GPU": mistake(lambda lib: image(lib, device="mixed")),
    "unreadable image": mistake(lambda lib: image(lib, b"nonsense")),
    "missing file": mistake(
        lambda lib: lib.fn.readers.file(files=["/nonexistent/file"], labels=[0])[0]
    ),
    "missing folder": mistake(lambda lib: lib.fn.readers.file(file_root="/nonexistent")[0]),
    "no files at all": mistake(lambda lib: lib.fn.readers.file()[0]),
    "more shards than files": mistake(
        lambda lib: lib.fn.readers.file(files=["a"], labels=[0], num_shards=3)[0]
    ),
    "an error in a source": mistake(lambda lib: lib.fn.external_source(source=failing(KeyError))),
    "another error in a source": mistake(
        lambda lib: lib.fn.external_source(source=failing(ZeroDivisionError))
    ),
    "a batch that is too large": mistake(lambda lib: fed(lib, 3)),
    "an empty batch": mistake(lambda lib: fed(lib, 0, dtype=lib.types.FLOAT64, ndim=1)),
    "a batch of strings": mistake(lambda lib: lib.fn.external_source(source=lambda: ["a", "b"])),
    "sources of different sizes": mistake(lambda lib: fed(lib, 2) + fed(lib, 1)),
    "out of bounds": mistake(lambda lib: lib.fn.crop(image(lib), crop=(5, 5))),
    "bool of a node": mistake(lambda lib: bool(lib.fn.random.uniform())),
    "length of a node": mistake(lambda lib: len(lib.fn.random.uniform())),
    "iterating over a node": mistake(lambda lib: list(lib.fn.random.uniform())),
    "an if on a node": mistake(lambda lib: 1 if lib.fn.random.coin_flip() else 2),
}


@table(MISTAKES)
def test_mistakes(case) -> None:
    check(case)


# ---------------------------------------------------------------- saving


def simple(lib: Library, **arguments: Any) -> Any:
    pipe = lib.Pipeline(**{"batch_size": 2, "num_threads": 1, "device_id": None, **arguments})
    with pipe:
        pipe.set_outputs(lib.fn.constant(idata=[1, 2]), lib.fn.constant(fdata=[0.5]) + 1)
    return pipe


def restored(lib: Library, tmp_path: Path, way: str) -> Any:
    saved, path = simple(lib).serialize(), str(tmp_path / "pipe")
    assert simple(lib).serialize(filename=path) == Path(path).read_bytes()
    if way == "bytes":
        return lib.Pipeline.deserialize(saved)
    if way == "file":
        return lib.Pipeline.deserialize(filename=path)
    if way == "overridden":
        return lib.Pipeline.deserialize(saved, batch_size=5, num_threads=2)
    pipe = lib.Pipeline(3, 1, None)
    pipe.deserialize_and_build(saved)
    return pipe


@pytest.mark.parametrize("way", ["bytes", "file", "overridden", "and build"])
def test_serialized_pipelines(tmp_path, way) -> None:
    def case(lib: Library) -> Any:
        pipe = restored(lib, tmp_path, way)
        return pipe.max_batch_size, pipe.num_threads, described(pipe.run())

    check(case)


SAVING: dict[str, Case] = {
    "nothing given": lambda lib: lib.Pipeline.deserialize(),
    "both given": lambda lib: lib.Pipeline.deserialize(simple(lib).serialize(), "file"),
    "garbage": lambda lib: lib.Pipeline.deserialize(b"xxxx"),
    "missing file": lambda lib: lib.Pipeline.deserialize(filename="/nonexistent/file"),
    "no graph": lambda lib: lib.Pipeline(2, 1, None).serialize(),
    "define_graph": lambda lib: isinstance(
        lib.Pipeline(2, 1, None).serialize(define_graph=lambda: lib.fn.random.uniform()), bytes
    ),
    "checkpoint": lambda lib: isinstance(
        simple(lib, enable_checkpointing=True).checkpoint(), bytes
    ),
    "garbage checkpoint": lambda lib: simple(
        lib, enable_checkpointing=True, checkpoint="garbage"
    ).run(),
    "checkpoint of a number": lambda lib: simple(
        lib, enable_checkpointing=True, checkpoint=5
    ).run(),
}


@table(SAVING)
def test_saving(case) -> None:
    check(case)


def test_restored_checkpoints(tmp_path) -> None:
    for name in "abcdefg":
        (tmp_path / "class").mkdir(exist_ok=True)
        (tmp_path / "class" / f"{name}.jpg").write_bytes(name.encode())

    def case(lib: Library) -> Any:
        def make(**arguments: Any) -> Any:
            pipe = lib.Pipeline(2, 1, None, seed=1, enable_checkpointing=True, **arguments)
            with pipe:
                data, _ = lib.fn.readers.file(file_root=str(tmp_path), name="reader")
                pipe.set_outputs(data)
            return pipe

        pipe = make()
        pipe.run()
        new = make(checkpoint=pipe.checkpoint())
        before = new.is_restored_from_checkpoint
        new.build()
        return before, new.is_restored_from_checkpoint, described(new.run()), described(new.run())

    check(case)


# ---------------------------------------------------------------- backend

BACKEND: dict[str, Callable[[Any], Any]] = {
    "growth factors": lambda b: [
        b.SetBufferGrowthFactor(1.7),
        b.GetHostBufferGrowthFactor(),
        b.GetDeviceBufferGrowthFactor(),
        b.SetHostBufferGrowthFactor(1.1),
        b.SetDeviceBufferGrowthFactor(1.1),
        b.GetHostBufferGrowthFactor(),
    ],
    "growth below 1": lambda b: b.SetHostBufferGrowthFactor(0.5),
    "growth above 4": lambda b: b.SetDeviceBufferGrowthFactor(20),
    "both below 1": lambda b: b.SetBufferGrowthFactor(0.5),
    "threshold": lambda b: [
        b.SetHostBufferShrinkThreshold(0.3),
        b.GetHostBufferShrinkThreshold(),
        b.SetHostBufferShrinkThreshold(0.5),
    ],
    "threshold below 0": lambda b: b.SetHostBufferShrinkThreshold(-1),
    "threshold above 1": lambda b: b.SetHostBufferShrinkThreshold(2),
    "release": lambda b: b.ReleaseUnusedMemory(),
    "restrict": lambda b: b.RestrictPinnedMemUsage(),
    "schema": lambda b: [
        (s.Name(), s.OperatorName(), s.ModulePath(), s.MinNumInput(), s.MaxNumInput())
        for s in map(b.GetSchema, ("Resize", "readers__File", "random__CoinFlip"))
    ],
    "arguments": lambda b: [
        [b.GetSchema("random__Uniform").HasArgument(n) for n in ("range", "seed", "foo")],
        [b.GetSchema("random__Uniform").IsTensorArgument(n) for n in ("range", "dtype")],
        b.GetSchema("random__Uniform").IsArgumentOptional("range"),
    ],
    "no such schema": lambda b: b.GetSchema("foo"),
    "maybe a schema": lambda b: b.TryGetSchema("foo"),
    "registered": lambda b: [name in b.RegisteredCPUOps() for name in ("Resize", "foo")],
    "no such library": lambda b: b.LoadLibrary("/nonexistent.so"),
    "it may fail": lambda b: b.LoadLibrary("/nonexistent.so", False, True),
    "no such folder": lambda b: b.LoadDirectory("/nonexistent"),
}


@pytest.mark.parametrize("call", BACKEND.values(), ids=BACKEND)
def test_backend(call) -> None:
    check(lambda lib: call(lib.backend))
