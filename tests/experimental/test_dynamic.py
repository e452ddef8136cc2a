"""The dynamic mode: tensors, batches, lazy evaluation, random numbers, devices and dtypes.

`tests.check` runs every case of every operator in the dynamic mode, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from torchdali import dynamic as ndd
from torchdali import fn, types

IMAGES = [np.random.default_rng(i).integers(0, 256, (9 + i, 7, 3), np.uint8) for i in range(4)]


def test_short_name() -> None:
    import torchdali.dynamic
    import torchdali.experimental.dynamic

    assert torchdali.dynamic is torchdali.experimental.dynamic


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (3, ndd.int32, ()),
        (2.5, ndd.float32, ()),
        (True, ndd.bool, ()),
        ([[1, 2], [3, 4]], ndd.int32, (2, 2)),
        ([1, 2.5], ndd.float32, (2,)),
        (np.float64([1, 2]), ndd.float64, (2,)),
        (np.int64(3), ndd.int64, ()),
        (torch.ones(3, dtype=torch.float16), ndd.float16, (3,)),
        (b"abc", ndd.uint8, (3,)),
    ],
    ids=repr,
)
def test_types_of_data(data: Any, dtype: Any, shape: tuple[int, ...]) -> None:
    made = ndd.tensor(data)
    assert made.dtype == dtype and made.shape == shape and made.device == ndd.Device.CPU
    assert made.nbytes == made.size * dtype.bytes


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: ndd.tensor("abc"), TypeError),
        (lambda: ndd.tensor(2**40), OverflowError),
        (lambda: ndd.Tensor(), ValueError),
        (lambda: ndd.batch([]), ValueError),
        (lambda: ndd.batch([np.zeros(2), np.zeros((2, 2))]), ValueError),
        (lambda: ndd.tensor(np.zeros((2, 2)), layout="HWC"), ValueError),
        (lambda: ndd.batch([1, 2]) + ndd.batch([1, 2, 3]), ValueError),
        (lambda: ndd.tensor([1, 2]).item(), ValueError),
        (lambda: ndd.tensor(1)[0], ValueError),
        (lambda: ndd.batch([1, 2]).select(5), IndexError),
        (lambda: ndd.batch([[1], [1, 2]]).torch(), ValueError),
        (lambda: ndd.rotate(IMAGES[0], angel=3.0), TypeError),
        (lambda: ndd.rotate(IMAGES[0]), TypeError),
        (lambda: ndd.flip(), TypeError),
        (lambda: ndd.flip(IMAGES[0], IMAGES[0]), TypeError),
        (lambda: ndd.cat(), TypeError),
        (lambda: ndd.random.uniform(rng=3), TypeError),
        (lambda: ndd.Device("tpu"), ValueError),
        (lambda: ndd.dtype("f31"), ValueError),
        (lambda: ndd.EvalContext(num_threads=0), ValueError),
        (lambda: ndd.set_num_threads(0), ValueError),
    ],
)
def test_mistakes(make: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        make()


def test_memory_is_shared_where_promised() -> None:
    data = np.arange(4, dtype=np.int32)
    assert ndd.as_tensor(data).torch().data_ptr() == torch.from_numpy(data).data_ptr()
    assert ndd.tensor(data).torch().data_ptr() != torch.from_numpy(data).data_ptr()
    stacked = np.zeros((3, 2), np.float32)
    assert ndd.as_batch(stacked).torch().data_ptr() == torch.from_numpy(stacked).data_ptr()
    assert np.asarray(ndd.as_tensor(data)).ctypes.data == data.ctypes.data
    batch = ndd.as_batch([data])
    assert ndd.as_batch(batch) is batch


def test_a_batch() -> None:
    batch = ndd.batch([[1, 2, 3], [4, 5]], layout="X")
    assert batch.batch_size == 2 and batch.shape == [(3,), (2,)] and batch.layout == "X"
    assert batch.select(1).torch().tolist() == [4, 5]
    assert batch.select([1]).shape == [(2,)]
    assert batch.select(slice(0, 1)).shape == [(3,)]
    assert [t.shape for t in batch] == [(3,), (2,)]
    assert batch.slice[1].torch().tolist() == [2, 5]
    assert batch.slice[ndd.batch([2, 0])].torch().tolist() == [3, 4]
    assert batch.torch(pad=True).tolist() == [[1, 2, 3], [4, 5, 0]]
    assert ndd.Batch.broadcast([1, 2], 3).torch().tolist() == [[1, 2]] * 3
    assert ndd.as_tensor(ndd.batch([[1], [2]])).shape == (2, 1)
    assert "num_samples=2" in str(batch)


def test_a_tensor_is_a_number_and_a_sequence() -> None:
    tensor = ndd.tensor([[1, 2], [3, 4]])
    assert [row.torch().tolist() for row in tensor] == [[1, 2], [3, 4]]
    assert len(tensor) == 2 and int(tensor[0, 1]) == 2 and float(tensor[1, 0]) == 3.0
    assert [10, 20, 30][ndd.tensor(1)] == 20
    with pytest.raises(TypeError):
        hash(tensor)


def test_arithmetic_as_in_a_pipeline() -> None:
    tensor = ndd.tensor([1, 2])
    cases = [
        (tensor + 1.5, ndd.float32, [2.5, 3.5]),
        (1 - tensor, ndd.int32, [0, -1]),
        (tensor / 2, ndd.float32, [0.5, 1.0]),
        (tensor + np.int64([1, 1]), ndd.int64, [2, 3]),
        (np.int64([1, 1]) + tensor, ndd.int64, [2, 3]),
        (tensor == 2, ndd.bool, [False, True]),
        (-tensor, ndd.int32, [-1, -2]),
        (ndd.math.max(tensor, 2), ndd.int32, [2, 2]),
        (ndd.math.pow(2, tensor), ndd.int32, [2, 4]),
        (ndd.math.sqrt(4), ndd.float32, 2),
        (ndd.math.max(1, 2), ndd.int32, 2),
    ]
    for result, dtype, values in cases:
        assert result.dtype == dtype and result.torch().tolist() == values


def test_a_chain_equals_the_functions() -> None:
    batch = ndd.as_batch(IMAGES, layout="HWC")
    angles = [10.0, 20.0, 30.0, 40.0]
    result = ndd.resize(ndd.rotate(batch, angle=ndd.as_batch(angles)), size=[5, 6]) + 1
    for i, image in enumerate(IMAGES):
        turned = fn.rotate(torch.from_numpy(image), angle=angles[i])
        expected = fn.resize(turned, size=[5, 6]).to(torch.int32) + 1
        assert torch.equal(result.select(i).torch(), expected)


def operation_of(value: Any) -> Any:
    """Return the call whose result a value is."""
    return value._result.operation


def is_computed(value: Any) -> bool:
    """Return True if a value is computed."""
    return value._list is not None


def test_intermediate_results_are_computed_once_and_cached() -> None:
    turned = ndd.rotate(ndd.as_batch(IMAGES), angle=45.0)
    resized = ndd.resize(turned, size=[5, 6])
    assert resized.shape == [(5, 6, 3)] * 4
    assert not is_computed(turned) and operation_of(turned).results is not None
    assert turned.shape[0][:2] != (5, 6)


def test_the_modes() -> None:
    batch = ndd.as_batch(IMAGES)
    with ndd.EvalMode.deferred:
        assert not is_computed(ndd.flip(ndd.as_tensor(IMAGES[0])))
        with ndd.EvalMode.sync_cpu:
            assert is_computed(ndd.flip(batch))
        assert ndd.EvalMode.current() is ndd.EvalMode.deferred
    assert is_computed(ndd.flip(ndd.as_tensor(IMAGES[0])))
    assert ndd.EvalMode.current() is ndd.EvalMode.eager


def test_leaving_a_context_computes_its_results() -> None:
    with ndd.EvalContext(num_threads=2) as context:
        flipped = ndd.flip(ndd.as_batch(IMAGES))
        assert context.num_threads == 2 and ndd.EvalContext.current() is context
    assert operation_of(flipped).results is not None


def test_errors_name_the_line_of_the_call() -> None:
    decoded = ndd.decoders.image(ndd.as_batch([np.arange(9, dtype=np.uint8)] * 2))  # the line
    with pytest.raises(RuntimeError, match=r"decoders\.image.*sample 0(.|\n)*# the line"):
        decoded.evaluate()


def test_random_numbers_come_from_the_generator() -> None:
    def draw(rng: Any) -> list[Any]:
        return [
            ndd.random.uniform(batch_size=3, rng=rng).torch().tolist(),
            ndd.random.normal(shape=[2], rng=rng).torch().tolist(),
            ndd.random.coin_flip(batch_size=5, rng=rng).torch().tolist(),
        ]

    first, second = ndd.random.RNG(5), ndd.random.RNG(5)
    numbers = draw(first)
    assert numbers == draw(second) and numbers != draw(second)
    resumed = ndd.random.RNG(state=first.state)
    assert draw(resumed) == draw(first)
    assert first.clone()() == first()
    ndd.random.set_seed(3)
    default = draw(None)
    ndd.random.set_seed(3)
    assert draw(None) == default


def test_random_numbers_do_not_depend_on_batching() -> None:
    images = ndd.as_batch(IMAGES * 2)

    def run(at_once: bool) -> torch.Tensor:
        rng = ndd.random.RNG(9)
        cropped = ndd.random_resized_crop(images, size=[8, 8], rng=rng)
        if at_once:
            cropped.evaluate()
        mirror = ndd.random.coin_flip(batch_size=8, rng=rng)
        return ndd.flip(cropped, horizontal=mirror).torch()

    assert torch.equal(run(True), run(False))


def test_torch_tensors_in_and_out_with_gradients() -> None:
    x = torch.rand(4, 5, 3, requires_grad=True)
    y = ndd.brightness_contrast(x, brightness=2.0, torch=True, dtype=types.FLOAT)
    assert isinstance(y, torch.Tensor)
    y.sum().backward()
    assert x.grad is not None and torch.allclose(x.grad, torch.full_like(x, 2.0))
    batch = ndd.flip(ndd.as_batch([x, x]), torch=True)
    assert batch.requires_grad


def test_types_convert() -> None:
    assert ndd.float32([1, 2]).dtype == ndd.float32
    assert isinstance(ndd.int16(ndd.batch([1.5, 2])), ndd.Batch)
    assert ndd.cast(ndd.tensor([1, 2]), dtype=ndd.float16).dtype == ndd.float16
    assert ndd.dtype(torch.uint8) is ndd.uint8 and ndd.type_id(ndd.bool) == types.BOOL


def test_memory_does_not_grow_in_a_loop() -> None:
    import weakref

    value = ndd.batch([[0.0]] * 4)
    seen = []
    for _ in range(5):
        value = value + 1
        seen.append(weakref.ref(operation_of(value)))
        value.evaluate()
    assert value.torch().tolist() == [[5.0]] * 4
    assert sum(ref() is not None for ref in seen) == 0


@pytest.mark.parametrize("make", [ndd.tensor, lambda image: ndd.batch([image, image])])
def test_a_call_that_fails_is_a_runtime_error_that_names_the_operator(make: Any) -> None:
    image = make(np.zeros((4, 4, 4), np.uint8))
    for kind in (RuntimeError, ValueError):  # DALI's class, and the cause's class
        with pytest.raises(kind, match=r"'hue' failed(.|\n)*3 channels, got 4"):
            ndd.hue(image, hue=3.0).evaluate()
