"""The job of a measuring process, and its measurement; both are sent as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

SIDES = ("torchdali", "dali", "loader_tensor", "loader_pil")
PIPELINES = (
    "train",
    "decode",
    "val",
    "roi",
    "fed",
    "photo",
    "heavy",
    "rand_augment",
    "auto_augment",
    "trivial_augment",
)


@dataclass(frozen=True)
class Job:
    """One side running one pipeline over one folder of images.

    ``batches`` lists the numbers of batches after which to look; the clock starts after ``warmup``.
    """

    side: str
    pipeline: str
    root: str
    batch: int
    threads: int
    warmup: int
    batches: tuple[int, ...]
    seed: int = 0

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Job:
        values = json.loads(text)
        return cls(**{**values, "batches": tuple(values["batches"])})


@dataclass(frozen=True)
class Snapshot:
    """Measurement after some batches: seconds since the warm-up ended, mebibytes now.

    ``cpu`` is user and system time of the process and its workers. ``rss`` counts a page once for
    each process that maps it, ``pss`` divides it among them.
    """

    samples: int
    wall: float
    cpu: float
    rss: float
    pss: float


@dataclass(frozen=True)
class Measurement:
    """Measurement of one process; ``peak_rss`` is the sum over its processes, in mebibytes.

    ``imports`` are wall seconds an imported package; ``first_batch`` is seconds from the end of the
    imports to the first batch in hand.
    """

    side: str
    pipeline: str
    round: int
    snapshots: tuple[Snapshot, ...]
    peak_rss: float
    first_batch: float
    imports: dict[str, float] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Samples a second over the whole timed run."""
        return self.snapshots[-1].samples / self.snapshots[-1].wall

    @property
    def cpu_ms(self) -> float:
        """CPU milliseconds a sample over the whole timed run."""
        return 1e3 * self.snapshots[-1].cpu / self.snapshots[-1].samples

    @property
    def cores(self) -> float:
        """Cores kept busy; fewer than there are threads means that the machine was not free."""
        return self.snapshots[-1].cpu / self.snapshots[-1].wall

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Measurement:
        values = json.loads(text)
        return cls(**{**values, "snapshots": tuple(Snapshot(**snapshot) for snapshot in values["snapshots"])})
