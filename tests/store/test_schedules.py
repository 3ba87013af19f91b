"""Edit, pause, resume, delete: at once, with what was owed accounted first."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from dateutil.rrule import DAILY, HOURLY, MO, MONTHLY, WEEKLY, rrule, rruleset, rrulestr
from sqlalchemy import insert, literal, select
from tests.store.bench import Bench

from lodger.engine.core.clock import from_us
from lodger.engine.core.errors import Conflict, InputError, NotFound
from lodger.engine.store.schema.scheduling import schedule_revisions


def test_an_edit_accounts_the_old_rule_and_then_moves_the_clock(bench: Bench) -> None:
    bench.tenant()
    schedule = bench.schedule("every 60s", missed="all")
    bench.clock.advance(150)
    edited = bench.engine.schedules.edit("acme", "s", rules="every 100s")
    assert [bench.seconds(action)[0] for action in bench.actions(schedule)] == [60.0, 120.0]
    assert (edited.revision, edited.text) == (
        2,
        "Every 1 minute 40 seconds, counted from Thursday 2026-01-01T00:02:30Z",
    )
    assert edited.next_at is not None
    start = schedule.created_at
    assert (edited.next_at - start).total_seconds() % 100 == pytest.approx(
        (edited.next_at - start).total_seconds() % 100
    )
    bench.clock.us = int(edited.next_at.timestamp() * 1e6)
    bench.tick()
    assert bench.actions(schedule)[-1].slot == edited.next_at


def test_an_edit_leaves_alone_what_it_does_not_name(bench: Bench) -> None:
    bench.tenant()
    bench.schedule(missed="skip", overlap="allow", params={"a": 1}, retry=3, limits={"cpu_ms": 50})
    before = bench.engine.schedules.get("acme", "s")
    after = bench.engine.schedules.edit("acme", "s", overlap="queue_one")
    assert after.overlap == "queue_one"
    assert (after.missed, after.params, after.retry, after.limits, after.rules, after.next_at) == (
        before.missed,
        before.params,
        before.retry,
        before.limits,
        before.rules,
        before.next_at,
    )
    renamed = bench.engine.schedules.edit("acme", "s", name="evening")
    assert (renamed.id, renamed.name, renamed.next_at, renamed.revision) == (before.id, "evening", before.next_at, 3)
    bench.clock.advance(60)
    bench.tick()
    (action,) = bench.engine.actions.list("acme", "evening")
    assert (action.schedule_id, action.schedule) == (before.id, "evening")
    assert bench.engine.schedules.edit("acme", "evening", name="s").name == "s"


def test_neither_time_nor_an_edit_moves_the_phase_of_a_rule_that_stays(bench: Bench) -> None:
    bench.tenant()
    texts = ["every 15m", "every 3 days at 9", "every two weeks on Friday", "rate(90 minutes)", "every 7 minutes"]
    made = bench.schedule(texts, missed="skip")  # type: ignore[arg-type]  # rules as texts
    assert "Every 15 minutes, counted from Thursday 2026-01-01T00:00:00Z" in made.text
    assert "every 3 days at 09:00, counted from Thursday, January 1, 2026" in made.text
    for change in (
        {"params": {"a": 1}},
        {"rules": texts},
        {"rules": [*texts[::-1], "0 9 * * *"]},
        {"rules": texts, "tz": "Europe/Berlin"},
        {"overlap": "allow"},
    ):
        bench.clock.advance(1000)
        foreseen = bench.engine.schedules.what_if(
            "acme", "s", at_most=50, **{k: v for k, v in change.items() if k == "rules"}
        )
        edited = bench.engine.schedules.edit("acme", "s", **change)
        kept = {each.text: each.counted_from for each in edited.rules.rules}
        assert {each.text: kept[each.text] for each in made.rules.rules} == {
            each.text: each.counted_from for each in made.rules.rules
        }
        assert all(slot > from_us(bench.clock.us) for slot in (*foreseen.dropped, *foreseen.added))
        assert foreseen.dropped == ()


def test_an_edit_that_is_wrong_changes_nothing(bench: Bench) -> None:
    bench.tenant()
    bench.schedule()
    bench.engine.schedules.create("acme", "taken", script="job", rules="every 1h")
    bench.clock.advance(90)
    before = bench.engine.schedules.get("acme", "s")
    for wrong in (
        {"missed": "perhaps"},
        {"rules": "x"},
        {"end": from_us(0)},
        {"script": "other"},
        {"limits": {"cpu_ms": 1}},
        {"name": "taken"},
        {"name": "a/b"},
    ):
        with pytest.raises((InputError, ValueError)):
            bench.engine.schedules.edit("acme", "s", **wrong)
    assert bench.engine.schedules.get("acme", "s") == before
    assert bench.actions() == []


def test_a_pause_takes_effect_at_once_and_ends_by_itself(bench: Bench) -> None:
    bench.tenant()
    schedule = bench.schedule()
    paused = bench.engine.schedules.pause("acme", "s", note="broken", until=from_us(bench.clock.us + 150_000_000))
    assert (paused.state, paused.next_at, paused.note) == ("paused", None, "broken")
    bench.clock.advance(149)
    assert bench.tick() == []
    bench.clock.advance(2)
    bench.tick()
    again = bench.engine.schedules.get("acme", "s")
    assert again.state == "armed"
    (gap,) = bench.actions(schedule)
    assert (bench.seconds(gap), gap.reason) == ((60.0, 120.0), "paused")
    bench.clock.advance(29)
    bench.tick()
    assert bench.states(schedule) == ["skipped", "ready"]


def test_editing_a_paused_schedule_keeps_it_paused_and_accounts_its_slots(bench: Bench) -> None:
    bench.tenant()
    schedule = bench.schedule()
    bench.engine.schedules.pause("acme", "s")
    bench.clock.advance(125)
    assert bench.engine.schedules.edit("acme", "s", rules="every 50s").state == "paused"
    bench.clock.advance(100)
    bench.engine.schedules.resume("acme", "s")
    assert [bench.seconds(action) for action in bench.actions(schedule)] == [(60.0, 120.0), (175.0, 225.0)]


def test_deleting_cancels_what_waits_and_lets_the_running_end(bench: Bench) -> None:
    bench.tenant()
    schedule = bench.schedule(overlap="queue_all")
    bench.clock.advance(60)
    bench.tick()
    (running,) = bench.claim()
    bench.clock.advance(60)
    bench.tick()
    bench.clock.advance(60)
    assert bench.engine.schedules.delete("acme", "s").state == "deleted"
    assert bench.states(schedule) == ["running", "cancelled", "cancelled"]
    assert len(bench.commit(running).settled) == 1
    bench.clock.advance(600)
    assert bench.tick() == []
    with pytest.raises(NotFound):
        bench.engine.schedules.get("acme", "s")
    bench.schedule()


def test_names_are_the_tenants_own(bench: Bench) -> None:
    bench.tenant("acme")
    bench.tenant("zeta")
    bench.schedule(tenant_id="acme")
    other = bench.schedule(tenant_id="zeta")
    with pytest.raises(Conflict):
        bench.schedule(tenant_id="acme")
    for verb in (bench.engine.schedules.get, bench.engine.schedules.delete, bench.engine.schedules.resume):
        with pytest.raises(NotFound):
            verb("acme", other.id)
    with pytest.raises(NotFound):
        bench.engine.schedules.create("acme", "t", script="nobody's", rules="every 60s")


def test_what_is_wrong_with_a_script_is_said(bench: Bench) -> None:
    bench.tenant()
    put = bench.engine.scripts.put
    for source, code in (
        ("", "script_empty"),
        ("  \n", "script_empty"),
        ("x" * 300_000, "source_too_large"),
        ("a\0b", "source_not_text"),
        ("\ud800", "source_not_text"),
        ({"one.js": "1", "other.js": "2"}, "entry_missing"),
    ):
        with pytest.raises(InputError) as refused:
            put("acme", "bad", source)
        assert refused.value.code == code
    assert bench.engine.scripts.list("acme")[0].name == "job"
    assert put("acme", "job", "export default () => 1").version == 1
    assert put("acme", "job", "export default () => 9").version == 2
    assert [each.version for each in bench.engine.scripts.versions("acme", "job")] == [2, 1]
    with pytest.raises(InputError):
        put("acme", " job", "1")


@pytest.mark.parametrize("asked", [{"n": 1001}, {"n": -1}, {"days": 367}, {"days": -1}])
def test_a_preview_refuses_a_number_that_it_would_not_show(bench: Bench, asked: dict[str, int]) -> None:
    with pytest.raises(InputError) as refused:
        bench.engine.schedules.preview("every 60s", **asked)
    assert refused.value.code == "limit_invalid"


def test_a_revision_that_sql_inserted_is_never_used_and_the_next_edit_replaces_it(bench: Bench) -> None:
    bench.tenant()
    made = bench.schedule("every 60s")
    with bench.engine.context.database.write() as connection:
        columns = [column.name for column in schedule_revisions.columns if column.name != "revision"]
        foreign = select(literal(2), *(schedule_revisions.c[name] for name in columns))
        connection.execute(insert(schedule_revisions).from_select(["revision", *columns], foreign))
    bench.clock.advance(60)
    bench.tick()
    assert len(bench.actions(made)) == 1
    assert bench.engine.schedules.get("acme", "s").revision == 1
    edited = bench.engine.schedules.edit("acme", "s", rules="every 90s")
    assert (edited.revision, edited.text) == (
        2,
        "Every 1 minute 30 seconds, counted from Thursday 2026-01-01T00:01:00Z",
    )
    assert [each.revision for each in bench.engine.schedules.revisions("acme", "s")] == [2, 1]


BERLIN = ZoneInfo("Europe/Berlin")


def test_objects_of_dateutil_are_rules_and_exclusions(bench: Bench) -> None:
    bench.tenant()
    schedules, start = bench.engine.schedules, datetime(2026, 3, 2, 9, tzinfo=BERLIN)
    daily = rrule(DAILY, dtstart=start, until=datetime(2026, 4, 30, 9, tzinfo=BERLIN))
    weekly = rruleset()
    weekly.rrule(rrule(WEEKLY, byweekday=MO, dtstart=start, count=12))
    weekly.exdate(datetime(2026, 3, 16, 9, tzinfo=BERLIN))
    monthly = rrulestr("DTSTART;TZID=Europe/Berlin:20260302T090000\nRRULE:FREQ=MONTHLY;BYMONTHDAY=-1")
    after, mondays = start, [slot for slot in weekly if slot > start]
    wanted = [slot for slot in daily if slot > start and slot not in mondays]
    assert list(schedules.preview(daily, exclusions=weekly, after=after, n=20).slots) == wanted[:20]
    bench.engine.scripts.put("acme", "job", "export default () => 1")
    made = schedules.create("acme", "o", script="job", rules=[daily, monthly], exclusions=[weekly], first_after=after)
    assert (made.next_at, made.rules.rules[0].kind, made.rules.exclusions[0].kind) == (wanted[0], "rrule", "rrule")
    edited = schedules.edit("acme", "o", rules=rrule(MONTHLY, dtstart=start, bymonthday=15, count=3), exclusions=())
    assert edited.text.startswith("Every month on the 15th at 09:00, 3 times")


def test_objects_of_dateutil_without_a_zone_are_in_the_zone_of_the_schedule(bench: Bench) -> None:
    hours = rrule(HOURLY, interval=6, dtstart=datetime(2026, 3, 28, 12))
    shown = bench.engine.schedules.preview(hours, tz="Europe/Berlin", after=datetime(2026, 3, 28, tzinfo=BERLIN), n=5)
    assert list(shown.slots) == [slot.replace(tzinfo=BERLIN) for slot in hours.xafter(datetime(2026, 3, 28), 5)]


@pytest.mark.parametrize(
    "rule", [rrule(WEEKLY, byweekday=MO, bysetpos=1, dtstart=datetime(2026, 1, 1)), 7, [7], {"text": "0 9 * * *"}]
)
def test_what_is_no_rule_is_refused_with_what_to_write(bench: Bench, rule: object) -> None:
    with pytest.raises(InputError) as refused:
        bench.engine.schedules.preview(rule)  # type: ignore[arg-type]  # that is the point
    assert refused.value.code == "dateutil_unreadable"
    assert refused.value.fix
