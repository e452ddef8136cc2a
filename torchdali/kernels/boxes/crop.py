"""Search for random windows that keep enough of the boxes in an image, for a whole batch in one call.

The object detector SSD is trained with crops at these windows (Liu et al., "SSD: Single Shot MultiBox Detector", 2016).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from torchdali.forks import cached_property
from torchdali.kernels.memory import Array

__all__ = [
    "FEW_ATTEMPTS",
    "FIRST_ATTEMPTS",
    "MAX_ATTEMPTS",
    "Boxes",
    "Rules",
    "Windows",
    "keep_boxes",
    "move_boxes",
    "search",
]

Draw = Callable[[Array, int, int], Array]
"""Function that returns random numbers in [0, 1) for the attempts of a search. Its arguments are the samples' indices,
the index of the first attempt, and the exclusive end of the attempts. For windows with d axes, the result's shape is
``(1 + 2 d, samples, attempts)``."""

MAX_ATTEMPTS = 100_000
"""Number of attempts after which an unlimited search raises an error."""
FIRST_ATTEMPTS, FEW_ATTEMPTS = 16, 4
"""Number of attempts in the first call of `Draw`. FEW_ATTEMPTS is used if only one box must reach the threshold,
because the search then finds a window soon. Otherwise FIRST_ATTEMPTS is used."""
_CHUNK = 1024
_ALL_ALLOWED = np.ones((1, 1), np.bool_)
_SLACK = 1e-4  # relative tolerance for fixed ratios


@dataclass(frozen=True)
class Rules:
    """Conditions that a window must meet, and the limits of the search.

    A search consists of rounds. Each round chooses a random threshold for the overlap of a window with the boxes, and
    then makes several attempts to find a random window that reaches this threshold.

    Attributes:
        thresholds: Thresholds from which each round chooses one.
        no_crop: True if a round may choose the whole image as the window, instead of a threshold.
        scaling: Minimum and maximum extent of a window on each axis, as fractions of the image's extent.
        ratios: Limits for the ratios of a window's extents in pixels, each as ``(axis, other axis, minimum, maximum)``.
        attempts: Number of attempts per round.
        total: Limit of the number of attempts, rounded up to a multiple of `attempts`. At the limit, the search returns
            the best window. None for no limit.
        overlap: True if a threshold is a minimum for the visible share of a box, False if it is a minimum for the
            intersection over union of box and window.
        all_boxes: True if all boxes must reach the threshold, False if one box is enough.
        continue_round: True to continue a round if a window reaches the threshold but keeps no box, False to end the
            round.
        prune: Minimum visible share of a box that is kept; None to keep boxes whose center is visible.
    """

    thresholds: Sequence[float]
    no_crop: bool
    scaling: tuple[float, float]
    ratios: Sequence[tuple[int, int, float, float]]
    attempts: int
    total: int | None
    overlap: bool = False
    all_boxes: bool = True
    continue_round: bool = False
    prune: float | None = None

    @cached_property
    def table(self) -> Array:
        """Values from which a round chooses: the thresholds, and NaN for the whole image if `no_crop` is True."""
        return np.array([*self.thresholds, *([np.nan] if self.no_crop else [])], np.float32)

    @cached_property
    def trivial(self) -> bool:
        """True if every window reaches every threshold."""
        return not (self.overlap or self.total or any(self.thresholds))

    @cached_property
    def ratios_fixed(self) -> bool:
        """True if a ratio in `ratios` is fixed. Extents that a fixed ratio determines may be outside of `scaling`."""
        return any(low == high for *_, low, high in self.ratios)


@dataclass(frozen=True)
class Windows:
    """The window of each sample.

    Attributes:
        start: Starts ``(batch, d)`` as fractions of the image, or in pixels if `search` received the windows' extents
            in pixels.
        extent: Extents ``(batch, d)``, in the unit of `start`.
        whole: ``(batch,)``: True if the window is the whole image, so that all boxes are kept.
        found: ``(batch,)``: True if the window meets all conditions.
        scores: ``(batch,)``: for a sample without a window that meets all conditions, the score of its best window, or
            -1 if no window had allowed ratios.
    """

    start: Array
    extent: Array
    whole: Array
    found: Array
    scores: Array


class Boxes:
    """The boxes of a batch, stored as a flat list, and also padded to the same number of boxes per sample.

    Args:
        low: Starts ``(n, d)`` of the boxes of all samples.
        high: Ends ``(n, d)`` of the boxes.
        counts: Number of boxes of each sample.
    """

    def __init__(self, low: Array, high: Array, counts: Sequence[int]) -> None:
        self.low, self.high, self.counts = low, high, np.asarray(counts, np.int64)
        self.owner = np.arange(len(counts)).repeat(self.counts)
        numbers = np.arange(max(counts, default=0))[:, None]
        firsts = self.counts.cumsum() - self.counts
        indices = np.minimum(numbers, self.counts - 1)
        indices += firsts
        if not self.counts.all():
            indices = np.where(self.counts, indices, 0)
        self.padded: Array | None = None
        """Starts and ends ``(2, d, boxes, batch)``, padded with copies of each sample's last box. None if the batch has
        no boxes."""
        if len(low):
            numbers = np.concatenate((low.T, high.T)).take(indices, axis=1)
            self.padded = numbers.reshape(2, low.shape[1], *indices.shape)
        self.empty = self.counts == 0

    def select(self, samples: Array) -> tuple[Array, Array]:
        """Return starts and ends ``(d, boxes, n)`` of the padded boxes of n samples."""
        assert self.padded is not None
        low, high = self.padded.take(samples, axis=3)
        return low, high


def search(boxes: Boxes, rules: Rules, draw: Draw, sizes: Array | None = None, crops: Array | None = None) -> Windows:
    """Search for a random window for each sample.

    Each round chooses a threshold or the whole image, and each attempt of the round chooses a window. A round ends with
    the first window that has allowed ratios and reaches the threshold. If this window keeps at least one box, the
    search returns the window. Otherwise the next round starts.

    If the number of attempts is limited and no attempt succeeds, the search returns the window with the best score. The
    score of a window is its overlap with the boxes. If a window reached its threshold but kept no box, attempts before
    this window don't count. If no window had allowed ratios, the search returns an empty window.

    Args:
        boxes: Boxes, as fractions of the image.
        rules: Conditions and limits of the search.
        draw: Function that returns random numbers, see `Draw`. The numbers of an attempt must not depend on which
            attempts are requested in the same call.
        sizes: Extents ``(batch, d)`` of the images, in pixels.
        crops: Extents ``(batch, d)`` of the windows, in pixels; None to choose the extents at random.

    Raises:
        RuntimeError: no window meets the conditions, and the number of attempts isn't limited.
    """
    count, axes = len(boxes.counts), boxes.low.shape[1]
    state = _SearchState(count, axes, _Thresholds(boxes, rules, crops is not None))
    limit = None if rules.total is None else -(-rules.total // rules.attempts) * rules.attempts
    begin, end = 0, FIRST_ATTEMPTS if rules.all_boxes else FEW_ATTEMPTS
    pending = np.arange(count)
    while len(pending):
        end = end if limit is None else min(end, limit)
        draws = draw(pending, begin, end)
        candidates = _candidates(draws, rules, _select_columns(sizes, pending), _select_columns(crops, pending))
        pending = state.update(pending, candidates, draws[0], begin, boxes, rules)
        begin, end = end, end + min(4 * (end - begin), _CHUNK)
        if begin == limit:
            break
        if begin >= MAX_ATTEMPTS and len(pending):
            raise _no_window_error(int(pending[0]), f"after {begin} attempts")
    return Windows(state.start, state.extent, state.whole, state.found, state.best)


def _no_window_error(sample: int, when: str) -> RuntimeError:
    return RuntimeError(
        f"no window meets the constraints of sample {sample} {when}; pass total_num_attempts to use the best window"
    )


def _select_columns(values: Array | None, samples: Array) -> Array | None:
    return None if values is None else values[samples].T[:, :, None]


# ---------------------------------------------------------------- windows


@dataclass(frozen=True)
class _Candidates:
    """Windows of several attempts, in arrays of the shape ``(d, samples, attempts)``.

    Attributes:
        low: Starts, as fractions of the image.
        high: Ends, as fractions of the image.
        start: Starts in the unit of the result: fractions or pixels.
        extent: Extents in the unit of the result.
        allowed: ``(samples, attempts)``: True for windows with allowed ratios of extents.
    """

    low: Array
    high: Array
    start: Array
    extent: Array
    allowed: Array

    def ends(self, chosen: Array) -> tuple[Array, Array]:
        """Return starts and ends ``(d, n)`` of the windows with n indices into the flattened attempts."""
        low, high = (each.reshape(len(each), -1)[:, chosen] for each in (self.low, self.high))
        return low, high


def _candidates(draws: Array, rules: Rules, sizes: Array | None, crops: Array | None) -> _Candidates:
    axes = len(draws) // 2
    first, second = draws[1 : 1 + axes], draws[1 + axes :]
    if crops is not None and sizes is not None:
        margin = sizes - crops
        start = np.floor(np.minimum(margin, 0) + second * (np.abs(margin) + 1)).astype(np.float32)
        extent = np.zeros_like(start) + crops.astype(np.float32)
        scale = sizes.astype(np.float32)
        return _Candidates(start / scale, (start + extent) / scale, start, extent, _ALL_ALLOWED)
    extent, allowed = _shape_extents(first, rules, sizes)
    margin = 1 - extent
    start = (np.minimum(margin, 0) + second * np.abs(margin)).astype(np.float32)
    extent = extent.astype(np.float32)
    return _Candidates(start, start + extent, start, extent, allowed)


def _shape_extents(draws: Array, rules: Rules, sizes: Array | None) -> tuple[Array, Array]:
    """Return the extents of windows, as fractions of the image, and whether their ratios are allowed."""
    least, greatest = rules.scaling
    pixels = least + (greatest - least) * draws
    if sizes is not None:
        pixels *= sizes
    for group in _groups(tuple(rules.ratios), len(draws)):
        largest = pixels[list(group)].max(0)
        for axis, part in group.items():
            pixels[axis] = largest * (part / max(group.values()))
    allowed: Any = _ALL_ALLOWED
    with np.errstate(divide="ignore", invalid="ignore"):
        for axis_a, axis_b, low, high in rules.ratios:
            ratio = pixels[axis_a] / pixels[axis_b]
            slack = _SLACK * low if low == high else 0.0
            allowed = allowed & (ratio >= low - slack) & (ratio <= high + slack)
    return pixels if sizes is None else pixels / sizes, allowed


@functools.lru_cache(maxsize=64)
def _groups(ratios: Sequence[tuple[int, int, float, float]], axes: int) -> list[dict[int, float]]:
    """Return the groups of axes that fixed ratios link, with the relative extent of each axis in its group."""
    groups = [{axis: 1.0} for axis in range(axes)]
    for axis_a, axis_b, low, high in ratios:
        a, b = (next(group for group in groups if axis in group) for axis in (axis_a, axis_b))
        if low == high and low > 0 and a is not b:
            factor = a[axis_a] / (low * b[axis_b])
            a.update({axis: part * factor for axis, part in b.items()})
            groups = [group for group in groups if group is not b]
    return [group for group in groups if len(group) > 1]


# ---------------------------------------------------------------- choosing


class _Thresholds:
    """The thresholds from which each sample's rounds choose; NaN represents the whole image.

    An unlimited search omits thresholds that no window can reach, because their rounds would never find a window.
    """

    def __init__(self, boxes: Boxes, rules: Rules, fixed: bool) -> None:
        self._table = rules.table[None]  # one row per sample, or one row for all samples
        self._counts = np.array([len(rules.table)])
        if rules.total is None and len(boxes.low) and not fixed:
            self._drop_unreachable(_find_reachable(boxes, rules))

    def _drop_unreachable(self, reachable: Array) -> None:
        if not reachable.all():
            order = np.argsort(~reachable, axis=1, kind="stable")
            self._table = self._table[0][order]
            self._counts = reachable.sum(1)
        if not self._counts.all():
            raise _no_window_error(int(self._counts.argmin()), "for any random numbers")

    def draw(self, samples: Array, draws: Array) -> Array:
        """Return thresholds ``(samples, rounds)`` for random numbers of the same shape."""
        if len(self._table) == 1:
            thresholds: Array = self._table[0][(draws * self._counts).astype(np.int64)]
            return thresholds
        choices = (draws * self._counts[samples][:, None]).astype(np.int64)
        thresholds = self._table[samples[:, None], choices]
        return thresholds


def _find_reachable(boxes: Boxes, rules: Rules) -> Array:
    """Return a mask ``(batch, thresholds)`` of the thresholds that a window can reach, estimated from the boxes' areas.

    The intersection over union of two boxes is at most the smaller area divided by the larger area.
    """
    assert boxes.padded is not None
    area = _area(*boxes.padded)
    smallest, largest = 0.0, np.inf
    if not rules.ratios_fixed:
        smallest, largest = (end ** len(boxes.padded[0]) for end in rules.scaling)
    is_whole = np.isnan(rules.table)
    least, greatest = area.min(0)[:, None], area.max(0)[:, None]
    if not rules.all_boxes:
        least, greatest = greatest, least
    t = np.where(is_whole, np.float32(0), rules.table) * np.float32(1 - _SLACK)
    reachable: Array = t * greatest <= largest
    if not rules.overlap:
        reachable &= (t * smallest <= least) & (t * t * greatest <= least)
    reachable |= boxes.empty[:, None] | is_whole
    return reachable


class _SearchState:
    """State of a search: each sample's result, or its best window so far."""

    def __init__(self, count: int, axes: int, thresholds: _Thresholds) -> None:
        self.start = np.zeros((count, axes), np.float32)
        self.extent = np.zeros((count, axes), np.float32)
        self.whole = np.zeros(count, np.bool_)
        self.found = np.zeros(count, np.bool_)
        self.best = np.full(count, -1.0, np.float32)
        self._thresholds = thresholds
        self._last_thresholds = np.zeros(count, np.float32)
        self._round_ended = np.zeros(count, np.bool_)
        """`_last_thresholds` is the threshold of each sample's last attempt, `_round_ended` is True if the attempt's
        round has ended."""

    def update(
        self,
        samples: Array,
        candidates: _Candidates,
        draws: Array,
        begin: int,
        boxes: Boxes,
        rules: Rules,
    ) -> Array:
        """Store each sample's first window that meets all conditions, or its best window if no window does.

        Args:
            samples: Indices of the samples.
            candidates: Windows of the samples' next attempts.
            draws: Random numbers ``(samples, attempts)`` that choose the thresholds.
            begin: Index of the first attempt in `candidates`.

        Returns:
            Indices of the samples that need more attempts.
        """
        count = draws.shape[1]
        attempts = np.arange(count)
        starts = (attempts + begin) // rules.attempts * rules.attempts - begin
        thresholds = self._draw_thresholds(samples, draws, starts, rules)
        whole = _first_true(np.isnan(thresholds))
        # A round that chooses the whole image ends the sample's search, so later attempts needn't be scored.
        tried = ((attempts < whole[:, None]) & candidates.allowed).ravel().nonzero()[0]
        owners = samples[tried // count]
        windows = candidates.ends(tried)
        score = _scores(windows, boxes, owners, rules)
        passing = (score >= thresholds.ravel()[tried]).nonzero()[0]
        keeps_box = _keeps_any_box(windows, boxes, owners, passing, rules)
        if rules.continue_round:
            passing, keeps_box = passing[keeps_box], keeps_box[keeps_box]
        reached = np.zeros(thresholds.shape, np.bool_)
        reached.flat[tried[passing]] = True
        hits = reached
        if not keeps_box.all():
            hits = np.zeros_like(reached)
            hits.flat[tried[passing[keeps_box]]] = True
        ended: Array | None = None
        if rules.attempts > 1:
            ended = self._find_ended(samples, reached, starts)
            hits = hits & ~ended
        first = np.minimum(_first_true(hits), whole)
        has_hit: Array = first < count
        self._store_hits(samples, has_hit, first, candidates)
        whole_samples = samples[has_hit & (first == whole)]
        self.found[samples] = has_hit
        self.whole[whole_samples], self.start[whole_samples], self.extent[whole_samples] = True, 0, 1
        rest = (~has_hit).nonzero()[0]
        if rules.total is not None and len(rest):
            scores = np.full(thresholds.shape, -1, np.float32)
            scores.flat[tried] = score
            if ended is not None:
                scores[ended], reached = -1, reached & ~ended
            self._improve_best(samples[rest], scores[rest], reached[rest], rest, candidates)
        return samples[rest]

    def _draw_thresholds(self, samples: Array, draws: Array, starts: Array, rules: Rules) -> Array:
        """Return the thresholds ``(samples, attempts)``. `starts` maps an attempt to the first attempt of its round."""
        if rules.attempts == 1:
            return self._thresholds.draw(samples, draws)
        thresholds = self._thresholds.draw(samples, draws[:, np.maximum(starts, 0)])
        if starts[0] < 0:
            thresholds = np.where(starts < 0, self._last_thresholds[samples][:, None], thresholds)
        self._last_thresholds[samples] = thresholds[:, -1]
        return thresholds

    def _find_ended(self, samples: Array, reached: Array, starts: Array) -> Array:
        """Return a mask of the attempts to skip because an earlier attempt ended their round."""
        earlier = reached.cumsum(1) - reached
        ended: Array = earlier > earlier[:, np.maximum(starts, 0)]
        if starts[0] < 0:
            ended |= (starts < 0) & self._round_ended[samples][:, None]
        self._round_ended[samples] = ended[:, -1] | reached[:, -1]
        return ended

    def _store_hits(self, samples: Array, has_hit: Array, attempts: Array, candidates: _Candidates) -> None:
        rows = has_hit.nonzero()[0]
        self._store(samples[rows], rows, attempts[rows], candidates)

    def _store(self, samples: Array, rows: Array, attempts: Array, candidates: _Candidates) -> None:
        self.start[samples] = candidates.start[:, rows, attempts].T
        self.extent[samples] = candidates.extent[:, rows, attempts].T

    def _improve_best(self, samples: Array, score: Array, reached: Array, rows: Array, candidates: _Candidates) -> None:
        """Store the best windows; a window that reaches its threshold replaces all earlier windows."""
        attempts = np.arange(score.shape[1])
        last = np.where(reached, attempts, -1).max(1)
        score = np.where(attempts >= last[:, None], score, -1)
        best, greatest = score.argmax(1), score.max(1)
        better = (last >= 0) | (greatest > self.best[samples])
        self.best[samples[better]] = greatest[better]
        self._store(samples[better], rows[better], best[better], candidates)


def _first_true(values: Array) -> Array:
    """Return the index of the first true value of each row, or the row's length if no value is true."""
    indices: Array = values.argmax(1)
    if not indices.all():  # index 0 means the first value or no value
        indices[(indices == 0) & ~values[:, 0]] = values.shape[1]
    return indices


# ---------------------------------------------------------------- windows and boxes


Ends = tuple[Array, Array]


def _scores(windows: Ends, boxes: Boxes, owners: Array, rules: Rules) -> Array:
    """Return the scores ``(n,)`` of windows ``(d, n)``. `owners` has the index of each window's sample.

    A score is the window's smallest overlap with a box if `rules.all_boxes` is True, else its largest overlap.
    """
    score: Array = np.ones(len(owners), np.float32)
    if boxes.padded is not None and not rules.trivial:
        score = _score(boxes.select(owners), _add_box_axis(windows), rules)
        if boxes.empty.any():
            score[boxes.empty[owners]] = 1
    return score


def _keeps_any_box(windows: Ends, boxes: Boxes, owners: Array, passing: Array, rules: Rules) -> Array:
    """Return which of the windows at the indices `passing` keep a box, or belong to a sample without boxes."""
    if boxes.padded is None:
        return np.ones(len(passing), np.bool_)
    owners = owners[passing]
    low, high = (each[:, passing] for each in windows)
    keeps_box: Array = np.any(_keep_boxes(boxes.select(owners), _add_box_axis((low, high)), rules.prune), 0)
    keeps_box |= boxes.empty[owners]
    return keeps_box


def _add_box_axis(windows: Ends) -> Ends:
    """Add an axis to windows ``(d, n)``, so that they broadcast with boxes ``(d, boxes, n)``."""
    return windows[0][:, None], windows[1][:, None]


def _score(box: Ends, window: Ends, rules: Rules) -> Array:
    visible, area = _visible_area(box, window)
    with np.errstate(divide="ignore", invalid="ignore"):
        if rules.overlap:
            shares = np.fmax(visible / area, np.float32(-1))  # -1 for boxes without area
        else:
            shares = visible / (area + _area(*window) - visible)
    score: Array = shares.min(0) if rules.all_boxes else shares.max(0)
    return score


def _area(low: Array, high: Array) -> Array:
    return _product(high - low)


def _product(sides: Array) -> Array:
    area: Array = sides[0] * sides[1]
    return area if len(sides) == 2 else area * sides[2]


def _visible_area(box: Ends, window: Ends) -> Ends:
    """Return the area of each box that is inside of its window, and the box's whole area."""
    sides = np.minimum(box[1], window[1])
    sides -= np.maximum(box[0], window[0])
    np.maximum(sides, 0, out=sides)
    return _product(sides), _area(*box)


def _keep_boxes(box: tuple[Array, Array], window: tuple[Array, Array], prune: float | None) -> Array:
    if prune is not None:
        visible, area = _visible_area(box, window)
        with np.errstate(divide="ignore", invalid="ignore"):
            mask: Array = (visible > 0) & (visible / area >= np.float32(prune))
            return mask
    center = np.float32(0.5) * (box[0] + box[1])
    inside: Array = np.all((center >= window[0]) & (center < window[1]), 0)
    return inside


def keep_boxes(boxes: Boxes, low: Array, high: Array, prune: float | None) -> Array:
    """Return a mask of the boxes that the samples' windows keep.

    Args:
        boxes: Boxes of the batch.
        low: Starts of the windows ``(batch, d)``, as fractions of the images.
        high: Ends of the windows ``(batch, d)``.
        prune: Minimum visible share of a box that is kept; None to keep boxes whose center is visible.
    """
    window = low.take(boxes.owner, 0).T, high.take(boxes.owner, 0).T
    return _keep_boxes((boxes.low.T, boxes.high.T), window, prune)


def move_boxes(boxes: Boxes, indices: Array, low: Array, high: Array, whole: Array) -> tuple[Array, Array]:
    """Clip boxes to their windows, and convert them to fractions of the windows.

    Args:
        boxes: Boxes of the batch.
        indices: Indices of the boxes to convert.
        low: Starts of the windows ``(batch, d)``, as fractions of the images.
        high: Ends of the windows ``(batch, d)``.
        whole: ``(batch,)``: True if the window is the whole image. The sample's boxes are then returned unchanged.

    Returns:
        Starts and ends of the boxes, ``(n, d)`` each.
    """
    owner = boxes.owner[indices]
    start, extent = low[owner], (high - low)[owner]
    corners = np.empty((2, *start.shape), start.dtype)
    corners[0], corners[1] = boxes.low[indices], boxes.high[indices]
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = corners - start
        inside /= extent
        np.minimum(np.maximum(inside, 0, out=inside), 1, out=inside)
    if np.count_nonzero(whole):
        np.copyto(inside, corners, where=whole[owner][:, None])
    return inside[0], inside[1]
