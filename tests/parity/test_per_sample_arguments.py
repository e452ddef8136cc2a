"""Per-sample arguments: where a scalar is expected, both libraries accept samples of one element and reject others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.per_sample_cases import NUMBERS, Case, images

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]
pytest.importorskip("nvidia.dali", reason="needs NVIDIA DALI")

from nvidia.dali import fn, pipeline_def  # noqa: E402

import torchdali  # noqa: E402


def accepts(library: Any, pipeline: Any, case: Case, shape: tuple[int, ...]) -> bool:
    values = np.array(case.values).astype(np.int32 if isinstance(case.values[0], int) else np.float32)
    given = np.broadcast_to(values.reshape(4, *[1] * len(shape)), (4, *shape)).copy()

    @pipeline(batch_size=4, num_threads=1, device_id=None)
    def define() -> Any:
        data = library.external_source(lambda: images(), layout="HWC")
        return case.call(library, data, library.external_source(lambda: given))

    try:
        pipe = define()
        pipe.build()
        pipe.run()
    except Exception:
        return False
    return True


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (2,), (0,)], ids=str)
@pytest.mark.parametrize("name", [name for name in NUMBERS if name != "coin_flip"])  # DALI accepts only () there
def test_shapes_of_numbers(name: str, shape: tuple[int, ...]) -> None:
    case = NUMBERS[name]
    ours = accepts(torchdali.fn, torchdali.pipeline_def, case, shape)
    assert ours == accepts(fn, pipeline_def, case, shape)
