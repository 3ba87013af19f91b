"""Thousands of hostile schedules, drawn at random: how many steps one question about each takes, and what it costs.

    python bench/adversarial.py [how many] [first seed] [--everyday]

Questions go forwards and backwards from instants near and far. Ends with 1 when one takes more than
``MAX_STEPS`` steps, or when an everyday schedule (``--everyday``) is refused or needs more than one question.
"""

import sys
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from random import Random
from time import thread_time_ns

from lodger.engine.recurrence.compile import compile_schedule
from lodger.engine.recurrence.rule import DstPolicy, Fold, Gap, Kind, RuleSpec, ScheduleRules
from lodger.engine.recurrence.rule_errors import RuleInvalid
from lodger.engine.recurrence.schedule import CompiledSchedule
from lodger.engine.recurrence.search import MAX_STEPS, OutOfSteps, SearchedTo, Steps

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


#: Cron expressions that people write, and what they exclude from them.
_CRON = (
    "*/5 * * * *", "*/15 * * * *", "0 * * * *", "30 9 * * *", "0 9 * * 1-5", "0 9,17 * * *", "*/10 8-18 * * 1-5", "0 10 1 * *",
    "15 14 * * 2", "* * * * *", "0 */2 * * *", "0 6 * * 1", "0 15 15 * *", "45 16 L * *", "0 8 * * 1#1", "*/7 * * * *",
)  # fmt: skip
_CLOSED = (
    "DTSTART{zone}:20200101T220000\nDURATION:PT8H\nRRULE:FREQ=DAILY",  # nights
    "DTSTART{zone}:20200101T120000\nDURATION:PT1H\nRRULE:FREQ=DAILY",  # lunch
    "DTSTART;VALUE=DATE:20200101\nRRULE:FREQ=WEEKLY;BYDAY=SA,SU",
    "DTSTART;VALUE=DATE:20201224\nRRULE:FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=24,25,26",
    "DTSTART{zone}:20200701T000000\nDURATION:P62D\nRRULE:FREQ=YEARLY",  # a long summer
    "DTSTART{zone}:20201211T000000\nDURATION:P21D\nRRULE:FREQ=YEARLY",  # a freeze
    "DTSTART{zone}:20200106T000000\nDURATION:P1W\nRRULE:FREQ=WEEKLY;INTERVAL=3",
    "DTSTART{zone}:20200105T020000\nDURATION:PT4H\nRRULE:FREQ=WEEKLY;BYDAY=SU",  # maintenance
)  # fmt: skip


def everyday(dice: Random) -> ScheduleRules:
    """What a company schedules: a cron expression without two or three of nights, lunch, weekends, holidays, freezes."""
    tz = dice.choice(ZONES)
    zone = "" if tz == "UTC" else f";TZID={tz}"
    closed = (RuleSpec(text.format(zone=zone)) for text in dice.sample(_CLOSED, dice.randint(2, 3)))
    return ScheduleRules((RuleSpec(dice.choice(_CRON)),), tuple(closed), tz=tz)


def question_cost(schedule: CompiledSchedule, dice: Random) -> tuple[int, float]:
    """Most steps of some questions to a schedule, and milliseconds of the dearest."""
    max_steps, dearest = 0, 0.0
    for days in (0, dice.randint(-700_000, 2_900_000)):
        for ask in (schedule.next_from, schedule.last_to):
            steps = Steps()
            begin = thread_time_ns()
            with suppress(OutOfSteps):
                ask(_NOW + timedelta(days=days, seconds=dice.randrange(86_400)), steps)
            dearest = max(dearest, (thread_time_ns() - begin) / 1e6)
            max_steps = max(max_steps, MAX_STEPS - steps.left)
    return max_steps, dearest


def main() -> int:
    """Draw, ask, print; return the exit code."""
    given = [each for each in sys.argv[1:] if not each.startswith("--")]
    many, first = (int(text) for text in (*given, *("20000", "0")[len(given) :]))
    usual = "--everyday" in sys.argv
    refused: Counter[str] = Counter()
    figures: list[tuple[int, float]] = []
    wrong = 0
    for seed in range(first, first + many):
        dice = Random(seed)
        rules = everyday(dice) if usual else schedule(dice)
        try:
            compiled = compile_schedule(rules, now=_NOW)
            if usual and isinstance(compiled.next_after(_NOW), SearchedTo):
                wrong += 1
                print(f"seed {seed}: one question is not enough")
        except RuleInvalid as error:
            refused[error.code] += 1
            continue
        figures.append(question_cost(compiled, dice))
    steps, costs = (sorted(each) for each in zip(*figures, strict=True))
    wrong += (sum(refused.values()) if usual else 0) + (steps[-1] > MAX_STEPS + 1)
    print(f"{many} drawn, refused: {dict(refused)}")
    for name, values in (("steps", steps), ("ms", costs)):
        median, p99 = values[len(values) // 2], values[len(values) * 99 // 100]
        print(f"{name}: median {median:.3g}, p99 {p99:.3g}, most {values[-1]:.3g}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
