"""Schedules that drawing found to cost more than a millisecond a question, each with its seed; what became of each."""

from contextlib import suppress
from datetime import UTC, datetime

import pytest

from lodger.engine.recurrence.compile import compile_schedule
from lodger.engine.recurrence.rule import DstPolicy, Gap, Kind, RuleSpec, ScheduleRules
from lodger.engine.recurrence.search import OutOfSteps, SearchedTo, Steps

_NOW = datetime(2026, 11, 21, 12, 0, 1, tzinfo=UTC)


def _schedule(*rules: str, tz: str, closed: tuple[str, ...] = (), gap: Gap | None = None) -> ScheduleRules:
    def spec(text: str) -> RuleSpec:
        return RuleSpec(text, Kind.RRULE if text.startswith("DTSTART") else None)

    return ScheduleRules(tuple(map(spec, rules)), tuple(map(spec, closed)), tz=tz, dst=DstPolicy(gap))


#: Days that few years have, or none.
_SELDOM = ("29 2 1", "30 2 *", "L 2 0", "* 2 1#5")


def _groups(many: int) -> str:
    days = ("dates(2/29) dow(mon)", "doy(366) dow(sun)", "dom(20..-20)", "dates(2199/12/31)", "dow(sun) doy(-366)")
    return " ".join(f"{{{days[n % 5]} h({n % 24}) m({n % 60})}}" for n in range(many))


#: A seed of :mod:`tests.unit.recurrence.hostile_schedules` (c: of its corners), and the part of its schedule that was dear.
ANSWERED = {
    # A step of a week less a second meets no Sunday for 9968 years: the whole calendar was gone through, for each side of a
    # change of the clocks anew.
    "31087": _schedule(
        "DTSTART;TZID=Africa/Cairo:33891223T064100\nRRULE:FREQ=MINUTELY;BYMINUTE=40,52;BYHOUR=4,13,19;BYSECOND=47,48,49,50,51,52;"
        "BYDAY=MO,FR,TH,SU\nRRULE:FREQ=SECONDLY;BYDAY=SA,FR,SU,TH\nRRULE:FREQ=SECONDLY;INTERVAL=604799;BYDAY=SU;COUNT=1000",
        "DTSTART;TZID=America/New_York:00010724T141200\nRRULE:FREQ=YEARLY;INTERVAL=440000329;BYDAY=5MO,53TU,-1WE",
        tz="Australia/Lord_Howe",
        gap=Gap.SHIFT,
    ),
    # 64 groups, and 24 rules beside each other, each of a day that hardly any year has: 40 years were looked at for each.
    "c60651": _schedule(_groups(30), _groups(64), _groups(64), tz="Africa/Casablanca", gap=Gap.NEXT),
    "c60875": _schedule(*(f"{n} {n % 24} {_SELDOM[n % 4]}" for n in range(24)), tz="Pacific/Apia", gap=Gap.SHIFT),
    # A phase that keeps what one set of days needs made it anew for each other set, for each question.
    "phases": _schedule(
        "DTSTART;TZID=Europe/Dublin:19000101T010203\nRRULE:FREQ=YEARLY;INTERVAL=53;BYWEEKNO=53,1,20;BYHOUR=1,2\n"
        "EXRULE:FREQ=YEARLY;BYWEEKNO=53;BYHOUR=1\nEXRULE:FREQ=WEEKLY;INTERVAL=53;BYDAY=MO,SU;BYHOUR=2",
        tz="UTC",
    ),
}


@pytest.mark.parametrize("seed", ANSWERED)
def test_a_question_to_what_was_dear_is_answered(seed: str) -> None:
    schedule = compile_schedule(ANSWERED[seed], now=_NOW)
    for at in (datetime.min.replace(tzinfo=UTC), datetime(2027, 3, 28, 1, tzinfo=UTC)):
        steps = Steps()
        with suppress(OutOfSteps):
            after = schedule.next_from(at, steps)
            assert after is None or (after >= at and schedule.previous_before(after, inclusive=True) == after)
        assert steps.left >= -1, "at most so many steps"


#: An interval beside exclusions of which one closes everything, but only from some day on, or up to one: before and behind it
#: the others closed up to a hundred thousand slots one after another, for up to two seconds a question.
BEGINNING = {
    "106607": (
        "DTSTART:00010721T222700\nDURATION:PT8H\nRRULE:FREQ=DAILY;BYDAY=MO,TU,WE,TH",
        "DTSTART:19001121T144100\nDURATION:PT24H\nRRULE:FREQ=DAILY;BYHOUR=0,6,12,18",
    ),
    "ends": (
        "DTSTART:20261221T053100Z\nDURATION:PT24H\nRRULE:FREQ=DAILY;BYHOUR=0,6,12,18;UNTIL=20300301T000000Z",
        "DTSTART:20260410T021200Z\nDURATION:PT1H\nRRULE:FREQ=DAILY;BYHOUR=0,6,12,18;UNTIL=50000301T000000Z",
        "DTSTART;VALUE=DATE:19000211\nRRULE:FREQ=DAILY;BYDAY=MO,TU,WE,TH",
    ),
}


@pytest.mark.parametrize("seed", BEGINNING)
def test_what_closes_everything_from_some_day_on_is_no_help_before_it(seed: str) -> None:
    """Once refused: they are searched, and each search comes nearer to the end of what is closed."""
    schedule = compile_schedule(_schedule("every 604801s", tz="UTC", closed=BEGINNING[seed]), now=_NOW)
    at = _NOW
    for _ in range(3):
        found = schedule.next_after(at)
        if not isinstance(found, SearchedTo):
            break
        assert found.instant > at
        at = found.instant


def test_what_closes_everything_for_good_is_searched_on() -> None:
    shut = "DTSTART:21000101T000000Z\nDURATION:PT24H\nRRULE:FREQ=DAILY;BYHOUR=0,6,12,18"
    schedule = compile_schedule(_schedule("every 604801s", tz="UTC", closed=(shut,)), now=_NOW)
    last = schedule.previous_before(datetime(2100, 3, 1, tzinfo=UTC))
    assert isinstance(last, datetime)
    assert last.year == 2099
    assert isinstance(schedule.next_after(last), SearchedTo)
