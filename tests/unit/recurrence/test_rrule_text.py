"""Sentences: exact, and never shared by rules that fire differently."""

from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lodger.engine.recurrence.rrule import parse
from lodger.engine.recurrence.rule_errors import RuleInvalid

FIRST = datetime.min.replace(tzinfo=UTC)
DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


def numbers(dice: Random, low: int, high: int, many: int = 4) -> str:
    return ",".join(str(n) for n in sorted({dice.randint(low, high) for _ in range(dice.randint(1, many))}))


def signed(dice: Random, high: int) -> str:
    return ",".join(str(dice.choice([1, -1]) * dice.randint(1, high)) for _ in range(dice.randint(1, 3)))


PARTS = {
    "INTERVAL": lambda dice: str(dice.randint(1, 4)),
    "BYMONTH": lambda dice: numbers(dice, 1, 12),
    "BYMONTHDAY": lambda dice: signed(dice, 31),
    "BYYEARDAY": lambda dice: signed(dice, 366),
    "BYWEEKNO": lambda dice: signed(dice, 53),
    "BYDAY": lambda dice: dice.choice([",".join(DAYS), ",".join(DAYS[:5]), *DAYS, "MO,WE", "SA,SU"]),
    "BYHOUR": lambda dice: numbers(dice, 0, 23),
    "BYMINUTE": lambda dice: numbers(dice, 0, 59, 30),
    "BYSECOND": lambda dice: numbers(dice, 0, 59),
    "BYSETPOS": lambda dice: signed(dice, 3),
    "WKST": lambda dice: dice.choice(DAYS),
    "UNTIL": lambda dice: dice.choice(["20300101", "20300101T000000", "20300101T235959", "20300101T120000Z"]),
    "COUNT": lambda dice: str(dice.randint(1, 60)),
}
FREQS = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY")
STARTS = (
    "DTSTART:20260101T000000\n",
    "DTSTART:20260101T090000\n",
    "DTSTART:20260102T090001\n",
    "DTSTART:20260101\n",
    "",
)


def written(start: str, parts: dict[str, str]) -> str:
    return f"{start}RRULE:" + ";".join(f"{name}={value}" for name, value in parts.items())


def slots(text: str) -> list[datetime]:
    rule, found = parse(text), []
    slot = rule.next_after(FIRST, inclusive=True, limit=10_000)
    while isinstance(slot, datetime) and len(found) < 50:
        found.append(slot)
        slot = rule.next_after(slot)
    return found


@given(st.integers(0, 2**32))
def test_one_changed_part_is_heard(seed: int) -> None:
    """One part changed, dropped or added, another FREQ or start: the sentences differ, or the slots do not."""
    dice = Random(seed)
    freq = dice.choice(FREQS)
    parts = {"FREQ": freq} | {name: PARTS[name](dice) for name in dice.sample(sorted(PARTS), dice.randint(0, 4))}
    start, other, other_start = dice.choice(STARTS), dict(parts), dice.choice(STARTS)
    change = dice.choice(["part", "part", "part", "freq", "start"])
    if change == "part":
        name = dice.choice(sorted(PARTS))
        if name in other and dice.random() < 0.5:
            del other[name]
        else:
            other[name] = PARTS[name](dice)
        other_start = start
    elif change == "freq":
        other["FREQ"], other_start = dice.choice(FREQS), start
    one, two = written(start, parts), written(other_start, other)
    try:
        first, second = parse(one).text(), parse(two).text()
    except RuleInvalid:
        return
    if first == second:
        assert slots(one) == slots(two), f"{one!r} and {two!r} share {first!r}"


#: A whole rule of each kind; a sentence that forgets one part is the same without it, and is caught.
WHOLE = [
    "FREQ=YEARLY;INTERVAL=2;WKST=SU;BYWEEKNO=20;BYMONTH=5;BYDAY=MO,TU;BYHOUR=9;BYMINUTE=30;BYSECOND=15;BYSETPOS=1;COUNT=5",
    "FREQ=YEARLY;BYYEARDAY=1,-1;BYMONTHDAY=1,31;BYHOUR=1;UNTIL=20300101T000000",
    "FREQ=MONTHLY;INTERVAL=3;BYMONTHDAY=13;BYDAY=FR;BYMINUTE=1;BYSETPOS=-1;UNTIL=20300101",
    "FREQ=WEEKLY;INTERVAL=2;WKST=SU;BYDAY=TU,SU;BYMONTH=1,2;COUNT=9",
    "FREQ=HOURLY;INTERVAL=5;BYMONTHDAY=3;BYHOUR=1,2;BYMINUTE=7;BYSECOND=8;COUNT=4",
    "FREQ=MINUTELY;INTERVAL=5;BYDAY=SA;BYHOUR=1,2;BYMINUTE=5,7;BYSECOND=8",
    "FREQ=SECONDLY;INTERVAL=5;BYMONTH=3;BYHOUR=1,2;BYMINUTE=5,7;BYSECOND=5,10",
]
DROPPED = [(whole, part) for whole in WHOLE for part in whole.split(";")[1:]]


@pytest.mark.parametrize(("whole", "part"), DROPPED, ids=[f"{whole[5:12]}-{part}" for whole, part in DROPPED])
def test_a_dropped_part_is_heard(whole: str, part: str) -> None:
    start = "DTSTART:20260104T101112\nRRULE:"
    rest = ";".join(each for each in whole.split(";") if each != part)
    assert parse(start + whole).text() != parse(start + rest).text()


def test_long_lists_of_dates_are_said_shortly() -> None:
    dates = ",".join(
        f"{year}{month:02}{day:02}T090000"
        for year in (2026, 2027, 2028)
        for month in range(1, 13)
        for day in range(1, 28)
    )
    said = parse(f"DTSTART:20260101T090000\nRRULE:FREQ=DAILY\nEXDATE:{dates}").text()
    assert (
        "; but not on January 1, 2026 at 09:00, January 2, 2026 at 09:00, January 3, 2026 at 09:00, 968 more, and "
        in said
    )
    assert len(said) < 300
