"""Thousands of hostile rules, drawn at random, and what one question about each costs.

    PYTHONPATH=.dev python bench/adversarial.py [how many] [first seed] [--json] [--corners]

Questions go forwards and backwards from instants before, near and long after DTSTART, at the ends of the calendar, near
changes of clocks, and on from the slot that was found. A different one is the first for each rule, and one that seems to
cost too much is asked again of the rule read afresh, so that nothing is kept but what reading made. A figure is the least
of several tries of CPU time: the rest is the machine. Ends with 1 when a question costs more than a millisecond.
``--corners`` draws from ``bench/corners.py``.
"""

import gc
import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from time import perf_counter, thread_time_ns
from typing import Any

from lodger.engine.recurrence.compile import compile_schedule
from lodger.engine.recurrence.errors import RuleInvalid
from lodger.engine.recurrence.rule import DstPolicy, Fold, Gap, Kind, Recurrence, RuleSpec, ScheduleRules

MOST_MS = 1.0
#: Reading should take less; seeds that took longer are told.
MOST_READING_MS = 300
_NOW = datetime(2026, 11, 21, 12, 0, 1, tzinfo=UTC)
_FREQS = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY")
_DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "Asia/Kolkata")
#: INTERVALs that drift slowly through the day, the week or the year, that never meet, or that hardly ever come.
_STEPS = (
    2, 3, 5, 7, 11, 12, 13, 24, 25, 48, 49, 59, 61, 77, 90, 365, 366, 400, 773, 1439, 1440, 1441, 1461, 2555, 3599,
    3601, 4800, 20_871, 43_199, 43_201, 86_399, 86_400, 86_401, 172_799, 604_799, 604_801, 1_000_003, 31_556_951,
    100_000_007, 999_999_937,
)  # fmt: skip


def _some(dice: Random, low: int, high: int, *, signed: bool = False) -> str:
    shape = dice.random()
    if shape < 0.5:
        found = {dice.randint(low, high) for _ in range(dice.randint(1, 3))}
    elif shape < 0.85:
        first = dice.randint(low, high)
        found = set(range(first, min(high, first + dice.randint(1, high)) + 1))
    else:
        found = set(range(low + dice.randint(0, 1), high + 1, dice.randint(2, 3)))
    if signed:
        found = {-each if dice.random() < 0.3 else each for each in found}
    return ",".join(map(str, sorted(found)))


def part(dice: Random) -> str:
    """One hostile RRULE value."""
    freq = dice.randrange(7)
    parts = [f"FREQ={_FREQS[freq]}"]
    if dice.random() < 0.6:
        parts.append(f"INTERVAL={dice.choice(_STEPS) if dice.random() < 0.8 else dice.randint(2, 999_999_999)}")
    ranges: dict[str, tuple[int, int, bool]] = {
        "BYMONTH": (1, 12, False), "BYMONTHDAY": (1, 31, True), "BYYEARDAY": (1, 366, True), "BYWEEKNO": (1, 53, True),
        "BYHOUR": (0, 23, False), "BYMINUTE": (0, 59, False), "BYSECOND": (0, 59, False),
    }  # fmt: skip
    chosen = dice.sample(sorted(ranges), dice.randint(0, 4))
    parts += [f"{name}={_some(dice, *ranges[name][:2], signed=ranges[name][2])}" for name in chosen]
    if dice.random() < 0.35:
        numbered = freq <= 1 and "BYWEEKNO" not in chosen
        days = dice.sample(_DAYS, dice.randint(1, 4))
        parts.append(
            "BYDAY=" + ",".join(f"{dice.choice(('', '1', '-1', '5', '53')) if numbered else ''}{d}" for d in days)
        )
    if len(parts) > 2 and dice.random() < 0.25 and any(piece.startswith("BY") for piece in parts):
        parts.append(f"BYSETPOS={_some(dice, 1, 366 if dice.random() < 0.3 else 4, signed=True)}")
    if dice.random() < 0.2:
        parts.append(f"WKST={dice.choice(_DAYS)}")
    if dice.random() < 0.2:
        parts.append(f"COUNT={dice.choice((1, 10, 1000, 100_000, 999_999_999))}")
    elif dice.random() < 0.1:
        parts.append(f"UNTIL={dice.choice((2027, 2100, 5000))}0301T000000Z")
    return ";".join(parts)


def _start(dice: Random) -> str:
    year = dice.choice((1, 1900, 1926, 1970, 2016, 2026, dice.randint(1, 9998)))
    return (
        f"{year:04}{dice.randint(1, 12):02}{dice.randint(1, 28):02}T{dice.randint(0, 23):02}{dice.randint(0, 59):02}00"
    )


def begins(zone: str, at: str) -> str:
    """DTSTART, by the clock of a zone."""
    return f"DTSTART:{at}Z" if zone == "UTC" else f"DTSTART;TZID={zone}:{at}"


def _related(dice: Random, rule: str) -> str:
    """A rule that takes much of another one away: the same parts with some dropped or widened."""
    kept = [piece for piece in rule.split(";") if not piece.startswith(("COUNT", "UNTIL", "BYSETPOS"))]
    head, rest = kept[0], kept[1:]
    rest = [piece for piece in rest if dice.random() < 0.7]
    if dice.random() < 0.3:
        head = f"FREQ={dice.choice(_FREQS)}"
    if dice.random() < 0.4:
        rest = [*(p for p in rest if not p.startswith("BYHOUR")), f"BYHOUR={_some(dice, 0, 23)}"]
    if dice.random() < 0.3:
        rest = [*(p for p in rest if not p.startswith("BYMONTH=")), f"BYMONTH={_some(dice, 1, 12)}"]
    return ";".join([head, *rest])


def rrule_set(dice: Random, *, exceptions: bool) -> str:
    """DTSTART, one or several RRULEs, and EXRULEs where asked."""
    zone = dice.choice(ZONES)
    head = begins(zone, _start(dice))
    rules = [part(dice) for _ in range(1 if dice.random() < 0.8 else dice.randint(2, 4))]
    lines = [head, *(f"RRULE:{each}" for each in rules)]
    if exceptions:
        many = 1 if dice.random() < 0.6 else dice.randint(2, 6)
        taken = (_related(dice, dice.choice(rules)) if dice.random() < 0.7 else part(dice) for _ in range(many))
        lines += [f"EXRULE:{each}" for each in taken]
    return "\n".join(lines)


def cron(dice: Random) -> str:
    """A cron expression of any kind."""
    spans = ((0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 7))[dice.randint(0, 1) :]
    fields = [
        _some(dice, *span) if dice.random() < 0.6 else dice.choice(("*", "*/7", f"*/{dice.randint(2, 5)}"))
        for span in spans
    ]
    if dice.random() < 0.3:
        fields[-3] = dice.choice(("L", "LW", "15W", "31W", "L-30", "29,30,31"))
    if dice.random() < 0.3:
        fields[-1] = dice.choice(("5L", "1#5", "MON#5,FRI#5", "0#1", "SAT,SUN"))
    return f"{dice.choice(('', 'DAYS=both ', 'DAYS=either '))}{' '.join(fields)}"


def schyntax(dice: Random) -> str:
    """A Schyntax schedule with groups."""
    units = (("s", 0, 59), ("m", 0, 59), ("h", 0, 23), ("dow", 1, 7), ("dom", 1, 28), ("doy", 1, 366))

    def expression() -> str:
        name, low, high = dice.choice(units)
        one, two = dice.randint(low, high), dice.randint(low, high)
        shape = dice.choice(
            (
                f"{one}",
                f"{one}..{two}",
                f"!{one}",
                f"*%{dice.randint(1, high)}",
                f"{one}..{two}%{dice.randint(1, high)}",
            )
        )
        return f"{name}({shape})"

    def date() -> str:
        return dice.choice(
            ("dates(2/29)", "dates(2199/12/31)", "dates(!1/1..12/30)", "dates(1900/1/1..2200/12/31%777)")
        )

    groups = []
    for _ in range(dice.randint(1, 64) if dice.random() < 0.1 else dice.randint(1, 3)):
        inside = [expression() for _ in range(dice.randint(1, 4))] + ([date()] if dice.random() < 0.3 else [])
        groups.append("{" + " ".join(inside) + "}")
    return " ".join(groups)


def schedule(dice: Random) -> ScheduleRules:
    """A whole schedule: hostile rules of any language, now and then with exclusions, bounds and a DST policy."""

    def any_rule() -> RuleSpec:
        shape = dice.random()
        if shape < 0.6:
            return RuleSpec(rrule_set(dice, exceptions=dice.random() < 0.35), Kind.RRULE)
        if shape < 0.8:
            return RuleSpec(cron(dice), Kind.CRON)
        if shape < 0.95:
            return RuleSpec(schyntax(dice), Kind.SCHYNTAX)
        return RuleSpec(f"every {dice.choice((1, 90, 3600, 86_399, 604_801))}s", Kind.EVERY)

    def closed() -> RuleSpec:
        shape = dice.random()
        if shape < 0.4:
            value = f"DTSTART;VALUE=DATE:{_start(dice)[:8]}\nRRULE:FREQ=DAILY"
            extra = dice.choice(
                ("", ";BYMONTH=1,2,3,4,5,6,7,8,9,10,11", ";BYDAY=SA,SU", ";INTERVAL=2", ";BYMONTHDAY=13")
            )
            return RuleSpec(value + extra, Kind.RRULE)
        if shape < 0.7:
            value = f"DTSTART:{_start(dice)}\nDURATION:PT{dice.choice((1, 8, 23, 24, 30, 200))}H\nRRULE:FREQ=DAILY"
            extra = dice.choice(("", ";BYDAY=MO,TU,WE,TH", ";BYHOUR=0,6,12,18", ";INTERVAL=3"))
            return RuleSpec(value + extra, Kind.RRULE)
        return any_rule()

    one = dice.random() < 0.6
    rules = tuple(any_rule() for _ in range(1 if one else dice.randint(2, 6)))
    exclusions = tuple(closed() for _ in range(dice.randint(1, 3))) if dice.random() < 0.3 else ()
    policy = DstPolicy(
        dice.choice((None, *Gap)) if dice.random() < 0.4 else None,
        dice.choice((None, *Fold)) if dice.random() < 0.4 else None,
    )
    return ScheduleRules(rules, exclusions, tz=dice.choice(ZONES), dst=policy)


def questions(dice: Random) -> list[Callable[[Recurrence], object]]:
    """What is asked: next and previous, near and far, at both ends, and about the days of a change of the clocks."""
    instants = [
        _NOW + timedelta(days=days, seconds=dice.randrange(86_400)) for days in (0, dice.randint(-700_000, 2_900_000))
    ]
    # In the nights of these Sundays many clocks change.
    sunday = dice.choice(((2027, 3, 28), (2027, 10, 31), (2027, 3, 14), (2027, 11, 7), (2027, 4, 4), (2027, 4, 30)))
    instants.append(datetime(*sunday, tzinfo=UTC) + timedelta(minutes=dice.randint(-900, 900)))
    asked = [ask for instant in instants for ask in (_after(instant), _before(instant))]
    far = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC) - timedelta(seconds=dice.randrange(10 ** dice.randint(1, 10)))
    asked += [_after(datetime.min.replace(tzinfo=UTC)), _before(far), _after(far), _on_from(instants[1])]
    dice.shuffle(asked)
    return asked


def _on_from(instant: datetime) -> Callable[[Recurrence], object]:
    def ask(rule: Recurrence) -> object:
        slot = rule.next_after(instant)
        return slot and rule.next_after(slot)

    return ask


def _after(instant: datetime) -> Callable[[Recurrence], object]:
    return lambda rule: rule.next_after(instant)


def _before(instant: datetime) -> Callable[[Recurrence], object]:
    return lambda rule: rule.previous_before(instant)


def dearest_ms(rules: ScheduleRules, dice: Random) -> tuple[float, float]:
    """Milliseconds of CPU of the dearest question to a freshly read schedule, and of reading it.

    Raises:
        RuleInvalid: the schedule is refused.
    """
    dearest = 0.0
    begin = thread_time_ns()
    rule = _read(rules)
    reading = (thread_time_ns() - begin) / 1e6
    for ask in questions(dice):
        best = 1e9
        for tries in range(12):
            begin = thread_time_ns()
            ask(rule)
            best = min(best, (thread_time_ns() - begin) / 1e6)
            if best <= MOST_MS / 2 or (tries > 2 and best <= MOST_MS):
                break
            rule = _read(rules)
        dearest = max(dearest, best)
    return dearest, reading


def _read(rules: ScheduleRules) -> Recurrence:
    return compile_schedule(rules, now=_NOW)


def main() -> int:
    """Draw, measure, tell; give the exit code."""
    given = [each for each in sys.argv[1:] if not each.startswith("--")]
    many, first = (int(text) for text in (*given, *("34000", "0")[len(given) :]))
    draw = schedule
    if "--corners" in sys.argv:
        from corners import corner as draw
    if "--beginnings" in sys.argv:
        from corners import beginning as draw
    refused: dict[str, int] = {}
    above: list[dict[str, Any]] = []
    long_read: list[int] = []
    figures: list[float] = []
    readings: list[float] = []
    begin = perf_counter()
    gc.disable()
    for seed in range(first, first + many):
        dice = Random(seed)
        rules = draw(dice)
        try:
            dearest, reading = dearest_ms(rules, dice)
        except RuleInvalid as error:
            refused[error.code] = refused.get(error.code, 0) + 1
            continue
        except Exception as error:  # noqa: BLE001 - any exception but the documented one is a find
            above.append({"seed": seed, "fault": repr(error)})
            print(f"seed {seed}: {error!r}", flush=True)
            continue
        figures.append(dearest)
        readings.append(reading)
        if reading > MOST_READING_MS:
            long_read.append(seed)
        if dearest > MOST_MS:
            above.append({"seed": seed, "ms": round(dearest, 2), "rules": [spec.text for spec in rules.rules]})
            if "--json" not in sys.argv:
                print(f"seed {seed}: {dearest:.2f} ms", flush=True)
        if seed % 200 == 0:
            gc.collect()
    figures.sort()
    readings.sort()
    body = {
        "drawn": many, "measured": len(figures), "refused": refused, "above": len(above),
        "median_ms": round(figures[len(figures) // 2], 4), "p99_ms": round(figures[len(figures) * 99 // 100], 3),
        "worst_ms": round(figures[-1], 3), "reading_p50_ms": round(readings[len(readings) // 2], 2),
        "reading_p99_ms": round(readings[len(readings) * 99 // 100], 2), "reading_worst_ms": round(readings[-1], 1),
        "read_longer": long_read, "took_s": round(perf_counter() - begin),
    }  # fmt: skip
    print(json.dumps(body | {"slow": above}) if "--json" in sys.argv else json.dumps(body, indent=1))
    return int(bool(above))


if __name__ == "__main__":
    sys.exit(main())
