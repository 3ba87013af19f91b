"""Whether a schedule's runs have become slower, at once or little by little, compared with a baseline that does not follow them."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from lodger.engine.policy.pace import MIN_MORE_MS, Timing

#: The median of so many latest runs is the present level.
RECENT = 5
#: The baseline is the median of so many of the oldest known runs, or of as many as there are, but of no fewer than RECENT.
BASELINE_RUNS = 20
#: A level of so many times the baseline is a slow-down, when it is MIN_MORE_MS longer too.
FACTOR = 2.0


class Onset(StrEnum):
    """How a slow-down came."""

    JUMP = "jump"  # from one run to the next
    DRIFT = "drift"  # little by little


@dataclass(frozen=True, slots=True)
class Baseline:
    """Usual durations of one step of a schedule.

    Attributes:
        since_us: end of the latest run that it was taken from.
    """

    wall_ms: float
    since_us: int


@dataclass(frozen=True, slots=True)
class Slowdown:
    """The level of a schedule's latest runs has risen: ``from_ms`` is the baseline, ``to_ms`` the median of the latest runs."""

    onset: Onset
    from_ms: float
    to_ms: float


def review(baseline: Baseline | None, timings: Sequence[Timing]) -> tuple[Baseline | None, Slowdown | None]:
    """Return the baseline to keep, and the slow-down if one has just begun.

    The level of a slow-down becomes the next baseline, so each is found once. A baseline falls when runs have become twice as fast.

    Args:
        baseline: the one kept so far, None at the first review.
        timings: the latest successful runs, newest first.
    """
    if baseline is None:
        oldest = timings[RECENT:][-BASELINE_RUNS:]
        if len(oldest) < RECENT:
            return None, None
        baseline = Baseline(_level(oldest), oldest[0].finished_us)
    later = [each for each in timings if each.finished_us > baseline.since_us]
    earlier = later[RECENT:]
    if len(earlier) >= RECENT and _level(earlier) * FACTOR <= baseline.wall_ms:
        baseline = Baseline(_level(earlier), earlier[0].finished_us)
    if len(later) >= RECENT and _is_slower(_level(later[:RECENT]), baseline.wall_ms):
        level = _level(later[:RECENT])
        return Baseline(level, later[0].finished_us), Slowdown(_onset(timings), baseline.wall_ms, level)
    return baseline, None


def _level(timings: Sequence[Timing]) -> float:
    """Return the median duration of timings, milliseconds."""
    return median(each.wall_ms for each in timings)


def _is_slower(level_ms: float, than_ms: float) -> bool:
    """Whether a level is at least FACTOR times, and MIN_MORE_MS more than, another."""
    return level_ms >= max(than_ms * FACTOR, than_ms + MIN_MORE_MS)


def _onset(timings: Sequence[Timing]) -> Onset:
    """Return ``jump`` if somewhere in the known runs one window of them is twice as slow as the window before it, else ``drift``."""
    windows = [_level(timings[start : start + RECENT]) for start in range(len(timings) - RECENT + 1)]
    jumped = any(_is_slower(after, before) for after, before in zip(windows, windows[RECENT:], strict=False))
    return Onset.JUMP if jumped else Onset.DRIFT
