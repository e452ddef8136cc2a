"""Random windows that keep enough of the boxes in an image, for a whole batch at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["FIRST", "MOST", "Boxes", "Rules", "Windows", "kept", "moved", "search"]

Array = npt.NDArray[Any]
Draw = Callable[[Array, int, int], Array]
"""Returns random numbers in [0, 1) for some samples, from one attempt to another: ``(samples, attempts, 1 + 2 d)``."""

MOST = 100_000
"""Attempts after which a search without an end is given up."""
FIRST = 8
"""Attempts that are made at once in the beginning."""
_CHUNK = 1024
_SLACK = 1e-4  # relative, for ratios that are fixed


@dataclass(frozen=True)
class Rules:
    """Which windows will do.

    Attributes:
        thresholds: Each round of attempts takes one of these.
        no_crop: A round may also end with the whole image.
        scaling: Least and greatest extent on each axis, relative to the image.
        ratios: ``(axis, axis, least, greatest)``: of extents in pixels.
        attempts: Of a round.
        total: Attempts after which the best window is taken, all of the last round included; None for no end.
        overlap: Thresholds are about the share of a box that is seen, not about intersection over union.
        every: All boxes must reach the threshold, not just one.
        insist: A round goes on after a window with enough of the boxes that keeps none of them.
        prune: Boxes are kept of which this share is seen; None: those whose centre is.
    """

    thresholds: Sequence[float]
    no_crop: bool
    scaling: tuple[float, float]
    ratios: Sequence[tuple[int, int, float, float]]
    attempts: int
    total: int | None
    overlap: bool = False
    every: bool = True
    insist: bool = False
    prune: float | None = None


@dataclass(frozen=True)
class Windows:
    """A window for each sample.

    Attributes:
        start: ``(batch, d)``, relative to the image or, where extents are given in pixels, in pixels.
        extent: ``(batch, d)``.
        whole: ``(batch,)``: nothing is cut off and no box left out.
        settled: ``(batch,)``: all rules are obeyed.
    """

    start: Array
    extent: Array
    whole: Array
    settled: Array


class Boxes:
    """The boxes of a batch, and the same padded to one number a sample.

    Args:
        low: ``(n, d)``: starts, of all samples together.
        high: Ends.
        counts: Boxes of each sample.
    """

    def __init__(self, low: Array, high: Array, counts: Sequence[int]) -> None:
        self.low, self.high, self.counts = low, high, np.asarray(counts, np.int64)
        self.there = np.arange(max(counts, default=0)) < self.counts[:, None]
        self.padded = np.zeros((2, *self.there.shape, low.shape[1]), np.float32)
        self.padded[:, self.there] = low, high


def search(
    boxes: Boxes, rules: Rules, draw: Draw, sizes: Array | None = None, crops: Array | None = None
) -> Windows:
    """Look for a window in each sample.

    Each round draws a threshold, or the whole image; each of its attempts a window. A round ends with the first
    window that has allowed ratios and enough of the boxes; it is taken if there is at least one box to keep. At
    the end of a limited search it is the one with the largest score, of those since the last one with enough of the
    boxes, or an empty one where no ratio was allowed.

    Args:
        boxes: Relative to the image.
        draw: Random numbers, the same for an attempt however attempts are asked for in turn.
        sizes: ``(batch, d)``: extents of the images in pixels.
        crops: ``(batch, d)``: extents of the windows in pixels.

    Raises:
        RuntimeError: nothing fits, and the search has no end.
    """
    count, axes = len(boxes.counts), boxes.low.shape[1]
    state = _State(count, axes)
    limit = None if rules.total is None else -(-rules.total // rules.attempts) * rules.attempts
    begin, end = 0, FIRST
    pending = np.arange(count)
    while len(pending):
        end = end if limit is None else min(end, limit)
        draws = draw(pending, begin, end)
        candidates = _candidates(draws, rules, _rows(sizes, pending), _rows(crops, pending))
        pending = state.settle(pending, candidates, _Options(draws, rules, begin), boxes, rules)
        begin, end = end, end + min(2 * (end - begin), _CHUNK)
        if begin == limit:
            break
        if begin >= MOST and len(pending):
            raise RuntimeError(
                f"no window fits sample {pending[0]} after {begin} attempts; set total_num_attempts to take "
                "the best one"
            )
    return Windows(state.start, state.extent, state.whole, state.settled)


def _rows(values: Array | None, rows: Array) -> Array | None:
    return None if values is None else values[rows]


@dataclass(frozen=True)
class _Candidates:
    """Windows ``(samples, attempts, d)``: where they lie, in relative terms and as they are returned."""

    low: Array
    high: Array
    start: Array
    extent: Array
    allowed: Array


def _candidates(
    draws: Array, rules: Rules, sizes: Array | None, crops: Array | None
) -> _Candidates:
    axes = draws.shape[-1] // 2
    first, second = draws[..., 1 : 1 + axes], draws[..., 1 + axes :]
    if crops is not None and sizes is not None:
        extent = np.broadcast_to(crops[:, None], first.shape)
        room = sizes[:, None] - extent
        start = np.floor(np.minimum(room, 0) + second * (np.abs(room) + 1)).astype(np.float32)
        scale = sizes[:, None].astype(np.float32)
        low, high = start / scale, (start + extent.astype(np.float32)) / scale
        allowed = np.ones(first.shape[:-1], np.bool_)
        return _Candidates(low, high, start, extent.astype(np.float32), allowed)
    extent, allowed = _shaped(first, rules, sizes)
    room = 1 - extent
    start = (np.minimum(room, 0) + second * np.abs(room)).astype(np.float32)
    extent = extent.astype(np.float32)
    return _Candidates(start, start + extent, start, extent, allowed)


def _shaped(draws: Array, rules: Rules, sizes: Array | None) -> tuple[Array, Array]:
    """Return extents, and whether their ratios are allowed."""
    least, greatest = rules.scaling
    scale = 1 if sizes is None else sizes[:, None]
    pixels = (least + (greatest - least) * draws) * scale
    for group in _groups(rules.ratios, draws.shape[-1]):
        axes = list(group)
        parts = np.array(list(group.values()))
        pixels[..., axes] = pixels[..., axes].max(-1, keepdims=True) * (parts / parts.max())
    allowed = np.ones(draws.shape[:-1], np.bool_)
    with np.errstate(divide="ignore", invalid="ignore"):
        for one, other, low, high in rules.ratios:
            ratio = pixels[..., one] / pixels[..., other]
            slack = _SLACK * low if low == high else 0.0
            allowed &= (ratio >= low - slack) & (ratio <= high + slack)
    return pixels / scale, allowed


def _groups(ratios: Sequence[tuple[int, int, float, float]], axes: int) -> list[dict[int, float]]:
    """Return the axes that fixed ratios tie together, with their extents relative to each other."""
    groups = [{axis: 1.0} for axis in range(axes)]
    for one, other, low, high in ratios:
        a, b = (next(group for group in groups if axis in group) for axis in (one, other))
        if low == high and low > 0 and a is not b:
            factor = a[one] / (low * b[other])
            a.update({axis: part * factor for axis, part in b.items()})
            groups = [group for group in groups if group is not b]
    return [group for group in groups if len(group) > 1]


class _State:
    """What was found so far."""

    def __init__(self, count: int, axes: int) -> None:
        self.start = np.zeros((count, axes), np.float32)
        self.extent = np.zeros((count, axes), np.float32)
        self.whole = np.zeros(count, np.bool_)
        self.settled = np.zeros(count, np.bool_)
        self.best = np.full(count, -1.0, np.float32)
        self.threshold = np.zeros(count, np.float32)
        self.over = np.zeros(count, np.bool_)
        """Threshold of the last attempt, and whether its round is over."""

    def settle(
        self, samples: Array, candidates: _Candidates, options: _Options, boxes: Boxes, rules: Rules
    ) -> Array:
        """Take the first windows that will do, keep the best others; return the samples that need more."""
        score, keeps = _judge(candidates, boxes, samples, rules)
        thresholds = options.follow(self.threshold, samples)
        whole = np.isnan(thresholds)
        enough = candidates.allowed & (score >= thresholds)
        enough &= keeps if rules.insist else True
        over = self._over(samples, enough, options.starts)
        done = ~over & (whole | (enough & keeps))
        first, found = done.argmax(1), done.any(1)
        tried = np.arange(score.shape[1])
        last = np.where(enough & ~over, tried, -1).max(
            1
        )  # it counts for more than what came before
        score = np.where(candidates.allowed & ~over & (tried >= last[:, None]), score, -1)
        best = score.argmax(1)
        rows = np.arange(len(samples))
        better = ~found & ((last >= 0) | (score[rows, best] > self.best[samples]))
        self.best[samples[better]] = score[rows, best][better]
        for chosen, places in ((found, first), (better, best)):
            self.start[samples[chosen]] = candidates.start[rows, places][chosen]
            self.extent[samples[chosen]] = candidates.extent[rows, places][chosen]
        full = found & whole[rows, first]
        self.start[samples[full]], self.extent[samples[full]] = 0, 1
        self.whole[samples], self.settled[samples] = full, found
        return samples[~found]

    def _over(self, samples: Array, enough: Array, starts: Array) -> Array:
        """Return which attempts are not made, since their round is over."""
        before = enough.cumsum(1) - enough
        over: Array = before > before[:, np.maximum(starts, 0)]
        over |= (starts < 0) & self.over[samples][:, None]
        self.over[samples] = over[:, -1] | enough[:, -1]
        return over


class _Options:
    """The thresholds that rounds draw.

    Attributes:
        starts: Where the round of each attempt starts, counted from the first one of these attempts.
    """

    def __init__(self, draws: Array, rules: Rules, begin: int) -> None:
        attempts = np.arange(begin, begin + draws.shape[1])
        self.starts = attempts // rules.attempts * rules.attempts - begin
        self._choices = np.array(
            [*rules.thresholds, *([np.nan] if rules.no_crop else [])], np.float32
        )
        self._drawn = draws[:, np.maximum(self.starts, 0), 0]

    def follow(self, last: Array, samples: Array) -> Array:
        """Return the threshold of each attempt ``(samples, attempts)``, NaN for the whole image; keep the last."""
        found: Array = self._choices[(self._drawn * len(self._choices)).astype(np.int64)]
        found = np.where(self.starts < 0, last[samples][:, None], found)
        last[samples] = found[:, -1]
        return found


def _judge(
    candidates: _Candidates, boxes: Boxes, samples: Array, rules: Rules
) -> tuple[Array, Array]:
    """Return what windows score against the threshold, and whether any box is kept; ``(samples, attempts)``."""
    there = boxes.there[samples][:, None]
    low, high = (side[samples][:, None] for side in boxes.padded)
    window = candidates.low[:, :, None], candidates.high[:, :, None]
    seen, area = _seen((low, high), window)
    with np.errstate(divide="ignore", invalid="ignore"):
        if rules.overlap:
            score = np.nan_to_num(seen / area, nan=-1)
        else:
            score = seen / (area + _area(*window) - seen)
    keeps = (_kept((low, high), window, rules.prune) & there).any(2)
    empty = boxes.counts[samples][:, None] == 0
    score = (
        score.min(2, where=there, initial=np.inf)
        if rules.every
        else score.max(2, where=there, initial=-1)
    )
    return np.where(empty, 1, score), keeps | empty


def _area(low: Array, high: Array) -> Array:
    area = high[..., 0] - low[..., 0]
    for axis in range(1, low.shape[-1]):
        area = area * (high[..., axis] - low[..., axis])
    return area


def _seen(box: tuple[Array, Array], window: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return the area of boxes inside of windows, and of the boxes."""
    inside: Any = 1
    for axis in range(box[0].shape[-1]):
        end = np.minimum(box[1][..., axis], window[1][..., axis])
        inside = inside * np.maximum(end - np.maximum(box[0][..., axis], window[0][..., axis]), 0)
    return inside, _area(*box)


def _kept(box: tuple[Array, Array], window: tuple[Array, Array], prune: float | None) -> Array:
    if prune is not None:
        seen, area = _seen(box, window)
        with np.errstate(divide="ignore", invalid="ignore"):
            return (seen > 0) & (seen / area >= np.float32(prune))
    center = np.float32(0.5) * (box[0] + box[1])
    found: Array = np.all((center >= window[0]) & (center < window[1]), axis=-1)
    return found


def kept(boxes: Boxes, low: Array, high: Array, prune: float | None) -> Array:
    """Return which of all boxes are kept in the windows ``(batch, d)``, relative to the images."""
    window = low.repeat(boxes.counts, 0), high.repeat(boxes.counts, 0)
    return _kept((boxes.low, boxes.high), window, prune)


def moved(boxes: Boxes, low: Array, high: Array, whole: Array) -> tuple[Array, Array]:
    """Return all boxes clipped to the windows and relative to them, as they are where a window is whole."""
    low, extent = low.repeat(boxes.counts, 0), (high - low).repeat(boxes.counts, 0)
    same = whole.repeat(boxes.counts)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        start, end = (
            np.where(same, side, np.clip((side - low) / extent, 0, 1))
            for side in (boxes.low, boxes.high)
        )
    return start, end
