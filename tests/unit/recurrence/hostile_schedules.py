"""Hostile RRULEs, and hostile and everyday schedules drawn at random from a seed."""

from random import Random

from lodger.engine.recurrence.rule import DstPolicy, Fold, Gap, Kind, RuleSpec, ScheduleRules

_FREQS = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY")
_DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "Asia/Kolkata")
#: INTERVALs that drift slowly through the day, the week or the year, that never meet, or that hardly ever come.
_STEPS = (
    2, 3, 5, 7, 11, 12, 13, 24, 25, 48, 49, 59, 61, 77, 90, 365, 366, 400, 773, 1439, 1440, 1441, 1461, 2555, 3599,
    3601, 4800, 20_871, 43_199, 43_201, 86_399, 86_400, 86_401, 172_799, 604_799, 604_801, 1_000_003, 31_556_951,
    100_000_007, 999_999_937,
)  # fmt: skip


def _numbers(dice: Random, low: int, high: int, *, signed: bool = False) -> str:
    """Draw numbers of a range as a list in text."""
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
    parts += [f"{name}={_numbers(dice, *ranges[name][:2], signed=ranges[name][2])}" for name in chosen]
    if dice.random() < 0.35:
        numbered = freq <= 1 and "BYWEEKNO" not in chosen
        days = dice.sample(_DAYS, dice.randint(1, 4))
        parts.append(
            "BYDAY=" + ",".join(f"{dice.choice(('', '1', '-1', '5', '53')) if numbered else ''}{d}" for d in days)
        )
    if len(parts) > 2 and dice.random() < 0.25 and any(piece.startswith("BY") for piece in parts):
        parts.append(f"BYSETPOS={_numbers(dice, 1, 366 if dice.random() < 0.3 else 4, signed=True)}")
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
    """Draw a rule that takes much of another one away: the same parts with some dropped or widened."""
    kept = [piece for piece in rule.split(";") if not piece.startswith(("COUNT", "UNTIL", "BYSETPOS"))]
    head, rest = kept[0], kept[1:]
    rest = [piece for piece in rest if dice.random() < 0.7]
    if dice.random() < 0.3:
        head = f"FREQ={dice.choice(_FREQS)}"
    if dice.random() < 0.4:
        rest = [*(p for p in rest if not p.startswith("BYHOUR")), f"BYHOUR={_numbers(dice, 0, 23)}"]
    if dice.random() < 0.3:
        rest = [*(p for p in rest if not p.startswith("BYMONTH=")), f"BYMONTH={_numbers(dice, 1, 12)}"]
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
        _numbers(dice, *span) if dice.random() < 0.6 else dice.choice(("*", "*/7", f"*/{dice.randint(2, 5)}"))
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


TYPICAL = [
    "DTSTART:20260101T090000\nRRULE:FREQ=DAILY",
    "DTSTART;TZID=Europe/Berlin:20200101T090000\nRRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR",
    "DTSTART;TZID=America/New_York:20200101T090000\nRRULE:FREQ=MONTHLY;BYDAY=-1FR",
    "DTSTART:20160101T000000\nRRULE:FREQ=HOURLY",
    "DTSTART:20160101T000000\nRRULE:FREQ=MINUTELY;INTERVAL=5",
    "DTSTART:20250101T000000\nRRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
    "DTSTART:20250101T000000\nRRULE:FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO",
    "DTSTART:20200101T090000\nRRULE:FREQ=DAILY;COUNT=5000",
]
HOSTILE = [
    "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=SECONDLY;BYYEARDAY=366",
    "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO;BYHOUR=3;BYMINUTE=4;BYSECOND=5",
    "FREQ=MINUTELY;BYMONTH=12;BYMONTHDAY=31;BYHOUR=23;BYMINUTE=59",
    "FREQ=SECONDLY;INTERVAL=86399;BYHOUR=3;BYMINUTE=4;BYSECOND=5",
    "FREQ=SECONDLY;INTERVAL=86399;BYHOUR=3;BYMINUTE=4;BYSECOND=5;BYMONTH=2;BYMONTHDAY=29",
    "FREQ=MINUTELY;INTERVAL=1439;BYHOUR=3;BYMINUTE=7;BYDAY=MO;BYMONTHDAY=13",
    "FREQ=MINUTELY;INTERVAL=1441;BYHOUR=3,5,7;BYMONTH=2;BYMONTHDAY=29",
    "FREQ=SECONDLY;INTERVAL=1000003;BYHOUR=1,2,3",
    "FREQ=SECONDLY;INTERVAL=100003;BYHOUR=1,2,3,4,5,6,7;BYMONTH=2;BYMONTHDAY=29;BYDAY=SU",
    "FREQ=SECONDLY;INTERVAL=999999937;BYMONTH=1",
    "FREQ=HOURLY;INTERVAL=3904;BYMONTHDAY=-12,14;BYDAY=WE,TH;BYWEEKNO=34",
    "FREQ=DAILY;INTERVAL=365;BYMONTH=2;BYMONTHDAY=29",
    "FREQ=DAILY;INTERVAL=1461;BYMONTH=3;BYMONTHDAY=1;BYDAY=MO",
    "FREQ=DAILY;INTERVAL=773;BYMONTHDAY=13;BYDAY=FR",
    "FREQ=DAILY;INTERVAL=7;BYDAY=TU",
    "FREQ=WEEKLY;INTERVAL=773;BYMONTH=2;BYMONTHDAY=29",
    "FREQ=WEEKLY;INTERVAL=1000;BYMONTHDAY=31;BYDAY=FR",
    "FREQ=MONTHLY;INTERVAL=11;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO",
    "FREQ=MONTHLY;INTERVAL=13;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=YEARLY;INTERVAL=399;BYYEARDAY=366;BYDAY=SU",
    "FREQ=YEARLY;BYDAY=MO;BYSETPOS=54",
    "FREQ=YEARLY;BYWEEKNO=53;BYDAY=SU;BYMONTH=1;BYMONTHDAY=3",
    "FREQ=YEARLY;BYHOUR="
    + ",".join(map(str, range(24)))
    + ";BYMINUTE="
    + ",".join(map(str, range(60)))
    + ";BYSECOND="
    + ",".join(map(str, range(60)))
    + ";BYMONTHDAY="
    + ",".join(map(str, range(1, 32)))
    + ";BYSETPOS="
    + ",".join(str(n) for n in range(-366, 367) if n),
    "FREQ=WEEKLY;BYDAY=MO,TU,WE;BYHOUR=" + ",".join(map(str, range(24))) + ";BYSETPOS=-72,71",
    "DTSTART:19000101T000000\nRRULE:FREQ=SECONDLY;INTERVAL=7;COUNT=999999999",
    "DTSTART:19260101T000000\nRRULE:FREQ=HOURLY;COUNT=1000000",
    "DTSTART:00010101T000000\nRRULE:FREQ=MINUTELY;INTERVAL=77;BYHOUR=1,5,9;COUNT=999999999",
    "DTSTART:19260101T000000\nRRULE:FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=1,-1;COUNT=100000",
    "DTSTART:20260101T000000\nRRULE:FREQ=SECONDLY\nEXRULE:FREQ=SECONDLY",
    "DTSTART:20260101T000000\nRRULE:FREQ=SECONDLY\nEXRULE:FREQ=SECONDLY;BYHOUR=1,2",
    "DTSTART:20260101T000000\nRRULE:FREQ=SECONDLY\nEXRULE:FREQ=SECONDLY;INTERVAL=2\nEXRULE:FREQ=MINUTELY;BYSECOND=1,3,5,7,9",
    "DTSTART:20260101T090000\nRRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=1,3\nEXRULE:FREQ=MONTHLY;BYMONTHDAY=1,3",
    "FREQ=SECONDLY;INTERVAL=86399;BYHOUR=3",
    "FREQ=SECONDLY;INTERVAL=604801;BYDAY=TU",
    "FREQ=SECONDLY;INTERVAL=31556951;BYMONTH=3",
    "FREQ=DAILY;INTERVAL=365;BYMONTH=3",
    "FREQ=DAILY;INTERVAL=2555;BYDAY=TU",
    "DTSTART:20260101T000000\nRRULE:FREQ=SECONDLY\nEXRULE:FREQ=SECONDLY;BYMONTH=1,2,3,4,5,6,7,8,9,10,11",
]
