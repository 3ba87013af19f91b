"""The ledger with the real rule languages: zones, ends, unions, refusals; the sentence and the next slot are stored."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text
from tests.store.bench import Bench
from tests.store.virtual_clock import VirtualClock

from lodger.engine.core.clock import from_us
from lodger.engine.core.errors import InputError
from lodger.engine.core.settings import Settings
from lodger.engine.recurrence.rule import Kind, RuleSpec
from lodger.engine.recurrence.rule_errors import RuleInvalid
from lodger.engine.sync import Engine


@pytest.fixture
def real(url: str) -> Iterator[Bench]:
    clock = VirtualClock()
    with Engine.open(url, clock=clock) as engine:
        bench = Bench(engine, clock)
        bench.tenant(concurrent_runs=100)
        yield bench


def test_a_schedule_survives_the_engine_with_its_rules(real: Bench, url: str) -> None:
    rule = RuleSpec("FREQ=DAILY;COUNT=3", Kind.RRULE, dtstart="20260101T120000", tz="Asia/Tokyo")
    made = real.schedule([rule], exclusions="0 12 2 1 *", tz="Asia/Tokyo", missed="all")
    real.clock.advance(4 * 86_400)
    with Engine.open(url, clock=real.clock) as other:
        assert other.schedules.get("acme", "s").rules == made.rules
        Bench(other, real.clock).tick()
    slots = [action.slot for action in real.actions(made)]
    assert slots == [datetime(2026, 1, 1, 3, tzinfo=UTC), datetime(2026, 1, 3, 3, tzinfo=UTC)]
    assert real.engine.schedules.get("acme", "s").state == "ended"


def test_what_was_meant_in_three_days_stays_there(real: Bench, url: str) -> None:
    """A length of time from now is counted once, when it is saved: no edit and no restart begins it anew."""
    made = real.schedule("in 3 days", exclusions="in 2 days")
    assert made.next_at == from_us(real.clock.us) + timedelta(days=3)
    real.clock.advance(86_400)
    edited = real.engine.schedules.edit("acme", "s", priority="high")
    assert (edited.revision, edited.next_at, edited.text) == (2, made.next_at, made.text)
    rolled = real.engine.schedules.edit("acme", "s", rules=[*made.rules.rules, "@yearly"])
    assert rolled.next_at == made.next_at
    with Engine.open(url, clock=real.clock) as other:
        found = other.schedules.get("acme", "s")
        assert (found.next_at, found.rules.exclusions) == (made.next_at, made.rules.exclusions)
        assert [spec.text for spec in found.rules.exclusions] == ["at 2026-01-03T00:00:00Z"]
        later = other.schedules.edit("acme", "s", rules="in 3 days")
        assert later.next_at == made.next_at + timedelta(days=1), "said anew, it counts from now"


def test_a_start_that_changes_nothing_is_refused_and_a_stored_one_runs_on(real: Bench, url: str) -> None:
    made, unused = real.schedule("0 9 * * *"), [RuleSpec("0 9 * * *", dtstart="2026-01-01")]
    for call in (
        lambda: real.engine.schedules.create("acme", "t", script="job", rules=unused),
        lambda: real.engine.schedules.preview(unused),
        lambda: real.engine.schedules.what_if("acme", "s", rules=unused),
        lambda: real.engine.schedules.edit("acme", "s", exclusions=unused),
    ):
        with pytest.raises(RuleInvalid) as caught:
            call()
        assert caught.value.code == "dtstart_unused"
    change = {"old": '"dtstart":null', "new": '"dtstart":"2026-01-01"'}
    with real.engine.context.database.write() as connection:
        connection.execute(text("UPDATE lodger_schedule_revisions SET rules = replace(rules, :old, :new)"), change)
    real.clock.advance(86_400)
    with Engine.open(url, clock=real.clock) as other:
        assert other.schedules.get("acme", "s").rules.rules[0].dtstart == "2026-01-01"
        Bench(other, real.clock).tick()
        assert other.schedules.edit("acme", "s", priority="high").state == "armed"
    assert [action.slot for action in real.actions(made)] == [datetime(2026, 1, 1, 9, tzinfo=UTC)]


def test_the_least_interval_is_measured_over_the_union_of_rules(url: str) -> None:
    with Engine.open(url, settings=Settings(sqlite_synchronous="NORMAL")) as engine:
        engine.tenants.create("acme")
        engine.scripts.put("acme", "job", "export default () => 1")
        hourly = ["FREQ=HOURLY;BYMINUTE=0;BYSECOND=0", "FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=30"]
        for number, rule in enumerate(hourly):
            engine.schedules.create("acme", f"s{number}", script="job", rules=rule)
        with pytest.raises(InputError) as refused:
            engine.schedules.create("acme", "both", script="job", rules=hourly)
        assert (refused.value.code, refused.value.details["smallest_gap_s"]) == ("rule_too_frequent", 30)
        with pytest.raises(InputError, match="30 s apart"):
            engine.schedules.edit("acme", "s0", rules=hourly)
        engine.schedules.create("acme", "once", script="job", rules="2099-01-01T00:00:00Z")
