"""Search for the fastest settings step by step, with measurements.

The search calls a function that measures the *rate* (samples per second) with some settings. Rates are noisy, and
change when other programs start and stop. Therefore two settings are compared with *pairs* of consecutive measurements,
one with each of the settings.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Comparison", "Measure", "SearchResult", "Setting", "Settings", "compare", "search"]

Settings = Mapping[str, Any]
Measure = Callable[[Settings], float | None]
"""Function that returns the samples per second with some settings, or None if the settings can't be used."""

WORTH = 0.02  # smallest gain for which a setting is changed
_PAIRS = 12  # largest number of pairs of measurements in one comparison
_NOISY_PAIRS, _NOISY = 6, 0.05  # a comparison ends after six pairs if the uncertainty of the gain exceeds 0.05
_CLEAR_DIFFERENCE = 0.1  # two pairs are enough if both pairs show a difference of more than 10 % in the same direction


@dataclass(frozen=True)
class Setting:
    """A setting and its possible values. Neighboring values are similar."""

    name: str
    values: tuple[Any, ...]

    def neighbor(self, settings: Settings, step: int) -> Settings | None:
        """Return settings with the next value (step 1) or the previous value (step -1) of this setting.

        Return None if no next or previous value exists.
        """
        k = self.values.index(settings[self.name]) + step
        return {**settings, self.name: self.values[k]} if 0 <= k < len(self.values) else None


@dataclass(frozen=True)
class Comparison:
    """A comparison of new settings (the challenger) with known settings.

    Attributes:
        settings: Settings of the challenger.
        ratios: The logarithm of the challenger's rate divided by the known settings' rate, one number per pair; empty
            if the settings can't be used.
    """

    settings: Settings
    ratios: tuple[float, ...]

    @property
    def gain(self) -> float:
        """Mean gain in speed (0.1 means 10 %), without the largest and the smallest fifth of the ratios."""
        if not self.ratios:
            return -1.0
        cut = len(self.ratios) // 5
        return math.expm1(statistics.fmean(sorted(self.ratios)[cut : len(self.ratios) - cut]))

    @property
    def uncertainty(self) -> float:
        """Standard error of the gain; infinite for fewer than two pairs."""
        if len(self.ratios) < 2:
            return math.inf
        return _TRIMMED * statistics.stdev(self.ratios) / math.sqrt(len(self.ratios))

    @property
    def wins(self) -> bool:
        """True if the gain is larger than the noise and large enough to change the settings."""
        return self.gain > max(WORTH, self.uncertainty)

    @property
    def is_decided(self) -> bool:
        """True if more pairs would hardly change the result of the comparison."""
        count = len(self.ratios)
        if count >= 2 and (min(self.ratios) > _CLEAR_DIFFERENCE or max(self.ratios) < -_CLEAR_DIFFERENCE):
            return True
        if count < 3:
            return False
        margin = (2 + 4.6 / (count - 1)) * self.uncertainty  # about the 95 % interval of Student's t-distribution
        far, loses = abs(self.gain - WORTH) > margin, self.gain + margin / 2 < WORTH
        return far or loses or (count >= _NOISY_PAIRS and self.uncertainty > _NOISY)


_TRIMMED = 1.1  # ratio of a trimmed mean's standard error to the standard error of the mean


def compare(
    measure: Measure, baseline: Settings, challenger: Settings, out_of_time: Callable[[], bool], min_pairs: int = 1
) -> Comparison:
    """Measure two settings alternately until it is clear which are faster.

    Args:
        measure: Function that measures the rate with some settings.
        baseline: The known settings.
        challenger: The settings to compare with the known settings.
        out_of_time: Function that returns True when the time is used up.
        min_pairs: Number of pairs that are measured even if the time is used up.
    """
    ratios: list[float] = []
    comparison = Comparison(challenger, ())
    while len(ratios) < _PAIRS and (len(ratios) < min_pairs or not (comparison.is_decided or out_of_time())):
        # The order changes from pair to pair, so that a growing load of the machine favors neither of the settings.
        first, second = (baseline, challenger) if len(ratios) % 2 else (challenger, baseline)
        rates = [measure(first), measure(second)]
        if rates[0] is None or rates[1] is None:
            break
        ratios.append(math.log(rates[1] / rates[0]) if len(ratios) % 2 else math.log(rates[0] / rates[1]))
        comparison = Comparison(challenger, tuple(ratios))
    return comparison


@dataclass(frozen=True)
class SearchResult:
    """The result of a search.

    Attributes:
        best: The fastest settings. If the last comparison doesn't confirm a gain, these are the start settings.
        comparisons: All comparisons except for the last one, in order.
        last: Comparison of the settings after all steps with the start settings; None if both are the same.
        is_complete: False if the time was used up before the end of the search.
    """

    best: Settings
    comparisons: tuple[Comparison, ...]
    last: Comparison | None
    is_complete: bool


def search(
    measure: Measure,
    choices: Sequence[Setting],
    start: Settings,
    candidates: Sequence[Settings] = (),
    out_of_time: Callable[[], bool] = lambda: False,
    out_of_total_time: Callable[[], bool] = lambda: False,
) -> SearchResult:
    """Search for the fastest settings, by changing one setting at a time.

    A change is kept only if its gain is larger than the noise. Among many changes, some seem to be faster by chance.
    Therefore a last comparison compares the result with the start settings.

    Args:
        measure: Function that measures the rate with some settings.
        choices: The settings to change, with their possible values.
        start: The current settings, with a value for each of `choices`.
        candidates: Settings that are tried first. They may differ from the start settings in several values.
        out_of_time: Function that returns True when the time for the search, without the last comparison, is used up.
        out_of_total_time: Function that returns True when the time for the last comparison is also used up.
    """
    best, comparisons, tried = start, list[Comparison](), [start]

    def wins(settings: Settings) -> bool:
        nonlocal best
        if settings in tried or out_of_time():
            return False
        tried.append(settings)
        comparisons.append(compare(measure, best, settings, out_of_time))
        if comparisons[-1].wins:
            best = settings
        return comparisons[-1].wins

    for each in candidates:
        wins(each)
    while any([wins(settings) for settings in _steps(choices, lambda: best)]):
        pass
    is_complete = not out_of_time()
    last = None if best == start else compare(measure, start, best, out_of_total_time, min_pairs=2)
    return SearchResult(start if last is None or not last.wins else best, tuple(comparisons), last, is_complete)


def _steps(choices: Sequence[Setting], best: Callable[[], Settings]) -> Iterator[Settings]:
    """Yield settings that differ from the best settings in one value: first with higher, then with lower values.

    If a new value becomes the best one, continue with the same setting and in the same direction.
    """
    for step in (1, -1):
        for choice in choices:
            previous: Settings = {}
            while previous != best():
                previous = best()
                neighbor = choice.neighbor(previous, step)
                if neighbor is not None:
                    yield neighbor
