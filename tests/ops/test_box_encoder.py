"""Box encoder, compared with a loop over boxes and anchors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from tests.check import Result, check
from tests.helpers.boxes import f32, i32, overlap, some_boxes
from torchdali import fn

Array = npt.NDArray[Any]


def last_best(values: Sequence[float]) -> int:
    return max(range(len(values)), key=lambda i: (values[i], i))


def centered(box: Array) -> Array:
    low, high = box[:2], box[2:]
    return np.concatenate([(low + high) / 2, high - low])


def encoded(name: str, inputs: Any, arguments: Mapping[str, Any], layouts: Any) -> list[Result]:
    """Encode boxes one by one."""
    anchors = np.array(arguments["anchors"], np.float64).reshape(-1, 4)
    means, stds = (
        np.array(arguments.get(k, d)) for k, d in (("means", [0.0] * 4), ("stds", [1.0] * 4))
    )
    rows, names = [], []
    for boxes, labels in zip(*inputs, strict=True):
        owner: dict[int, int] = {}
        for i, anchor in enumerate(anchors):
            scores = [overlap(box.astype(np.float64), anchor) for box in boxes]
            if scores and max(scores) > arguments.get("criteria", 0.5):
                owner[i] = last_best(scores)
        for k, box in enumerate(boxes):
            owner[last_best([overlap(box.astype(np.float64), anchor) for anchor in anchors])] = k
        found = []
        for i, anchor in enumerate(map(centered, anchors)):
            box = centered(boxes[owner[i]].astype(np.float64)) if i in owner else anchor
            if arguments.get("offset"):
                scaled, base = (
                    box * arguments.get("scale", 1.0),
                    anchor * arguments.get("scale", 1.0),
                )
                moved = np.concatenate(
                    [(scaled - base)[:2] / base[2:], np.log(scaled[2:] / base[2:])]
                )
                box = (moved - means) / stds if i in owner else np.zeros(4)
            found.append(box)
        rows.append(np.array(found, np.float32))
        names.append(
            np.array([labels[owner[i]] if i in owner else 0 for i in range(len(anchors))], np.int32)
        )
    return [Result(rows, ""), Result(names, "")]


ANCHORS = some_boxes(40, 0).ravel().tolist()
ENCODINGS: list[dict[str, Any]] = [
    {},
    {"criteria": 0.3},
    {"criteria": 1.0},
    {"criteria": 0.0},
    {"offset": True},
    {"offset": True, "scale": 300.0, "means": [0.1, 0.2, 0.3, 0.4], "stds": [0.5, 0.6, 0.7, 0.8]},
]


@pytest.mark.parametrize("arguments", ENCODINGS, ids=str)
def test_box_encoder(arguments: dict[str, Any]) -> None:
    boxes = [some_boxes(count, count + 1) for count in (1, 0, 5, 9)]
    labels = [np.arange(1, len(b) + 1, dtype=np.int32) for b in boxes]
    check(
        "box_encoder",
        [boxes, labels],
        {"anchors": ANCHORS, **arguments},
        expected=encoded,
        relative=1e-5,
        level=1e-5,
    )


def test_the_last_of_equal_boxes_and_anchors_wins() -> None:
    box = f32([0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5])
    anchors = [0, 0, 0.5, 0.5, 0.5, 0.5, 1, 1, 0, 0, 0.5, 0.5]
    for criteria, expected in ((1.0, [0, 0, 2]), (0.5, [2, 0, 2])):
        _, labels = fn.box_encoder(
            torch.from_numpy(box),
            torch.tensor([1, 2], dtype=torch.int32),
            anchors=anchors,
            criteria=criteria,
        )
        assert labels.tolist() == expected


def test_a_box_far_from_all_anchors_gets_the_last_one() -> None:
    boxes, labels = fn.box_encoder(
        torch.tensor([[2.0, 2, 3, 3], [float("nan"), 0, 1, 1]]), torch.tensor([5, 6], dtype=torch.int32),
        anchors=[0, 0, 1, 1, 0.5, 0.5, 0.5, 0.5],
    )  # fmt: skip
    assert labels.tolist() == [0, 6] and boxes[0].tolist() == [0.5, 0.5, 1, 1]


@pytest.mark.parametrize("arguments", ENCODINGS, ids=str)
def test_boxes_that_require_gradients_are_encoded_equally(arguments: dict[str, Any]) -> None:
    boxes, labels = torch.from_numpy(some_boxes(9, 3)), torch.arange(1, 10, dtype=torch.int32)
    plain = fn.box_encoder(boxes, labels, anchors=ANCHORS, **arguments)
    traced = fn.box_encoder(boxes.clone().requires_grad_(), labels, anchors=ANCHORS, **arguments)
    assert traced[0].requires_grad and not plain[0].requires_grad
    assert torch.equal(plain[0], traced[0].detach()) and torch.equal(plain[1], traced[1])


BAD_ENCODINGS: list[tuple[Array, Array, dict[str, Any]]] = [
    (f32([0, 0, 1, 1]), i32(1), {"criteria": 1.1}),
    (f32([0, 0, 1, 1]), i32(1), {"criteria": -0.1}),
    (f32([0, 0, 1, 1]), i32(1), {"means": [0.0]}),
    (f32([0, 0, 1, 1]), i32(1), {"stds": [1.0, 1.0, 1.0]}),
    (f32([0, 0, 1, 1]), i32(1), {"stds": [1.0, 0.0, 1.0, 1.0]}),
    (f32([0, 0, 1, 1]), i32(1), {"anchors": []}),
    (f32([0, 0, 1, 1]), i32(1), {"anchors": [0.0, 0.0, 1.0]}),
    (f32([0, 0, 1, 1]), i32(), {}),
    (f32([0, 0, 1, 1]), f32(1), {}),
    (f32(0, 0, 1, 1), i32(1), {}),
    (f32([0, 0, 1]), i32(1), {}),
    (np.array([[0.0, 0, 1, 1]]), i32(1), {}),
]


@pytest.mark.parametrize("boxes, labels, arguments", BAD_ENCODINGS, ids=lambda v: str(v)[:30])
def test_box_encoder_errors(boxes: Array, labels: Array, arguments: dict[str, Any]) -> None:
    with pytest.raises(RuntimeError):
        fn.box_encoder(
            torch.from_numpy(boxes),
            torch.from_numpy(labels),
            **{"anchors": [0, 0, 1, 1], **arguments},
        )
