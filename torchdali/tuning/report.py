"""Report the bottleneck of a pipeline, the gain of other settings, and the code for the fastest settings."""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torchdali.tuning.machine import TimedRun, format_settings
from torchdali.tuning.search import Comparison, Settings

__all__ = ["Report", "describe_bottleneck", "format_call"]

_HIDDEN = 0.05  # a loader is fast enough if the loop waits for it during less than this fraction of the time
_FULL = 0.8  # cores count as fully used if they are busy for more than this fraction of the time
_OTHER_PROGRAMS = 0.15  # if other programs use more than this fraction of the cores, they may be the bottleneck
_LONGEST = 60  # largest number of characters of an argument
_WIDTH = 100  # largest number of characters of a line


@dataclass(frozen=True)
class Report:
    """The result of `tune`; print the object for the whole report.

    Attributes:
        name: Name of the function that creates the pipeline.
        start: The settings before the tuning.
        best: The fastest settings.
        changes: The arguments to change; empty if the start settings are the fastest.
        line: Python code that creates the pipeline with the changed arguments.
        rate: Rate with the fastest settings in samples/s.
        comparisons: The comparisons of settings, in order.
        last: Comparison of the settings that the search has found with the start settings; None if both are the same.
        scaled: Comparison of ``scaled_decode=True`` with the fastest settings; None if it was not measured.
        limit: A sentence on the bottleneck.
        notes: More sentences, for example about settings that can't be used.
    """

    name: str
    start: Settings
    best: Settings
    changes: Settings
    line: str
    rate: float
    comparisons: tuple[Comparison, ...]
    last: Comparison | None
    scaled: Comparison | None
    limit: str
    notes: tuple[str, ...]

    def __str__(self) -> str:
        width = max(len(format_settings(each)) for each in (self.start, *(c.settings for c in self.comparisons)))
        lines = [f"{self.name}: settings, and their gain over the fastest earlier settings"]
        lines.append(f"  {format_settings(self.start):<{width}}  unchanged")
        lines += [f"  {format_settings(c.settings):<{width}}  {_format_gain(c)}" for c in self.comparisons]
        lines.append(f"Fastest: {format_settings(self.best)}, {self.rate:.0f} samples/s.")
        if self.last is not None:
            comparison = f"{format_settings(self.last.settings)} compared with the current settings"
            lines.append(f"Measured once more, {comparison}: {_format_gain(self.last)}.")
        if self.scaled is not None:
            lines.append(f"With scaled_decode=True, which changes pixels slightly: {_format_gain(self.scaled)}.")
        lines += [textwrap.fill(each, _WIDTH, subsequent_indent="  ") for each in (self.limit, *self.notes)]
        lines.append(
            f"Write: {self.line}" if self.changes else f"Nothing to change: {self.line or 'keep the settings'}"
        )
        return "\n".join(lines)


def _format_gain(comparison: Comparison) -> str:
    if not comparison.ratios:
        return "cannot be used"
    noise = f", +-{comparison.uncertainty:.0%}" if len(comparison.ratios) > 1 else ""
    return f"{comparison.gain:+.0%}{noise} ({len(comparison.ratios)} times)"


def describe_bottleneck(run: TimedRun, cores: int, step: float, load: float) -> str:
    """Return a sentence on the bottleneck.

    Args:
        run: Measurement of the fastest settings.
        cores: Number of cores that the process may use.
        step: Duration of the training step in seconds; 0 for no training step.
        load: The system's load average before the tuning. It is used if `run` lacks the usage of other programs.
    """
    slowest, line, share = run.operators[0] if run.operators else ("nothing", "", 0.0)
    location = f" ({line})" if line else ""
    share_text = f"{slowest}{location} takes {share:.0%} of the operators' time"
    other_cores = run.usage.other_cores
    other_cores = load if other_cores is None else other_cores
    keeps_up = bool(step) and run.waited < _HIDDEN
    waited = f"the loop waited {run.waited:.0%} of the time for the loader"
    if other_cores > _OTHER_PROGRAMS * cores and other_cores + run.usage.busy > _FULL * cores:
        addition = f" The loader keeps up with a step of {step * 1e3:g} ms even so: {waited}." if keeps_up else ""
        return (
            f"Limited by other programs, which used {other_cores:.1f} of {cores} cores. The settings are the "
            f"fastest while these programs run; on an idle machine others may be faster. Of the loader's own work, "
            f"{share_text}.{addition}"
        )
    if keeps_up:
        return f"Limited by the training step of {step * 1e3:g} ms: {waited}. A faster loader changes nothing."
    reading, decoding = _share(run, _is_reading), _share(run, _is_decoding)
    used_cores = min(cores, max(run.settings.get("num_threads") or 1, run.settings.get("num_processes") or 1))
    busy_text = f"{run.usage.busy:.1f} of {cores} cores are busy"
    if run.usage.busy < _FULL * used_cores:
        if reading > 0.5:
            source = "the disk" if run.usage.from_disk > 0.1 * run.usage.read else "reading"
            advice = _suggest_cores(cores, used_cores)
            return f"Limited by {source}: {reading:.0%} of the operators' time, and {busy_text}.{advice}"
        return f"Limited by threads that wait for each other: {busy_text}, and reading is {reading:.0%} of the time."
    stage = "reading" if reading > 0.5 else "decoding" if decoding > 0.5 else "augmentation"
    return f"Limited by {stage}: {busy_text}, and {share_text}."


def _suggest_cores(cores: int, used_cores: int) -> str:
    return f" Reading is faster with more threads than cores: try --cores {4 * cores}." if used_cores >= cores else ""


def _share(run: TimedRun, matches: Callable[[str], bool]) -> float:
    return sum(share for operator, _, share in run.operators if matches(operator))


def _is_reading(operator: str) -> bool:
    return operator.startswith(("readers.", "experimental.readers.", "external_source", "experimental.inputs."))


def _is_decoding(operator: str) -> bool:
    return "decoders." in operator and not _is_reading(operator)


def format_call(factory: Callable[..., Any], changes: Settings) -> str:
    """Return the Python code of the call that creates a pipeline with changed settings.

    Dots replace long arguments. If the function belongs to torchdali (for example in `Loader.from_folder`), the user
    doesn't call the function. Then return only the changed settings.
    """
    keywords: Mapping[str, Any] = {}
    arguments: tuple[Any, ...] = ()
    while isinstance(factory, functools.partial):
        arguments, keywords, factory = (*factory.args, *arguments), {**factory.keywords, **keywords}, factory.func
    name, module = getattr(factory, "__name__", repr(factory)), getattr(factory, "__module__", "")
    if module.startswith("torchdali."):
        return format_settings(changes)
    values = [*map(_shorten, arguments), *(f"{k}={_shorten(v)}" for k, v in {**keywords, **changes}.items())]
    return f"{name}({', '.join(values)})"


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST and "://" not in text else "..."  # a URL may contain a password
