"""Stands for stored rules that this process cannot compile: a zone that its zone data lacks, a language that grew stricter."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any


class Unreadable:
    """A recurrence that names no slot; the schedule is paused with the reason before it could be taken for one that ended."""

    def next_after(self, _instant: datetime, *, inclusive: bool = False) -> datetime | None:
        """No slot is known."""

    def previous_before(self, _instant: datetime, *, inclusive: bool = False) -> datetime | None:
        """No slot is known."""

    def between(self, _start: datetime, _end: datetime) -> Iterator[datetime]:
        """No slot is known."""
        return iter(())

    def text(self) -> str:
        """Say what it is."""
        return "rules that cannot be read"

    def proves_never(self) -> str | None:
        """Nothing can be proved."""

    def ends(self) -> bool:
        """Nothing can be proved."""
        return False

    def shifted(self, _slot: datetime) -> bool:
        """No slot is known."""
        return False


def why(error: Exception) -> str:
    """Give the note of a schedule whose rules cannot be read."""
    what: Any = getattr(error, "what", None) or error
    return f"paused by the engine: its rules cannot be read here: {what}"[:500]
