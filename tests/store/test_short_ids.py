"""Parts of ids on both databases, of which PostgreSQL compares ids with whole ids only."""

import pytest
from tests.store.bench import Bench

from lodger.engine.core.errors import InputError, NotFound


def test_actions_and_schedules_are_found_by_a_part_of_their_id(bench: Bench) -> None:
    bench.tenant()
    engine, schedule = bench.engine, bench.schedule()
    first, second = (engine.actions.run_now("acme", "s").id for _ in range(2))
    for whole in (first, second):
        for part in (whole[-8:], whole[-4:], whole[-8:].upper(), whole[:-1], whole[-17:]):
            assert engine.actions.get("acme", part).id == whole
            assert engine.actions.get(None, part).id == whole
    assert [engine.schedules.get("acme", part).id for part in (schedule.id[-8:], schedule.id[:-4])] == [schedule.id] * 2
    with pytest.raises(InputError) as several:
        engine.actions.get("acme", first[:6])
    assert (several.value.code, first in several.value.why) == ("action_ambiguous", True)
    for part in ("2026-01-01", "1e400", "abcd", "0" * 12, "f" * 36, first[:8] + first[9:13], first[-3:], "a-b-c-d-e-f"):
        with pytest.raises(NotFound) as unknown:
            engine.actions.get("acme", part)
        assert unknown.value.code == "action_unknown"
