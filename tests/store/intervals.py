"""A recurrence for the ledger's tests: ``every N`` seconds from 1970, optionally ``until`` an instant, or ``at`` one."""

from datetime import UTC, datetime, timedelta

from lodger.engine.core.clock import from_us, to_us
from lodger.engine.recurrence.errors import RuleInvalid
from lodger.engine.recurrence.rule import Pace, Recurrence, ScheduleRules
from lodger.engine.recurrence.schedule import CompiledSchedule
from lodger.engine.recurrence.search import Steps


class Every(Recurrence):
    """Slots at every multiple of ``step_us`` in [first_us, last_us]; counts how often it is asked."""

    def __init__(self, step_us: int, first_us: int = 0, last_us: int | None = None) -> None:
        self.step, self.first, self.last = step_us, first_us, last_us
        self.asked = 0

    def _slot(self, us: int) -> datetime | None:
        return from_us(us) if us >= self.first and (self.last is None or us <= self.last) else None

    def next_from(self, instant: datetime, steps: Steps) -> datetime | None:
        self.asked += 1
        return self._slot(-(-max(to_us(instant), self.first) // self.step) * self.step)

    def last_to(self, instant: datetime, steps: Steps) -> datetime | None:
        self.asked += 1
        us = to_us(instant) if self.last is None else min(to_us(instant), self.last)
        return self._slot(us // self.step * self.step)

    def text(self) -> str:
        return f"Every {self.step / 1e6:g} s"

    def never_reason(self) -> str | None:
        return None if self.last is None or self.last >= self.first else "it ends before it begins"

    def ends(self) -> bool:
        return self.last is not None

    def shifted(self, slot: datetime) -> bool:
        return False

    def pace(self) -> Pace:
        return Pace(self.step, 86_400_000_000 // self.step, self.step)


def compile_intervals(rules: ScheduleRules, *, now: datetime) -> CompiledSchedule:
    """Read ``every 60`` (seconds) within the schedule's start and end."""
    word, _, number = rules.rules[0].text.partition(" ")
    if word != "every" or not number.replace(".", "").isdigit():
        raise RuleInvalid("rule_invalid", f"{rules.rules[0].text!r} is no interval", index=0)
    first = to_us(rules.start) if rules.start else 0
    last = to_us(rules.end) - 1 if rules.end else None
    return CompiledSchedule([Every(round(float(number) * 1e6), first, last)])


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
