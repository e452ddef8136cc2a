"""Search for the fastest settings of a machine by measured steps.

It knows neither pipelines nor clocks: the machine is a function from settings to a rate. Rates are noisy, and drift
while other programs come and go. So two settings are compared by pairs of measurements, one right after the other.
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
"""Measures samples a second with some settings; None if they cannot be used."""

WORTH = 0.02  # the least gain for which a setting is changed
_PAIRS = 12  # largest number of measurements for one comparison
_FEW, _HOPELESS = 6, 0.05  # pairs, and the uncertainty that they have where more would show nothing
_CLEAR = 0.1  # two pairs that differ by more, in one direction, are enough


@dataclass(frozen=True)
class Setting:
    """A setting and the values that it may have, in an order in which neighbors are alike."""

    name: str
    values: tuple[Any, ...]

    def beside(self, settings: Settings, step: int) -> Settings | None:
        """Return settings with the next value, or with the one before for a step of -1; None if there is none."""
        k = self.values.index(settings[self.name]) + step
        return {**settings, self.name: self.values[k]} if 0 <= k < len(self.values) else None


@dataclass(frozen=True)
class Comparison:
    """The settings of a challenger, and their gain over others.

    Attributes:
        settings: Settings of the challenger.
        ratios: Logarithms of its rate over the other rate, a pair of measurements each. None if it cannot be used.
    """

    settings: Settings
    ratios: tuple[float, ...]

    @property
    def gain(self) -> float:
        """Gain in speed; 0.1 means 10 %. Of five pairs and more, a fifth at each end does not count."""
        if not self.ratios:
            return -1.0
        cut = len(self.ratios) // 5
        return math.expm1(statistics.fmean(sorted(self.ratios)[cut : len(self.ratios) - cut]))

    @property
    def uncertainty(self) -> float:
        """Standard error of the gain; infinite for less than two pairs."""
        if len(self.ratios) < 2:
            return math.inf
        return _TRIMMED * statistics.stdev(self.ratios) / math.sqrt(len(self.ratios))

    @property
    def wins(self) -> bool:
        """True if the gain is worth a change and larger than the noise."""
        return self.gain > max(WORTH, self.uncertainty)

    @property
    def is_decided(self) -> bool:
        """True if more pairs would hardly change who wins."""
        count = len(self.ratios)
        if count >= 2 and (min(self.ratios) > _CLEAR or max(self.ratios) < -_CLEAR):
            return True
        if count < 3:
            return False
        margin = (2 + 4.6 / (count - 1)) * self.uncertainty  # about Student's 95 %: few pairs tell their spread badly
        far, loses = abs(self.gain - WORTH) > margin, self.gain + margin / 2 < WORTH
        return far or loses or (count >= _FEW and self.uncertainty > _HOPELESS)


_TRIMMED = 1.1  # standard error of a trimmed mean over a mean of all


def compare(
    measure: Measure, known: Settings, challenger: Settings, enough: Callable[[], bool], least: int = 1
) -> Comparison:
    """Measure two settings in turns until it is clear which is faster.

    Args:
        enough: Returns True when the time is used up.
        least: Pairs that are measured all the same.
    """
    ratios: list[float] = []
    comparison = Comparison(challenger, ())
    while len(ratios) < _PAIRS and (len(ratios) < least or not (comparison.is_decided or enough())):
        # The order changes from pair to pair: a load that grows or shrinks favors neither.
        first, second = (known, challenger) if len(ratios) % 2 else (challenger, known)
        rates = [measure(first), measure(second)]
        if rates[0] is None or rates[1] is None:
            break
        ratios.append(math.log(rates[1] / rates[0]) if len(ratios) % 2 else math.log(rates[0] / rates[1]))
        comparison = Comparison(challenger, tuple(ratios))
    return comparison


@dataclass(frozen=True)
class SearchResult:
    """The end of a search.

    Attributes:
        best: The fastest settings; the first settings unless the steps and the last comparison agree.
        comparisons: Comparisons of the steps, in their order.
        last: The last settings of the steps compared with the first; None if they are the same.
        is_complete: False if the time was used up before.
    """

    best: Settings
    comparisons: tuple[Comparison, ...]
    last: Comparison | None
    is_complete: bool


def search(
    measure: Measure,
    choices: Sequence[Setting],
    start: Settings,
    others: Sequence[Settings] = (),
    enough: Callable[[], bool] = lambda: False,
    enough_in_all: Callable[[], bool] = lambda: False,
) -> SearchResult:
    """Return the fastest settings that steps from a start lead to.

    Settings change only for a gain that is larger than the noise. Of many steps, some seem to gain by chance: so the
    last comparison is one of the start and of where the steps led.

    Args:
        start: The present settings, with a value of each choice.
        others: Settings that are tried first. The steps begin at the fastest: those that change two settings at
            once are found only so.
        enough: Returns True when the time for steps is used up.
        enough_in_all: Returns True when that for the last comparison is, too.
    """
    best, comparisons, seen = start, list[Comparison](), [start]

    def wins(settings: Settings) -> bool:
        nonlocal best
        if settings in seen or enough():
            return False
        seen.append(settings)
        comparisons.append(compare(measure, best, settings, enough))
        if comparisons[-1].wins:
            best = settings
        return comparisons[-1].wins

    for each in others:
        wins(each)
    while any([wins(settings) for settings in _steps(choices, lambda: best)]):
        pass
    is_complete = not enough()
    last = None if best == start else compare(measure, start, best, enough_in_all, least=2)
    return SearchResult(start if last is None or not last.wins else best, tuple(comparisons), last, is_complete)


def _steps(choices: Sequence[Setting], best: Callable[[], Settings]) -> Iterator[Settings]:
    """Yield the neighbors of the best settings, in one direction as long as it leads on; higher values first."""
    for step in (1, -1):
        for choice in choices:
            before: Settings = {}
            while before != best():
                before = best()
                beside = choice.beside(before, step)
                if beside is not None:
                    yield beside
