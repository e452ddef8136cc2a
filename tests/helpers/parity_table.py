"""The tables of ``benchmarks/parity*.md``, filled while the parity tests run.

``pytest --write-parity=benchmarks/parity.md`` writes them (see ``conftest.py``). `tests.check.check` records every case
that it compares with the real DALI; `note_pixels` records the measurements of ``parity/test_pixels.py`` on photos.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Case", "Distance", "Tolerance", "cases", "note", "note_pixels", "pages", "percent"]

COMMAND = "python -m pytest --write-parity=benchmarks/parity.md"

_WRITTEN = f"Written by the tests, do not edit: `{COMMAND}`"
_HEAD = f"""# Parity with DALI

{_WRITTEN}

Every case ran on torchdali and on the real DALI 2.4 (CPU, `device_id=None`), and passed: layouts, shapes and types are
equal, and values are within the tolerances in the tables. [Each operator](parity_operators.md) has a row. All exceptions
are [intentional](parity_exceptions.md).
"""


@dataclass(frozen=True)
class Tolerance:
    """Allowed difference: levels, plus a part of the value."""

    level: float
    relative: float


@dataclass(frozen=True)
class Distance:
    """Distance of results from the real DALI's.

    Attributes:
        off: Share of the values that are more than one level off, of integer outputs.
        error: Largest difference relative to the largest value, of floating outputs.
        levels: Largest difference of integer outputs.
        mean_levels: Mean difference of integer outputs, of the sample with the largest one.
        mean_error: Mean difference relative to the largest value, of the floating sample with the largest one.
    """

    off: float | None = None
    error: float | None = None
    levels: float | None = None
    mean_levels: float | None = None
    mean_error: float | None = None


@dataclass(frozen=True)
class Case:
    """One case of an operator: its inputs, the tolerance, the share of values within it, and the distance."""

    operator: str
    arguments: str
    dtypes: frozenset[str]
    layouts: frozenset[str]
    tolerance: Tolerance
    share: float
    distance: Distance = Distance()


@dataclass(frozen=True)
class _Pixels:
    subject: str
    images: int
    found: str
    demanded: str


_cases: list[Case] = []
_pixels: list[_Pixels] = []


def cases() -> tuple[Case, ...]:
    """Return the cases of this session so far."""
    return tuple(_cases)


def note(case: Case) -> None:
    """Record a case that was compared with the real DALI."""
    _cases.append(case)


def note_pixels(subject: str, images: int, found: str, demanded: str) -> None:
    """Record the result of a comparison on photos, and the test's demand."""
    _pixels.append(_Pixels(subject, images, found, demanded))


def pages(
    exceptions: Mapping[str, Sequence[str]],
    modules: Mapping[str, tuple[str, int]],
    short: Sequence[str] = (),
) -> dict[str, str]:
    """Return the pages by the suffix of their names.

    Args:
        exceptions: Reasons by operator.
        modules: Subject and number of passed tests by test file.
        short: Lines on known missing cases.
    """
    parts = [_HEAD, _pixel_table(), _module_table(modules)]
    if short:
        parts.append(
            "\n".join(["## Too few cases, or results too far off", "", *[f"- {line}" for line in short], ""])
        )
    return {"": "\n".join(parts), "_operators": _operator_table(), "_exceptions": _exception_list(exceptions)}


def _pixel_table() -> str:
    rows = [(p.subject, str(p.images), p.found, p.demanded) for p in _pixels]
    return "## Photos\n\n64 unchanged files of ImageNet.\n\n" + _table(
        ("case", "images", "found", "required"), rows
    )


def _operator_table() -> str:
    by_name: dict[str, list[Case]] = defaultdict(list)
    for case in _cases:
        by_name[case.operator].append(case)
    text = (
        f"# Parity with DALI: operators\n\n{_WRITTEN}\n\n"
        "Each row sums up the cases of one operator. *Arguments* counts the different combinations of arguments.\n"
        "*Tolerance* is the widest tolerance of any case: levels, plus a fraction of the value. *Within* is the smallest share\n"
        "of values within the tolerance, over all cases. *Off by more than 1* is the largest share of an integer output's\n"
        "values that differ by more than one level. *Worst* is the largest difference: in levels for integers, relative to the\n"
        "output's largest value for floats (for float16, beyond the rounding of its last bit). *Mean* is the mean difference of\n"
        "the sample where it is largest.\n\n"
    )
    rows = [_row(name, by_name[name]) for name in sorted(by_name)]
    return text + _table(
        (
            "operator",
            "cases",
            "arguments",
            "dtypes",
            "layouts",
            "within",
            "tolerance",
            "off by more than 1",
            "integers: worst",
            "mean",
            "floats: worst",
            "mean",
        ),
        rows,
    )


def _row(name: str, cases: Sequence[Case]) -> tuple[str, ...]:
    dtypes = sorted(set().union(*(c.dtypes for c in cases)))
    layouts = sorted(set().union(*(c.layouts for c in cases)))
    level, relative = (
        max(c.tolerance.level for c in cases),
        max(c.tolerance.relative for c in cases),
    )
    tolerance = [f"{level:g}"] if level else []
    tolerance += [f"{relative:g} relative"] if relative else []
    within = percent(min(c.share for c in cases))
    return (
        f"`{name}`", str(len(cases)), str(len({c.arguments for c in cases})), " ".join(dtypes), " ".join(layouts), within,
        " + ".join(tolerance) or "none: equal", *_worst(cases),
    )  # fmt: skip


def _worst(cases: Sequence[Case]) -> tuple[str, ...]:
    def largest(name: str) -> float | None:
        found = [getattr(case.distance, name) for case in cases]
        return max((value for value in found if value is not None), default=None)

    off = largest("off")
    share = "" if off is None else f"{math.ceil(off * 1e5) / 1e3:g} %"
    rest = map(largest, ("levels", "mean_levels", "error", "mean_error"))
    return share, *("" if value is None else f"{value:.2g}" for value in rest)


def percent(share: float) -> str:
    """Return a share as text, rounded down: only a complete share is 100 %."""
    return "100 %" if share == 1 else f"{math.floor(share * 1e5) / 1e3:.3f} %"


def _module_table(modules: Mapping[str, tuple[str, int]]) -> str:
    rows = [(f"`{name}`", subject, str(count)) for name, (subject, count) in modules.items()]
    return "## Tests that passed\n\n" + _table(("file", "comparison", "tests"), rows)


def _exception_list(exceptions: Mapping[str, Sequence[str]]) -> str:
    lines = [f"- `{name}`: {reason}" for name in sorted(exceptions) for reason in exceptions[name]]
    return "\n".join(
        ["# Parity with DALI: exceptions", "", _WRITTEN, "", "Operators and features that differ from DALI on purpose.", "", *lines, ""]
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [
        head,
        ["---"] * len(head),
        *([cell.replace("|", "\\|") for cell in row] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
