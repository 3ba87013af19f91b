"""No set, however hostile, makes a question expensive; and where the search jumps, it jumps to the right slot."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.recurrence.hostile_schedules import HOSTILE, TYPICAL
from tests.unit.recurrence.local import next_local, previous_local

from lodger.engine.recurrence.calendar import civil
from lodger.engine.recurrence.calendar.zones import zone
from lodger.engine.recurrence.rrule import parse
from lodger.engine.recurrence.rrule.parser import Entry, RuleSet
from lodger.engine.recurrence.rrule.parts import UNIT_S, Freq, Rule
from lodger.engine.recurrence.rrule.rule_set import SetSequence
from lodger.engine.recurrence.rrule.year_masks import YearMasks
from lodger.engine.recurrence.rule_errors import RuleInvalid
from lodger.engine.recurrence.search import SearchedTo

FIRST = datetime.min.replace(tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)
NOW = datetime(2026, 11, 21, 12, 0, 1, tzinfo=UTC)


@pytest.mark.parametrize("text", [*TYPICAL, *HOSTILE], ids=lambda text: text.replace("\n", " ")[-60:])
def test_answers_are_consistent(text: str) -> None:
    """Next and previous are inverse where a search reaches them; a search that does not is never wrong about what it passed."""
    rule = parse(text)
    never = rule.never_reason()
    for days in (0, 1, 400, 40_000, -40_000, 2_500_000):
        instant = NOW + timedelta(days=days)
        after, before = rule.next_after(instant), rule.previous_before(instant)
        if isinstance(after, datetime):
            assert never is None
            assert after > instant
            assert rule.next_after(after - timedelta(seconds=1)) == after
            assert rule.previous_before(after, inclusive=True) == after
            back = rule.previous_before(after)
            expected = (rule.previous_before(instant, inclusive=True), before)
            assert back in expected or isinstance(back, SearchedTo) or isinstance(before, SearchedTo)
        if isinstance(before, datetime):
            assert never is None
            assert rule.next_after(before) in (after, instant) or isinstance(after, SearchedTo)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30", "no day of the 400-year calendar cycle"),
        ("FREQ=YEARLY;BYMONTH=4;BYYEARDAY=1", "no day of the 400-year calendar cycle"),
        ("FREQ=YEARLY;BYDAY=MO;BYSETPOS=54", "no period has as many times"),
        ("FREQ=DAILY;BYHOUR=1,2;BYSETPOS=3", "no period has as many times"),
        ("FREQ=SECONDLY;BYHOUR=1;BYSETPOS=2", "no period has as many times"),
        ("FREQ=HOURLY;INTERVAL=2;BYHOUR=3,5", "INTERVAL, counted from DTSTART, never meets"),
        ("FREQ=DAILY;INTERVAL=7;BYDAY=TU", "no period that INTERVAL selects"),
        ("FREQ=YEARLY;INTERVAL=2;BYYEARDAY=366;BYSETPOS=1;BYMONTH=12", None),
        ("FREQ=YEARLY;INTERVAL=100;BYYEARDAY=366", None),
        ("FREQ=YEARLY;INTERVAL=400;BYMONTH=2;BYMONTHDAY=29", "no period that INTERVAL selects"),
        ("FREQ=DAILY;UNTIL=18991231", "its first slot would come after UNTIL"),
        ("DTSTART:20260101T000000\nRRULE:FREQ=HOURLY;UNTIL=20260301\nEXRULE:FREQ=MINUTELY", "its exceptions remove"),
        ("DTSTART:20260101T000000\nRRULE:FREQ=HOURLY\nEXRULE:FREQ=MINUTELY", None),  # searched, not proved
        ("DTSTART:20260101T000000\nRDATE:20260102T000000\nEXDATE:20260101T000000,20260102T000000", "its exceptions"),
    ],
)
def test_never_is_proved_in_words(text: str, reason: str | None) -> None:
    never = parse(text).never_reason()
    assert (never is None) if reason is None else (never is not None and reason in never)


def sequence_of(rule: Rule, start: int) -> SetSequence:
    """Return the members of a rule from its start on."""
    return SetSequence(RuleSet(start=start, zone=zone("UTC"), rules=[Entry(rule, start)]))


@given(st.integers(0, 2**32))
def test_long_steps_meet_the_clock_where_walking_does(seed: int) -> None:
    """Steps of any length, co-prime to the day or not, against taking every one of them."""
    dice = Random(seed)

    def some(low: int, high: int) -> tuple[int, ...]:
        return tuple(sorted({dice.randint(low, high) for _ in range(dice.randint(1, 5))}))

    freq = dice.choice([Freq.HOURLY, Freq.MINUTELY, Freq.SECONDLY])
    unit = UNIT_S[freq]
    interval = dice.choice([dice.randint(2, 90), dice.randint(2, 3000), dice.randint(2, 200_000), 86_399, 1439, 1441])
    rule = Rule(
        freq=freq,
        interval=interval,
        byhour=some(0, 23) if dice.random() < 0.6 else (),
        byminute=some(0, 59) if freq > Freq.HOURLY and dice.random() < 0.5 else (),
        bysecond=some(0, 59) if freq is Freq.SECONDLY and dice.random() < 0.4 else (),
        bymonthday=some(1, 31) if dice.random() < 0.4 else (),
        byday=((0, dice.randint(0, 6)),) if dice.random() < 0.3 else (),
    )
    start = civil.local_at(2026, 1, 1) + dice.randrange(10**8)
    sequence = sequence_of(rule, start)
    masks, expected = YearMasks(rule.filled(start)), []
    steps = 6000
    origin, last = start // unit, 0
    inside = start % unit
    for k in range(steps):
        last = (origin + k * interval) * unit + inside
        if last > civil.MAX_LOCAL:
            break
        day, second = civil.split(last)
        hour, minute, sec = civil.clock(second)
        if (
            (not rule.byhour or hour in rule.byhour)
            and (not rule.byminute or minute in rule.byminute)
            and (not rule.bysecond or sec in rule.bysecond)
            and masks.of_year(civil.civil(day)[0]) >> day - civil.year_start(civil.civil(day)[0]) & 1
        ):
            expected.append(last)
    found, slot = [], next_local(sequence, civil.MIN_LOCAL)
    while slot is not None and slot <= last:
        found.append(slot)
        slot = next_local(sequence, slot)
    assert found == expected
    back, slot = [], previous_local(sequence, last, inclusive=True)
    while slot is not None:
        back.append(slot)
        slot = previous_local(sequence, slot)
    assert back[::-1] == expected
    if expected:
        counted = sequence_of(replace(rule, count=len(expected)), start)
        assert previous_local(counted, civil.MAX_LOCAL) == expected[-1]
        assert next_local(counted, expected[-1]) is None
        assert next_local(counted, expected[-1] - 1) == expected[-1]


@given(st.integers(0, 2**32))
def test_count_ends_where_the_walk_ends(seed: int) -> None:
    dice = Random(seed)
    text = dice.choice(
        [
            "FREQ=DAILY;INTERVAL=3;BYMONTH=1,5",
            "FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=1,-1",
            "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,SU;BYHOUR=1,2;BYSETPOS=-1,2",
            "FREQ=YEARLY;BYWEEKNO=1,53;BYDAY=MO,SU",
            "FREQ=HOURLY;INTERVAL=7;BYDAY=TU",
            "FREQ=MINUTELY;INTERVAL=11;BYHOUR=3,4",
            "FREQ=HOURLY;INTERVAL=5",
            "FREQ=SECONDLY;INTERVAL=30;BYHOUR=3",
            "FREQ=YEARLY;INTERVAL=3;BYMONTHDAY=31;BYHOUR=1,2,3",
        ]
    )
    count = dice.randint(1, 700)
    start = f"DTSTART:{dice.randint(1890, 2030)}0{dice.randint(1, 9)}1{dice.randint(0, 9)}T0{dice.randint(0, 9)}0507\nRRULE:"
    endless, counted = parse(start + text), parse(f"{start}{text};COUNT={count}")
    slot, slots = FIRST, []
    for _ in range(count + 1):
        slot = endless.next_after(slot)
        assert slot is not None
        slots.append(slot)
    assert counted.previous_before(LAST) == slots[count - 1]
    assert counted.next_after(slots[count - 1]) is None
    fresh = parse(f"{start}{text};COUNT={count}")  # asked forwards first, so that the end is not known yet
    assert fresh.next_after(slots[count - 1] - timedelta(seconds=1)) == slots[count - 1]
    assert fresh.next_after(slots[count - 1]) is None
    assert list(fresh.between(FIRST, LAST)) == slots[:count]


def test_a_count_that_cannot_be_counted_out_is_refused() -> None:
    with pytest.raises(RuleInvalid) as caught:
        parse("DTSTART:19700101T000000\nRRULE:FREQ=SECONDLY;INTERVAL=7;BYHOUR=9;COUNT=400000000")
    assert caught.value.code == "count_too_far"
    for beyond in ("FREQ=SECONDLY;INTERVAL=7", "FREQ=WEEKLY;BYDAY=MO,TU;BYHOUR=9,10;BYSETPOS=1,-1"):
        endless = parse(f"DTSTART:19000101T000000\nRRULE:{beyond};COUNT=999999999")
        assert endless.next_after(NOW) is not None
