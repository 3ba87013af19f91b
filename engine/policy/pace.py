"""How long runs of a schedule take, and when one takes unusually long: by median and median deviation, which no outlier moves."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

#: Fewer earlier runs say nothing.
MIN_RUNS = 5
#: So many earlier runs are looked at.
MAX_RUNS = 50
#: A run is slow when it takes more than the median plus so many deviations (of a normal distribution's standard ones),
DEVIATIONS = 6.0
#: and more than so many times the median,
FACTOR = 1.5
#: and at least so many milliseconds more: a quick script alarms no one.
MIN_MORE_MS = 1000.0
_TO_SIGMA = 1.4826


@dataclass(frozen=True, slots=True)
class Timing:
    """One successful run."""

    finished_us: int
    wall_ms: float


@dataclass(frozen=True, slots=True)
class Pace:
    """Durations of earlier runs, milliseconds."""

    runs: int
    median_ms: float
    deviation_ms: float

    @property
    def limit_ms(self) -> float | None:
        """Return the duration above which a run is slow; None while too few runs are known."""
        if self.runs < MIN_RUNS:
            return None
        return max(
            self.median_ms + DEVIATIONS * _TO_SIGMA * self.deviation_ms,
            self.median_ms * FACTOR,
            self.median_ms + MIN_MORE_MS,
        )

    def slow(self, took_ms: float) -> bool:
        """Whether a run that took so long, or has taken so long already, is slow."""
        limit = self.limit_ms
        return limit is not None and took_ms > limit


def pace(durations_ms: Sequence[float]) -> Pace:
    """Return median and median deviation of durations; zeros for none."""
    if not durations_ms:
        return Pace(0, 0.0, 0.0)
    middle = median(durations_ms)
    return Pace(len(durations_ms), middle, median(abs(each - middle) for each in durations_ms))
