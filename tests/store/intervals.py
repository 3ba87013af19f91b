"""A recurrence for the ledger's tests: ``every N`` seconds from 1970, optionally ``until`` an instant, or ``at`` one."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from lodger.engine.core.clock import from_us, to_us
from lodger.engine.recurrence.errors import RuleInvalid
from lodger.engine.recurrence.rule import Density, ScheduleRules


class Every:
    """Slots at every multiple of ``step_us`` in [first_us, last_us]; counts how often it is asked."""

    def __init__(self, step_us: int, first_us: int = 0, last_us: int | None = None) -> None:
        self.step, self.first, self.last = step_us, first_us, last_us
        self.asked = 0

    def _slot(self, us: int) -> datetime | None:
        return from_us(us) if us >= self.first and (self.last is None or us <= self.last) else None

    def next_after(self, instant: datetime, *, inclusive: bool = False) -> datetime | None:
        self.asked += 1
        us = max(to_us(instant) - inclusive, self.first - 1)
        return self._slot((us // self.step + 1) * self.step)

    def previous_before(self, instant: datetime, *, inclusive: bool = False) -> datetime | None:
        self.asked += 1
        us = to_us(instant) - (not inclusive)
        if self.last is not None:
            us = min(us, self.last)
        return self._slot(us // self.step * self.step)

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        slot = self.next_after(start, inclusive=True)
        while slot is not None and slot < end:
            yield slot
            slot = self.next_after(slot)

    def text(self) -> str:
        return f"Every {self.step / 1e6:g} s"

    def proves_never(self) -> str | None:
        return None if self.last is None or self.last >= self.first else "it ends before it begins"

    def ends(self) -> bool:
        return self.last is not None

    def density(self, since: datetime | None = None, *, gap_only: bool = False) -> Density:
        return Density(self.step / 1e6, 86_400_000_000 // self.step)

    def shifted(self, slot: datetime) -> bool:
        return False


def compile_intervals(rules: ScheduleRules, *, now: datetime) -> Every:
    """Read ``every 60`` (seconds) within the schedule's start and end."""
    word, _, number = rules.rules[0].text.partition(" ")
    if word != "every" or not number.replace(".", "").isdigit():
        raise RuleInvalid("rule_invalid", f"{rules.rules[0].text!r} is no interval", index=0)
    first = to_us(rules.start) if rules.start else 0
    last = to_us(rules.end) - 1 if rules.end else None
    return Every(round(float(number) * 1e6), first, last)


EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


class VirtualClock:
    """A clock that stands until it is moved."""

    def __init__(self, us: int = to_us(EPOCH)) -> None:
        self.us = us
        self.elapsed_us = 0

    def now_us(self) -> int:
        return self.us

    def elapsed_s(self) -> float:
        return self.elapsed_us / 1e6

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing waits in these tests")

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.us += round(seconds * 1e6)
        self.elapsed_us += round(seconds * 1e6)
