"""Hostile corners that evenly drawn schedules seldom come to; ``bench/adversarial.py --corners`` draws them, ``--beginnings``
intervals beside exclusions that begin and end.

Long steps beside a week, a day, a year or a prime; positions counted over dense sets; stacks of exceptions and of
exclusions; zones whose winter is ahead, whose changes are many or that lost a day; groups that are all rare; rules that
begin in the calendar's last years.
"""

from random import Random

from adversarial import ZONES, begins, part, rrule_set, schyntax

from lodger.engine.recurrence.rule import DstPolicy, Fold, Gap, Kind, RuleSpec, ScheduleRules

#: Winter ahead of summer, dense changes, changes of 20 minutes to a whole day, and names that are old.
STRANGE = (
    "Europe/Dublin", "Africa/Casablanca", "Africa/El_Aaiun", "Asia/Gaza", "Antarctica/Troll", "Pacific/Apia", "Asia/Tehran",
    "Pacific/Kwajalein", "America/Argentina/San_Luis", "America/Scoresbysund", "Antarctica/Casey", "Africa/Monrovia",
    "Europe/Warsaw", "Asia/Manila", "America/Santiago", "Pacific/Chatham", "America/St_Johns", "Asia/Pyongyang", "Etc/GMT-14",
)  # fmt: skip
_DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_PRIMES = (
    86_389, 86_413, 146_093, 146_099, 604_787, 604_801, 1_000_003, 2_629_747, 20_873, 1_009, 1_433, 1_447, 10_079, 10_091,
)  # fmt: skip


def step(dice: Random) -> int:
    """An INTERVAL just beside a multiple of a day, a week or a year, or a prime near one."""
    if dice.random() < 0.3:
        return dice.choice(_PRIMES)
    unit = dice.choice((24, 60, 168, 1440, 3600, 10_080, 86_400, 604_800, 31_536_000, 31_556_952))
    return max(2, unit * dice.choice((1, 1, 1, 2, 3, 5, 7, 11, 53)) + dice.choice((-2, -1, -1, 1, 1, 2, 0)))


def drifting(dice: Random) -> str:
    """Steps that drift against the day or the week, and days of the week, the month or the year that they hardly meet."""
    parts = [f"FREQ={dice.choice(('HOURLY', 'MINUTELY', 'SECONDLY', 'SECONDLY', 'DAILY'))}", f"INTERVAL={step(dice)}"]
    for name in dice.sample(("BYDAY", "BYMONTH", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO", "BYHOUR"), dice.randint(1, 3)):
        many = dice.choice((1, 1, 2))
        chosen: dict[str, list[str]] = {
            "BYDAY": dice.sample(_DAYS, many),
            "BYMONTH": [str(dice.randint(1, 12)) for _ in range(many)],
            "BYMONTHDAY": [str(dice.choice((1, 13, 29, 31, -1, -31))) for _ in range(many)],
            "BYYEARDAY": [str(dice.choice((1, 60, 366, -366))) for _ in range(many)],
            "BYWEEKNO": [str(dice.choice((1, 53, -53, 52))) for _ in range(many)],
            "BYHOUR": [str(dice.randint(0, 23)) for _ in range(dice.choice((1, 3, 12)))],
        }
        parts.append(f"{name}={','.join(chosen[name])}")
    if dice.random() < 0.3:
        parts.append(f"COUNT={dice.choice((1, 2, 1000, 1_000_000))}")
    return ";".join(parts)


def positioned(dice: Random) -> str:
    """Positions over dense sets of every FREQ, of weeks and days that few years have."""
    freq = dice.choice(("YEARLY", "YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY"))
    parts = [f"FREQ={freq}"]
    if dice.random() < 0.5:
        parts.append(f"INTERVAL={dice.choice((2, 3, 7, 12, 53, 97, 399, 400, 4799, step(dice)))}")
    if dice.random() < 0.5:
        parts.append(f"BYWEEKNO={dice.choice(('53', '-53', '1,53', '20', ','.join(map(str, range(1, 54)))))}")
    if dice.random() < 0.5:
        parts.append(f"BYYEARDAY={dice.choice(('366', '-366', '1,366', ','.join(map(str, range(1, 367, 5)))))}")
    if dice.random() < 0.5:
        parts.append(f"BYDAY={','.join(dice.sample(_DAYS, dice.randint(1, 7)))}")
    if dice.random() < 0.5:
        parts.append(f"BYHOUR={','.join(map(str, range(dice.randint(0, 20), 24)))}")
    if dice.random() < 0.5:
        parts.append(f"BYMINUTE={','.join(map(str, range(60)))}")
    if not any(piece.startswith("BY") for piece in parts):
        parts.append("BYSECOND=" + ",".join(map(str, range(60))))
    parts.append(
        f"BYSETPOS={','.join(map(str, sorted({dice.choice((1, -1, 2, 7, 53, 366, -366)) for _ in range(3)})))}"
    )
    return ";".join(parts)


def _head(dice: Random, zone: str) -> str:
    year = dice.choice((1, 1883, 1900, 1970, 2026, 3389, 9990, 9998))
    at = "".join(f"{dice.randint(low, high):02}" for low, high in ((1, 12), (1, 28), (0, 23), (0, 59), (0, 59)))
    at = f"{year:04}{at[:4]}T{at[4:]}"
    return begins(zone, at)


def _set(dice: Random) -> RuleSpec:
    def one() -> str:
        return dice.choice((drifting, positioned, part))(dice)

    lines = [_head(dice, dice.choice((*STRANGE, *ZONES))), *(f"RRULE:{one()}" for _ in range(dice.randint(1, 6)))]
    if dice.random() < 0.4:
        lines += [f"EXRULE:{one()}" for _ in range(dice.randint(1, 5))]
    return RuleSpec("\n".join(lines), Kind.RRULE)


def _rare_groups(dice: Random) -> RuleSpec:
    rare = ("dates(2/29)", "dates(2/29) dow(mon)", "doy(366) dow(sun)", "dom(20..-20)", "dates(2199/12/31)")
    rare = (*rare, "dates(1900/1/1..2200/12/31%777)", "dates(!1/1..12/30)", "dow(sun) doy(-366)")
    groups = [
        f"{{{dice.choice(rare)} h({dice.randint(0, 23)}) m({dice.randint(0, 59)})}}"
        for _ in range(dice.choice((8, 30, 64)))
    ]
    return RuleSpec(" ".join(groups), Kind.SCHYNTAX)


def _rare_crons(dice: Random) -> RuleSpec:
    days = ("29 2 *", "29 2 1", "30 2 *", "31 4 *", "L 2 0", "* 2 1#5", "31W 12 *", "1 1 *")
    return RuleSpec(f"{dice.randint(0, 59)} {dice.randint(0, 23)} {dice.choice(days)}", Kind.CRON)


def beginning(dice: Random) -> ScheduleRules:
    """An interval beside a week, a day or an hour, and exclusions that begin and end in the middle of its slots."""

    def closed() -> RuleSpec:
        def line() -> str:
            which = (
                "",
                ";BYDAY=MO,TU,WE,TH",
                ";BYDAY=SA,SU",
                ";BYHOUR=0,6,12,18",
                ";BYMONTH=1,2,3,4,5,6,7,8,9,10,11",
                ";INTERVAL=2",
            )
            until = f";UNTIL={dice.choice((1950, 2030, 2100, 5000))}0301T000000Z" if dice.random() < 0.35 else ""
            return f"RRULE:FREQ=DAILY{dice.choice(which)}{until}"

        year, zone = dice.choice((1, 1900, 2016, 2026, 2100)), dice.choice(("UTC", "UTC", "Europe/Berlin"))
        at = f"{year:04}{dice.randint(1, 12):02}{dice.randint(1, 28):02}T{dice.randint(0, 23):02}{dice.randint(0, 59):02}00"
        lines = [
            begins(zone, at),
            f"DURATION:PT{dice.choice((1, 8, 23, 24, 30, 200))}H",
            *(line() for _ in range(dice.choice((1, 1, 1, 2)))),
        ]
        return RuleSpec("\n".join(lines), Kind.RRULE)

    period_s = dice.choice((604_801, 604_799, 86_401, 86_399, 90_061, 25_200, 86_400, 604_800, 1_209_601, 3600, 7261))
    since = dice.choice((None, None, "2020-01-01T00:00:00Z", "1890-05-05T05:05:05Z"))
    every = RuleSpec(f"every {period_s}s", Kind.EVERY, dtstart=since)
    return ScheduleRules(
        (every,), tuple(closed() for _ in range(dice.randint(1, 3))), tz=dice.choice(("UTC", "Europe/Berlin"))
    )


def corner(dice: Random) -> ScheduleRules:
    """One schedule out of a corner."""
    shape = dice.random()
    if shape < 0.5:
        rules = [_set(dice) for _ in range(dice.choice((1, 1, 1, 2, 5)))]
    elif shape < 0.65:
        rules = [_rare_groups(dice) for _ in range(dice.choice((1, 1, 2, 4)))]
    elif shape < 0.8:
        rules = [_rare_crons(dice) for _ in range(dice.choice((1, 8, 24)))]
    else:
        rules = [RuleSpec(schyntax(dice), Kind.SCHYNTAX), RuleSpec(f"every {step(dice)}s", Kind.EVERY)]
    exclusions = []
    if dice.random() < 0.35:
        for _ in range(dice.randint(1, 8)):
            what = dice.random()
            if what < 0.4:
                exclusions.append(
                    _rare_crons(dice) if what < 0.1 else RuleSpec(rrule_set(dice, exceptions=False), Kind.RRULE)
                )
            else:
                zone = dice.choice((*STRANGE, *ZONES))
                length = dice.choice(("PT1S", "PT59M", "PT8H", "PT23H59M59S", "P1D", "P6D", "PT36H"))
                value = f"{_head(dice, zone)}\nDURATION:{length}\nRRULE:{dice.choice((drifting, part))(dice)}"
                exclusions.append(RuleSpec(value, Kind.RRULE))
    policy = DstPolicy(dice.choice((None, *Gap)), dice.choice((None, *Fold)))
    return ScheduleRules(tuple(rules), tuple(exclusions), tz=dice.choice((*STRANGE, *ZONES)), dst=policy)
