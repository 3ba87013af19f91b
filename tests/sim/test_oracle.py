"""The oracle agrees with the engine around every change of clocks."""

from datetime import UTC, datetime

import pytest
from tests.sim.simulator import rules
from tests.sim.simulator.plan import BEGINNINGS

from lodger.engine.core.clock import from_us, to_us
from lodger.engine.recurrence.compile import compile_schedule, with_absolute_times
from lodger.engine.store.revision_cache import encode_rules

S = 1_000_000


def at(text: str) -> int:
    return to_us(datetime.fromisoformat(text).replace(tzinfo=UTC))


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
            slot = start - 3600 * S  # a rule of each minute gets beyond the change, too
            for _ in range(100):
                following = engine.next_after(from_us(slot))
                assert following is not None
                assert oracle.after(slot) == to_us(following), (text, from_us(slot))
                slot = to_us(following)
