"""A schedule's past at a glance: the latest runs of many schedules in few statements, and the days of its calendar."""

from datetime import timedelta

from tests.store.bench import OK, THROWN, Bench

from lodger.engine.core.clock import from_us


def test_the_latest_runs_of_schedules_are_the_tenants_own_and_the_newest_first(bench: Bench) -> None:
    bench.tenant()
    made = bench.schedule("every 60s")
    for finished in (OK, OK, THROWN):
        bench.clock.advance(60)
        bench.tick()
        bench.run(finished)
    bench.tenant("other")
    recent = bench.engine.schedules.recent
    assert [[run.state for run in each.runs] for each in recent("acme", schedule_ids=[made.id], runs=2)] == [
        ["failed", "done"]
    ]
    assert recent("other", schedule_ids=[made.id])[0].runs == ()


def test_a_calendar_counts_outcomes_of_past_days_and_slots_of_coming_days(bench: Bench) -> None:
    bench.tenant()
    schedule = bench.schedule("every 6h", missed="skip")
    begun = from_us(bench.clock.us).date()
    for _slot in range(4):
        bench.clock.advance(6 * 3600)
        bench.tick()
        bench.run()
    bench.engine.schedules.pause("acme", "s")
    bench.clock.advance(3 * 86_400)
    bench.engine.schedules.resume("acme", "s")
    bench.tick()
    today = from_us(bench.clock.us).date()
    found = bench.engine.schedules.calendar("acme", "s", back=7, ahead=3)
    assert [each.day for each in found.past] == [today - timedelta(days=6 - number) for number in range(7)]
    days = {each.day: each for each in found.past}
    assert sum(each.actions.get("done", 0) for each in found.past) == 4
    assert days[begun].actions["done"] >= 3
    assert sum("paused" in each.gaps for each in found.past) >= 3, "a gap covers each of its days with slots"
    assert [(each.day, each.slots) for each in found.coming] == [(today + timedelta(days=n), 4) for n in range(3)]
    assert found.complete
    bench.engine.schedules.edit("acme", "s", rules=f"0 0 * * {today.isoweekday() % 7}")
    rare = bench.engine.schedules.calendar("acme", "s", back=7)
    assert sum("paused" in each.gaps for each in rare.past) < sum("paused" in each.gaps for each in found.past)
    bench.engine.schedules.edit("acme", "s", rules="every 1s")
    dense = bench.engine.schedules.calendar("acme", "s")
    assert (dense.coming, dense.complete) == ((), False), "not one whole day could be counted"
    assert schedule.id == dense.schedule_id


def test_days_of_a_calendar_are_those_of_the_schedules_zone(bench: Bench) -> None:
    bench.tenant()
    # 02:00 in Kolkata is 20:30 of the day before in UTC; New York changes its clocks on 8 March 2026.
    for name, rules, tz, weekdays in (
        ("early", "0 2 * * 1,3,5", "Asia/Kolkata", {0, 2, 4}),
        ("late", "30 23 * * 6,0", "America/New_York", {5, 6}),
    ):
        bench.engine.schedules.create("acme", name, script="job", rules=rules, tz=tz)
        bench.clock.advance(70 * 86_400)
        for _ in range(3):
            bench.tick()
        found = bench.engine.schedules.calendar("acme", name, back=70, ahead=70)
        assert {each.day.weekday() for each in found.coming if each.slots} == weekdays, name
        assert {each.day.weekday() for each in found.past if each.actions} <= weekdays, name
        assert any(each.actions for each in found.past), name
