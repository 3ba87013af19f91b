"""What this process counts while it works: one table of meters, cheap to count, read by ``engine.metrics``."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge", "histogram"]
#: Upper bounds of the buckets of durations, seconds.
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


@dataclass(frozen=True, slots=True)
class MeterSpec:
    """One meter: its unit is in its name.

    Attributes:
        labels: by which its values are told apart.
        of: ``process``, counted by nodes of this process; ``ledger``, read from the ledger when asked.
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    of: Literal["process", "ledger"] = "process"


METERS: tuple[MeterSpec, ...] = (
    MeterSpec(
        "lodger_slots_total", "counter", "slots that ticks of this process accounted; a gap counts once", ("became",)
    ),
    MeterSpec("lodger_attempts_total", "counter", "attempts that ended on this process's nodes", ("outcome",)),
    MeterSpec("lodger_lateness_seconds", "histogram", "from due to start of attempts of slots"),
    MeterSpec("lodger_attempt_seconds", "histogram", "what attempts took"),
    MeterSpec(
        "lodger_lost_commits_total", "counter", "attempts whose end came too late: another node had their action"
    ),
    MeterSpec("lodger_leases_lost_total", "counter", "times a node of this process lost its lease"),
    MeterSpec("lodger_rescued_total", "counter", "actions that this process took from silent nodes"),
    MeterSpec("lodger_expired_total", "counter", "actions that this process found expired"),
    MeterSpec("lodger_slow_total", "counter", "runs that took longer than is usual for their schedule"),
    MeterSpec(
        "lodger_faults_total", "counter", "rounds of a node's services that failed and were tried again", ("service",)
    ),
    MeterSpec(
        "lodger_hooks_dropped_total",
        "counter",
        "events that no hook was told of, because the hooks were too slow",
        ("hook",),
    ),
    MeterSpec("lodger_running", "gauge", "attempts that run on this process's nodes"),
    MeterSpec("lodger_loop_lag_seconds", "gauge", "how late the event loop of a node was in its last look"),
    MeterSpec(
        "lodger_feed_held_seconds",
        "gauge",
        "how long the oldest committed change has waited to be readable",
        ("database",),
    ),
    MeterSpec(
        "lodger_feed_held", "gauge", "committed changes that an older transaction keeps unreadable", ("database",)
    ),
    MeterSpec(
        "lodger_actions", "gauge", "actions that wait and could start, that run, that are sealed", ("state",), "ledger"
    ),
    MeterSpec("lodger_overdue", "gauge", "actions and clocks that should have gone on ten seconds ago", (), "ledger"),
    MeterSpec("lodger_overdue_seconds", "gauge", "how long the oldest of them has been due", (), "ledger"),
    MeterSpec("lodger_nodes", "gauge", "nodes by state", ("state",), "ledger"),
    MeterSpec("lodger_outbox", "gauge", "mails and webhooks that wait or have failed for good", ("state",), "ledger"),
    MeterSpec(
        "lodger_blocked_sessions", "gauge", "database sessions that have waited for a lock for a second", (), "ledger"
    ),
    MeterSpec("lodger_blocked_seconds", "gauge", "how long the first of them has waited", (), "ledger"),
)
_BY_NAME = {spec.name: spec for spec in METERS}


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of a meter. ``labels`` are (name, value); a histogram's buckets carry ``le``, and its names a suffix."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: float


@dataclass(frozen=True, slots=True)
class Metric:
    """A meter with its values."""

    name: str
    kind: Kind
    help: str
    samples: tuple[Sample, ...]


class Meters:
    """The counters of one process; may be used from several threads."""

    def __init__(self) -> None:
        self._values: dict[str, dict[tuple[str, ...], float]] = {spec.name: {} for spec in METERS}
        self._buckets = {spec.name: [0] * (len(BUCKETS) + 1) for spec in METERS if spec.kind == "histogram"}
        self._sums = dict.fromkeys(self._buckets, 0.0)
        self._lock = threading.Lock()

    def count(self, name: str, *labels: str, by: float = 1) -> None:
        """Add to a counter, or to a gauge that goes up and down."""
        with self._lock:
            values = self._values[name]
            values[labels] = values.get(labels, 0) + by

    def put(self, name: str, value: float, *labels: str) -> None:
        """Set a gauge."""
        with self._lock:
            self._values[name][labels] = value

    def observe(self, name: str, seconds: Iterable[float]) -> None:
        """Add durations to a histogram."""
        with self._lock:
            buckets = self._buckets[name]
            for each in seconds:
                self._sums[name] += each
                place = 0
                while place < len(BUCKETS) and each > BUCKETS[place]:
                    place += 1
                buckets[place] += 1

    def read(self) -> list[Metric]:
        """Give what this process has counted, in the order of the table."""
        with self._lock:
            return [metric(spec.name, self._samples(spec)) for spec in METERS if spec.of == "process"]

    def _samples(self, spec: MeterSpec) -> list[Sample]:
        if spec.kind != "histogram":
            values = self._values[spec.name] or ({(): 0.0} if not spec.labels else {})
            return [
                Sample(spec.name, tuple(zip(spec.labels, labels, strict=True)), value)
                for labels, value in sorted(values.items())
            ]
        found, total = [], 0
        for bound, number in zip((*map(str, BUCKETS), "+Inf"), self._buckets[spec.name], strict=True):
            total += number
            found.append(Sample(f"{spec.name}_bucket", (("le", bound),), total))
        return [*found, Sample(f"{spec.name}_sum", (), self._sums[spec.name]), Sample(f"{spec.name}_count", (), total)]


def metric(name: str, samples: Iterable[Sample]) -> Metric:
    """Give a meter of the table with these values."""
    spec = _BY_NAME[name]
    return Metric(spec.name, spec.kind, spec.help, tuple(samples))
