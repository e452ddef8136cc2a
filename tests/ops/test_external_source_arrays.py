"""Arrays and tensors of any form from a source: the same in worker processes as in the main process."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from torchdali import fn, pipeline_def

A = np.arange(24, dtype=np.float64).reshape(2, 3, 4)
BYTES = np.frombuffer(bytes(range(27)), np.uint8)

ARRAYS = {
    "empty beside others": (np.zeros((0, 4)), np.int32([1])),
    "empty in the middle": (np.zeros((3, 0, 2), np.float32), np.zeros(0, np.uint8)),
    "empty, upside down": (A[:0, ::-1],),
    "empty, transposed": (np.zeros((0, 3)).T,),
    "number": (np.float32(3),),
    "no axes": (np.array(3.5),),
    "upside down": (A[::-1, :, ::-2],),
    "Fortran": (np.asfortranarray(A),),
    "every second": (A[:, ::2],),
    "repeated": (np.broadcast_to(np.float32([1, 2]), (3, 2)),),
    "big endian floats": (A.astype(">f4"),),
    "big endian integers": (A.astype(">i8"),),
    "read only": (BYTES,),
    "unaligned": (BYTES[1:25].view(np.float64),),
    "matrix": (np.asmatrix([[1, 2], [3, 4]]),),
    "masked": (np.ma.masked_array([1, 2, 3], [0, 1, 0]),),
    "tensor with a gradient": (torch.ones(3, requires_grad=True),),
    "tensor, transposed": (torch.arange(12.0).reshape(3, 4).t(),),
    "tensor, repeated": (torch.ones(1).expand(4),),
    "tensor, negated when read": (torch._neg_view(torch.ones(3)),),
    **{kind: (A.astype(kind),) for kind in ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8")},
}
REFUSED = {
    "complex numbers": A.astype(np.complex64),
    "objects": np.array([None, 3], object),
    "records": np.zeros(3, [("a", "i4")]),
    "text": np.array(["a", "bc"]),
    "dates": np.array(["2020-01-01"], "M8[D]"),
    "bfloat16": torch.ones(3, dtype=torch.bfloat16),
    "sparse": torch.eye(3).to_sparse(),
    "a list": [1, 2, 3],
    "int": 5,
}


def delivered(values, parallel, batch):
    """Return dtype, shape and bytes of each sample of each output, or the error."""

    def sample(info):
        return values if len(values) > 1 else values[0]

    def whole(number):
        columns = [[value] * 3 for value in values]
        return columns if len(columns) > 1 else columns[0]

    @pipeline_def(batch_size=3, num_threads=1, device_id=None, py_start_method="fork", py_num_workers=1)
    def define():
        count = len(values) if len(values) > 1 else None
        return fn.external_source(source=whole if batch else sample, batch=batch, parallel=parallel, num_outputs=count)

    pipe = define() if len(values) == 1 else _several(define)
    try:
        pipe.build()
        return [
            (output.dtype, output.layout(), [(tuple(s.shape), s.numpy().tobytes()) for s in output.samples()])
            for output in pipe.run()
        ]
    except RuntimeError as error:
        return str(error).partition("\n")[0]
    finally:
        pipe.close()


def _several(define):
    @pipeline_def(batch_size=3, num_threads=1, device_id=None, py_start_method="fork", py_num_workers=1)
    def outputs():
        return tuple(define.__wrapped__())

    return outputs()


@pytest.mark.thin(7)
@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("name", ARRAYS)
def test_arrays(name, batch):
    values = ARRAYS[name]
    expected = delivered(values, False, batch)
    assert not isinstance(expected, str)
    plain = [np.array(value.detach().resolve_neg().numpy() if isinstance(value, torch.Tensor) else value) for value in values]
    found = [(shape, data) for _, _, samples in expected for shape, data in samples[:1]]
    assert found == [(value.shape, value.astype(value.dtype.newbyteorder("=")).tobytes()) for value in plain]
    assert delivered(values, True, batch) == expected


@pytest.mark.thin(4)
@pytest.mark.parametrize("name", REFUSED)
def test_non_numeric_arrays_are_rejected(name):
    message = delivered((REFUSED[name],), False, False)
    assert isinstance(message, str)
    assert delivered((REFUSED[name],), True, False) == message
