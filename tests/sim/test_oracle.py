"""The oracle: known examples, and agreement with the engine over years."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from tests.sim.simulator import rules
from tests.sim.simulator.oracle import Regular, Several, Wall, count, names
from tests.sim.simulator.plan import BEGINNINGS

from lodger.engine.core.clock import from_us, to_us
from lodger.engine.recurrence.compile import compile_schedule, with_absolute_times
from lodger.engine.store.revision_cache import encode_rules

S = 1_000_000
BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str) -> int:
    return to_us(datetime.fromisoformat(text).replace(tzinfo=UTC))


def test_intervals() -> None:
    every = Regular(7 * S, 3 * S)
    assert [every.after(us) for us in (-100, 3 * S - 1, 3 * S, 10 * S)] == [3 * S, 3 * S, 10 * S, 17 * S]
    assert count(every, 0, 17 * S) == 3
    assert names(every, 10 * S)
    assert not names(every, 10 * S + 1)


@pytest.mark.parametrize(
    ("gap", "slots"),
    [("shift", ["2026-03-29T01:30:00"]), ("next", ["2026-03-29T01:00:00"]), ("skip", [])],
)
def test_a_time_that_the_clock_jumps_over(gap: str, slots: list[str]) -> None:
    wall = Wall(BERLIN, (9000,), gap, both=False)  # half past two
    first = wall.after(at("2026-03-28T12:00:00"))
    assert first == at(slots[0] if slots else "2026-03-30T00:30:00")


@pytest.mark.parametrize("both", [False, True])
def test_a_time_that_the_clock_shows_twice(both: bool) -> None:
    wall = Wall(BERLIN, (9000,), "shift", both)
    early, late = at("2026-10-25T00:30:00"), at("2026-10-25T01:30:00")
    assert wall.after(early - 1) == early
    assert wall.after(early) == (late if both else at("2026-10-26T01:30:00"))
    assert count(wall, early, late) == 1 + both


def test_unions_exclusions_and_ends() -> None:
    several = Several((Regular(2 * S, 0), Regular(3 * S, 0)), (Regular(4 * S, 0),), end=10 * S)
    found, slot = [], several.after(0)
    while slot is not None:
        found.append(slot // S)
        slot = several.after(slot)
    assert found == [2, 3, 6, 9]


@pytest.mark.parametrize("zone", sorted({zone for _begin, zone in BEGINNINGS}))
@pytest.mark.parametrize("gap", ["shift", "next", "skip"])
@pytest.mark.parametrize("both", [False, True])
def test_it_agrees_with_the_engine_around_every_change_of_clocks(zone: str, gap: str, both: bool) -> None:
    for begin, where in BEGINNINGS:
        if where != zone:
            continue
        start = at(begin)
        for text in rules.WALLS:
            rule = {"kind": "wall", "zone": zone, "text": text, "gap": gap, "both": both}
            given = with_absolute_times(rules.stored(rule, start), from_us(start))
            engine, oracle = compile_schedule(given), rules.oracle(rule, start, rules.starts_of(encode_rules(given))[1])
            slot = start - 6 * 3600 * S
            for _ in range(150):
                following = engine.next_after(from_us(slot))
                assert following is not None
                assert oracle.after(slot) == to_us(following), (text, from_us(slot))
                slot = to_us(following)
