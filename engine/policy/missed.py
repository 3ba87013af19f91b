"""What slots become whose tick came too late."""

import re
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from lodger.engine.core.errors import InputError

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_WITHIN = re.compile(r"within:\s*((?:\d{1,9}\s*[smhd]\s*)+)")
_PART = re.compile(r"(\d+)\s*([smhd])")


class MissedKind(StrEnum):
    """The four ways."""

    SKIP = "skip"  # none of them runs
    LATEST = "latest"  # the latest runs, the rest is one gap row
    ALL = "all"  # every one runs, oldest first, up to catch_up_max
    WITHIN = "within"  # the latest runs when it is no older than the duration


@dataclass(frozen=True, slots=True)
class Missed:
    """A missed policy; ``str`` gives the text that :func:`parse_missed` reads. ``window`` is set for WITHIN only."""

    kind: MissedKind
    window: timedelta | None = None

    def __str__(self) -> str:
        if self.window is None:
            return self.kind.value
        return f"within:{int(self.window.total_seconds())}s"


def parse_missed(text: str) -> Missed:
    """Read ``skip``, ``latest``, ``all`` or ``within:10m`` (units s m h d, several may follow each other).

    Raises:
        InputError: missed_invalid.
    """
    text = text.strip().lower()
    if text in {MissedKind.SKIP, MissedKind.LATEST, MissedKind.ALL}:
        return Missed(MissedKind(text))
    match = _WITHIN.fullmatch(text)
    seconds = sum(int(count) * _UNITS[unit] for count, unit in _PART.findall(match[1])) if match else 0
    if 0 < seconds <= 366 * 86_400:
        return Missed(MissedKind.WITHIN, timedelta(seconds=seconds))
    raise InputError(
        "missed_invalid",
        f"there is no missed policy {text!r}",
        why="it says what happens to slots that nobody ticked in time",
        fix="one of: skip, latest, all, within:DURATION such as within:10m (at most 366 days)",
    )
