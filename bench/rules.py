"""Next slots of typical and hostile rules beside python-dateutil and cronsim, in one run."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from statistics import median
from time import perf_counter
from typing import Any

from lodger.engine.recurrence.parse import parse_rule
from lodger.engine.recurrence.rule import RuleSpec

_NOW = datetime(2026, 11, 21, 12, 0, 1, tzinfo=UTC)
#: A question to another library is asked until this much time is gone, at least once.
_PATIENCE_S = 0.1
_QUESTIONS = 300

RULES = (
    ("rrule", "FREQ=DAILY"),
    ("rrule", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"),
    ("rrule", "FREQ=MONTHLY;BYDAY=-1FR"),
    ("rrule", "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1"),
    ("rrule", "FREQ=HOURLY;INTERVAL=5"),
    ("rrule", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO"),
    ("rrule", "FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=29"),
    ("rrule", "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"),
    ("cron", "*/5 * * * *"),
    ("cron", "0 9 * * 1-5"),
    ("cron", "0 0 29 2 1"),
    ("schyntax", "min(*%5) hours(8..17) days(mon..fri)"),
    ("every", "every 90s"),
)  # fmt: skip
#: Rules that take the others seconds for a single answer, or for ever: they are not asked.
HOSTILE = (
    ("rrule", "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30"),
    ("rrule", "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO;BYHOUR=3;BYMINUTE=4;BYSECOND=5"),
    ("rrule", "FREQ=SECONDLY;INTERVAL=86399;BYHOUR=3;BYMINUTE=4;BYSECOND=5"),
    ("rrule", "FREQ=YEARLY;BYHOUR=0,6,12,18;BYMINUTE=0,15,30,45;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-366,-1,1,366"),
    ("cron", "0 0 30 2 *"),
)  # fmt: skip


def measure() -> list[dict[str, Any]]:
    """Return a row for each rule: microseconds of each library, None where it is not installed or not asked."""
    rows = [_measured(kind, text) for kind, text in RULES]
    return rows + [_measured(kind, text, beside=False) for kind, text in HOSTILE]


def _measured(kind: str, text: str, *, beside: bool = True) -> dict[str, Any]:
    start = "19000101T000000Z" if kind == "rrule" else None
    rule = parse_rule(RuleSpec(text, dtstart=start))
    instants = [_NOW + timedelta(seconds=97_003 * n) for n in range(_QUESTIONS)]
    Random(1).shuffle(instants)
    took = [_timed(rule.next_after, instant) for instant in instants]
    row: dict[str, Any] = {"rule": text, "lodger": round(median(took), 1), "lodger_worst": round(max(took), 1)}
    row["dateutil"] = _others(_dateutil(text), instants) if kind == "rrule" and beside else None
    row["cronsim"] = _others(_cronsim(text), instants) if kind == "cron" and beside else None
    return row


def _timed(ask: Callable[[datetime], object], instant: datetime) -> float:
    begin = perf_counter()
    ask(instant)
    return (perf_counter() - begin) * 1e6


def _others(ask: Callable[[datetime], object] | None, instants: list[datetime]) -> float | None:
    if ask is None:
        return None
    took: list[float] = []
    for instant in instants:
        took.append(_timed(ask, instant))
        if sum(took) > _PATIENCE_S * 1e6:
            break
    return round(median(took), 1)


def _dateutil(text: str) -> Callable[[datetime], object] | None:
    try:
        from dateutil.rrule import rrulestr
    except ImportError:
        return None
    rule = rrulestr(text, dtstart=datetime(1900, 1, 1, tzinfo=UTC))
    return lambda instant: rule.after(instant)


def _cronsim(text: str) -> Callable[[datetime], object] | None:
    try:
        from cronsim import CronSim
    except ImportError:
        return None
    return lambda instant: next(CronSim(text, instant), None)
