"""``python -m tests.helpers.proxy_parity_script PACKAGE``: runs the cases of ``parity.plugin.test_proxy``, prints JSON.

A separate process: the real DALI's proxy waits forever after an error.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from typing import Any

import numpy as np
import PIL.Image
import torch

from tests.helpers import proxy_data as data


def _single(fn: Any) -> Any:
    return fn.external_source(name="x", no_copy=True) * np.float32(2)


def _double(fn: Any) -> Any:
    left, right = fn.external_source(name="left"), fn.external_source(name="right")
    return left + right, left - right, left * right


def _small(fn: Any) -> Any:
    return fn.resize(fn.external_source(name="x", layout="HWC"), size=(2, 3))


def picture(proxy: Any, i: int) -> Any:
    return proxy(PIL.Image.new("RGB", (4, 5), (i, 0, 9))), i


def by_name_dict(proxy: Any, i: int) -> Any:
    return {"outputs": proxy(right=data.vector(2), left=data.vector(i)), "label": [i, float(i)]}


def stacked(samples: list[Any]) -> Any:
    return torch.utils.data.default_collate([s[0] for s in samples]), [s[1] for s in samples]


def scaled(proxy: Any, i: int) -> Any:
    return proxy(x=data.vector(i)), np.float64(i)


CASES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "labels": (_single, data.labelled, {}),
    "by name, one input": (_single, scaled, {}),
    "several outputs": (_double, by_name_dict, {}),
    "pictures": (_small, picture, {}),
    "collate": (_single, data.labelled, {"collate_fn": stacked}),
    "shuffled": (_single, data.labelled, {"sampler": [9, 4, 3, 7, 1]}),
    "batch sampler": (_single, data.labelled, {"batch_size": 1, "batch_sampler": [[1, 2], [5]]}),
    "no last batch": (_single, data.labelled, {"drop_last": True}),
}


def _described(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return [type(value).__name__, str(value.dtype), value.tolist()]
    if isinstance(value, dict):
        return {key: _described(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(_described, value)]
    return value


def outcome(package: str, case: str) -> Any:
    """Return the batches of one epoch, as JSON values."""
    fn = importlib.import_module(f"{package}.fn")
    proxy = importlib.import_module(f"{package}.plugin.pytorch.experimental.proxy")
    define, make, options = CASES[case]
    sizes = {"batch_size": 4, "num_threads": 1, "device_id": None}
    pipe = importlib.import_module(package).pipeline_def(define)(fn, **sizes)
    options = {"batch_size": 4, "num_workers": 1, **options}
    with proxy.DALIServer(pipe, deterministic=True) as server:
        return [
            _described(b)
            for b in proxy.DataLoader(server, data.Made(server.proxy, make), **options)
        ]


def surface(package: str) -> Any:
    """Return the callables and their arguments, without arguments that only one of the two libraries has."""
    proxy = importlib.import_module(f"{package}.plugin.pytorch.experimental.proxy")
    names = ["produce_data", "proxy", "start_thread", "stop_thread", "__enter__", "__exit__"]
    return {
        "server": list(inspect.signature(proxy.DALIServer.__init__).parameters)[:3],
        "loader": list(inspect.signature(proxy.DataLoader.__init__).parameters),
        "methods": [n for n in names if hasattr(proxy.DALIServer, n)],
        "listening": hasattr(proxy.DataLoader, "ensure_server_listening"),
    }


if __name__ == "__main__":
    found = {case: outcome(sys.argv[1], case) for case in CASES}
    print(json.dumps({**found, "surface": surface(sys.argv[1])}))
