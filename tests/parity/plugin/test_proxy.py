"""The proxy against the real DALI's: the same scripts return the same batches.

Only successful scripts are compared: after a wrong call or sample, the real proxy waits forever (missing or
unknown inputs, torch tensors without a GPU, a batch that is too large, an error of the dataset or of
the pipeline); in torchdali each is an error, see ``test_proxy``. The real proxy also needs workers, and takes several
inputs by name only.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.proxy_parity_script import CASES

pytest.importorskip(
    "nvidia.dali",
    reason="the parity tests compare with the real DALI: install the extra 'parity'",
)
pytestmark = pytest.mark.parity


@functools.cache
def _outcomes(package: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.helpers.proxy_parity_script", package],
        capture_output=True,
        text=True,
        cwd=Path(__file__).resolve().parents[3],
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("case", [*CASES, "surface"])
def test_results_match_the_real_proxy(case: str) -> None:
    assert _outcomes("torchdali")[case] == _outcomes("nvidia.dali")[case]
