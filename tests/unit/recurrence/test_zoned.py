"""Zones and DST: every zone of the database across its transitions, against a simple implementation of the policies."""

import tracemalloc
from bisect import bisect_left, bisect_right
from datetime import UTC, datetime, timedelta
from importlib import resources
from itertools import pairwise
from pathlib import Path
from random import Random
from zoneinfo import ZoneInfo, reset_tzpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lodger.engine.node.executors.script_context import offsets
from lodger.engine.recurrence.calendar.civil import MAX_LOCAL, MIN_LOCAL, instant_of, utc_floor
from lodger.engine.recurrence.calendar.zoned import Zoned
from lodger.engine.recurrence.calendar.zones import FAR, Zone, load, python_zone, zone, zone_names
from lodger.engine.recurrence.instant import LAST
from lodger.engine.recurrence.rrule import parse
from lodger.engine.recurrence.rule import DstPolicy, Fold, Gap, Pace
from lodger.engine.recurrence.rule_errors import RuleInvalid, RuleNeverFires
from lodger.engine.recurrence.schedule import CompiledSchedule
from lodger.engine.recurrence.search import SAVE_STEPS, SearchedTo, Steps

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NAMES = sorted(zone_names())
POLICIES = [DstPolicy(gap, fold) for gap in Gap for fold in Fold]


def transitions(of: Zone) -> list[tuple[int, int]]:
    """UTC second and jump of each change up to 2100 and at the end of the calendar."""
    found = []
    for at, until in ((MIN_LOCAL, 4_102_444_800), (253_370_764_800, MAX_LOCAL)):
        here = of.segment(at)
        while here.end < until:
            following = of.segment(here.end)
            found.append((here.end, following.offset - here.offset))
            here = following
    return found


def test_offsets_are_pythons_in_every_zone() -> None:
    dice = Random(5)
    wrong = []
    for name in NAMES:
        ours, theirs = zone(name), python_zone(name)
        probes = [dice.randrange(MIN_LOCAL + 90_000, MAX_LOCAL - 90_000) for _ in range(12)]
        probes += [at + step for at, _ in transitions(ours) for step in (-1, 0)]
        for utc in probes:
            offset = (EPOCH + timedelta(seconds=utc)).astimezone(theirs).utcoffset()
            assert offset is not None
            if offset.total_seconds() != ours.offset(utc):
                wrong.append((name, utc))
    assert not wrong
    assert len(NAMES) > 500


def test_transitions_never_meet() -> None:
    """The precondition of zoned.py: a local time is affected by one transition at most."""
    for name in NAMES:
        for (first, jump), (second, _) in pairwise(transitions(zone(name))):
            assert second - first > 90 * abs(jump), name


class Listed:
    """A wall-clock rule that is a list."""

    def __init__(self, members: list[int]) -> None:
        self.members = sorted(set(members))

    def next_from(self, local: int, steps: Steps) -> int | None:
        i = bisect_left(self.members, local)
        return self.members[i] if i < len(self.members) else None

    def never_reason(self) -> str | None:
        return None if self.members else "the list is empty"

    def pace(self) -> Pace:
        return Pace(1_000_000, len(self.members), 1_000_000)

    def text(self) -> str:
        return "Listed"

    def ends(self) -> bool:
        return True

    def default_dst(self) -> DstPolicy:
        return DstPolicy(Gap.SHIFT, Fold.FIRST)


def slow_slots(members: list[int], of: Zone, policy: DstPolicy) -> list[int]:
    """Each member by itself: the instants at which a clock shows it, or what the gap policy makes of it."""
    slots = set()
    for local in members:
        shown = []
        here = of.segment(local - 2 * 86_400)
        stretches = [here]
        while here.end < local + 2 * 86_400 and here.end < FAR:
            here = of.segment(here.end)
            stretches.append(here)
        shown = sorted(local - each.offset for each in stretches if each.start <= local - each.offset < each.end)
        if shown:
            slots.update(shown if policy.fold is Fold.BOTH else shown[:1])
        elif policy.gap is not Gap.SKIP:
            gap = next(each for each in stretches if each.start + each.before <= local < each.start + each.offset)
            slots.add(local - gap.before if policy.gap is Gap.SHIFT else gap.start)
    return sorted(slots)


@given(st.sampled_from(NAMES), st.integers(0, 2**32), st.sampled_from(POLICIES))
def test_every_zone_across_its_transitions(name: str, seed: int, policy: DstPolicy) -> None:
    dice, of = Random(seed), zone(name)
    changes = transitions(of)
    members: list[int] = []
    for at, jump in dice.sample(changes, min(3, len(changes))) or [(0, 0)]:
        here = at + of.offset(at)
        reach = dice.choice([abs(jump) + 10, 2 * abs(jump) + 7200, 200_000])
        members += [here + dice.randint(-reach, reach) for _ in range(dice.randint(1, 12))]
        members += dice.sample([here, here - 1, here - jump, here - jump - 1], dice.randint(0, 4))
    members = [local for local in set(members) if MIN_LOCAL + 200_000 < local < MAX_LOCAL - 200_000]
    rule, expected = Zoned(Listed(members), of, policy), slow_slots(members, of, policy)
    forwards, slot = [], rule.next_utc(MIN_LOCAL, Steps())
    while slot is not None and len(forwards) <= len(expected):
        forwards.append(slot)
        slot = rule.next_utc(slot + 1, Steps())
    assert forwards == expected
    backwards, before = [], rule.previous_before(LAST)
    while isinstance(before, datetime) and len(backwards) <= len(expected):
        backwards.append(utc_floor(before)[0])
        before = rule.previous_before(before)
    assert (backwards[::-1], before) == (expected, None)
    for _ in range(6):
        seek = dice.choice(expected or [0]) + dice.choice([0, 1, -1, dice.randint(-9000, 9000)])
        after, last = bisect_left(expected, seek), bisect_right(expected, seek)
        assert rule.next_utc(seek, Steps()) == (expected[after] if after < len(expected) else None)
        earlier = rule.previous_before(instant_of(seek), inclusive=True)
        assert earlier == (instant_of(expected[last - 1]) if last else None)
    written = set(members)
    for slot in expected:
        assert rule.shifted(instant_of(slot)) == (of.local(slot) not in written)


@pytest.mark.parametrize(
    ("policy", "hours"),
    [
        (DstPolicy(), ["2026-03-28T01:30", "2026-03-29T01:30", "2026-03-30T00:30"]),
        (DstPolicy(gap=Gap.NEXT), ["2026-03-28T01:30", "2026-03-29T01:00", "2026-03-30T00:30"]),
        (DstPolicy(gap=Gap.SKIP), ["2026-03-28T01:30", "2026-03-30T00:30"]),
    ],
)
def test_half_past_two_in_berlin(policy: DstPolicy, hours: list[str]) -> None:
    rule = parse("FREQ=DAILY;BYHOUR=2;BYMINUTE=30", tz="Europe/Berlin", dst=policy)
    found = rule.between(datetime(2026, 3, 28, tzinfo=UTC), datetime(2026, 3, 31, tzinfo=UTC))
    assert [slot.strftime("%Y-%m-%dT%H:%M") for slot in found] == hours


def test_an_hourly_rule_runs_through_a_fold() -> None:
    rule = parse("FREQ=HOURLY", tz="Europe/Berlin")
    night = list(rule.between(datetime(2026, 10, 24, 22, tzinfo=UTC), datetime(2026, 10, 25, 4, tzinfo=UTC)))
    assert all(later - earlier == timedelta(hours=1) for earlier, later in pairwise(night))
    assert len(night) == 6
    once = parse("FREQ=HOURLY", tz="Europe/Berlin", dst=DstPolicy(fold=Fold.FIRST))
    assert len(list(once.between(night[0], night[-1] + timedelta(seconds=1)))) == 5


def test_a_day_that_a_zone_left_out() -> None:
    rule = parse("FREQ=DAILY;BYHOUR=12", tz="Pacific/Apia")
    found = list(rule.between(datetime(2011, 12, 29, tzinfo=UTC), datetime(2012, 1, 2, tzinfo=UTC)))
    assert [slot.day for slot in found] == [29, 30, 31, 1]
    assert rule.shifted(found[1]) is False  # noon of the missing 30th falls on noon of the 31st
    assert found[1].astimezone(python_zone("Pacific/Apia")).day == 31


@pytest.mark.parametrize("name", ["UTC", "Europe/Berlin", "Pacific/Kiritimati", "America/Adak"])
def test_the_edges_of_the_calendar(name: str) -> None:
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    rule = parse("DTSTART:00010101T000000\nRRULE:FREQ=HOURLY", tz=name)
    slot = rule.next_after(first, inclusive=True)
    assert slot is not None
    assert slot.year == 1
    end = rule.previous_before(last)
    assert end is not None
    assert last - end < timedelta(hours=15)
    assert rule.next_after(last) is None
    assert rule.previous_before(first) is None


def test_slots_before_1970_and_fractions() -> None:
    rule = parse("DTSTART:18000101T000000\nRRULE:FREQ=DAILY;BYHOUR=12", tz="Europe/Berlin")
    slot = rule.next_after(datetime(1850, 6, 1, tzinfo=UTC))
    assert slot == datetime(1850, 6, 1, 11, 6, 32, tzinfo=UTC)  # local mean time, +0:53:28
    near = slot - timedelta(microseconds=1)
    assert rule.next_after(near) == slot
    assert rule.previous_before(slot + timedelta(microseconds=1)) == slot
    with pytest.raises(TypeError):
        rule.next_after(datetime(2026, 1, 1))


def test_the_machines_own_database_is_not_asked(tmp_path: Path) -> None:
    """Slots do not depend on the machine's own zone database: here its Berlin is Tokyo."""
    folder = tmp_path / "Europe"
    folder.mkdir()
    tokyo = resources.files("tzdata").joinpath("zoneinfo", "Asia", "Tokyo").read_bytes()
    (folder / "Berlin").write_bytes(tokyo)
    summer = datetime(2026, 7, 1, tzinfo=UTC)
    python_zone.cache_clear()
    offsets.cache_clear()
    reset_tzpath(to=[str(tmp_path)])
    ZoneInfo.clear_cache(only_keys=["Europe/Berlin"])
    try:
        assert summer.astimezone(ZoneInfo("Europe/Berlin")).utcoffset() == timedelta(hours=9)
        assert summer.astimezone(python_zone("Europe/Berlin")).utcoffset() == timedelta(hours=2)
        assert {seconds for _, seconds in offsets("Europe/Berlin", 690)} == {3600, 7200}
    finally:
        reset_tzpath()
        ZoneInfo.clear_cache(only_keys=["Europe/Berlin"])


@pytest.mark.parametrize(
    "name",
    ["", "Mars/Base", "../../etc/passwd", "/etc/localtime", "Europe", "europe/berlin", "UTC\n", "A" * 500, "+01:00"],
)
def test_unknown_zones(name: str) -> None:
    with pytest.raises(RuleInvalid) as caught:
        zone(name)
    assert caught.value.code == "zone_unknown"
    assert len(caught.value.what) < 120


def test_a_rule_of_skipped_times_only_never_fires_and_says_why() -> None:
    """With gap=skip each question stays within its steps, and a save finds that there is no slot; by default each time is shifted."""
    text = "DTSTART:20000101T000000\nRRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU;BYHOUR=2;BYMINUTE=30"
    rule = parse(text, tz="Europe/Berlin", dst=DstPolicy(gap=Gap.SKIP))
    assert rule.never_reason() == "every local time that the rule names is skipped by DST in Europe/Berlin"
    for year in range(2026, 2126, 10):
        begin = datetime(year, 1, 1, tzinfo=UTC)
        searched = rule.next_after(begin)
        assert isinstance(searched, SearchedTo)
        assert searched.instant - begin > timedelta(days=365 * 1000), "a year takes at most two of the 2000 steps"
    assert rule.next_after(datetime(2026, 1, 1, tzinfo=UTC), limit=SAVE_STEPS) is None
    with pytest.raises(RuleNeverFires) as caught:
        CompiledSchedule([rule]).first_slot(datetime(2026, 1, 1, tzinfo=UTC))
    assert caught.value.why == rule.never_reason()
    shifted = parse(text, tz="Europe/Berlin")
    assert shifted.never_reason() is None
    assert shifted.next_after(datetime(2026, 1, 1, tzinfo=UTC)) == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)


#: What the zone object may keep for 8000 years of questions, bytes.
MAX_KEPT_BYTES = 200_000


@pytest.mark.parametrize(
    ("key", "utc"),
    [
        ("America/Ojinaga", 77_385_785_246), ("America/Ojinaga", 127_901_131_843), ("America/Thule", 26_417_890_012),
        ("Asia/Hebron", 104_666_066_019), ("Asia/Nicosia", 253_346_749_199), ("Australia/Victoria", 89_558_647_252),
    ],
)  # fmt: skip
def test_years_far_away_begin_and_end_as_python_says(key: str, utc: int) -> None:
    """In these years, whole cycles of 400 after the stored ones, what was stored once showed through."""
    here, theirs = zone(key).segment(utc), ZoneInfo(key)

    def offset(at: int) -> timedelta | None:
        return (EPOCH + timedelta(seconds=at)).astimezone(theirs).utcoffset()

    assert here.start <= utc < here.end
    for at, expected in (
        (utc, here.offset),
        (here.start, here.offset),
        (here.start - 1, here.before),
        (here.end, here.after),
    ):
        assert offset(at) == timedelta(seconds=expected)


def test_a_zone_keeps_little_and_answers_far_years_at_once() -> None:
    """No row of 400 years is laid out: of each kind of year the changes are kept once."""
    fresh = load.__wrapped__("Europe/Berlin")
    fresh.segment(0)
    tracemalloc.start()
    for year in range(2030, 9990, 7):
        fresh.segment(int(datetime(year, 6, 1, tzinfo=UTC).timestamp()))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < MAX_KEPT_BYTES
