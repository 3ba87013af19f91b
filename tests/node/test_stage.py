"""The platform's own stage: time that moves when told, real walls, retries, steps, changes, pauses, and failures told in words."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Column, Integer, MetaData, String, Table, insert, select
from tests.escape.commands import command

from lodger.engine.core.errors import InputError
from lodger.engine.testing import FakeClock, Stage, inline

BEGIN = datetime(2027, 1, 4, 8, tzinfo=UTC)
ONES = {"job": lambda _params: 1}


def furnished(stage: Stage, source: str = "export default () => 1") -> None:
    stage.engine.tenants.create("acme", people=["ann@example.com"])
    stage.engine.scripts.put("acme", "job", source)


def test_every_slot_runs_at_its_own_instant_and_nothing_before() -> None:
    with Stage(pretend=ONES) as stage:
        furnished(stage)
        stage.engine.schedules.create("acme", "s", script="job", rules="every 15m")
        stage.advance("14m59s")
        stage.assert_not_run("acme", "s")
        stage.advance("1s")
        stage.assert_ran("acme", "s", times=1)
        stage.advance(timedelta(hours=10))
        stage.assert_ran("acme", "s", times=41)
        slots = [action.slot for action in stage.actions("acme", "s")]
        assert slots == [BEGIN + timedelta(minutes=15) * (number + 1) for number in range(41)]
        assert all(action.started_at == action.slot for action in stage.actions("acme", "s")[-5:])
        assert stage.now == BEGIN + timedelta(hours=10, minutes=15)


def test_a_retry_waits_its_time_and_steps_follow_each_other() -> None:
    tries: list[datetime] = []

    def sometimes(_params: object) -> int:
        tries.append(stage.now)
        if len(tries) < 3:
            raise ValueError("not yet")
        return 5

    with Stage(pretend={"job": sometimes, "next": lambda _params: "second"}) as stage:
        furnished(stage)
        stage.engine.scripts.put("acme", "next", "export default () => 2")
        retry = {"attempts": 3, "backoff_s": 60}
        stage.engine.schedules.create("acme", "s", script=["job", "next"], rules="0 9 * * *", retry=retry)
        stage.advance("1h")
        stage.assert_not_run("acme")
        stage.advance("10m")
        assert stage.assert_ran("acme", "s", times=1).result == "second"
        nine = BEGIN + timedelta(hours=1)
        assert tries[0] == nine
        assert tries == sorted(set(tries)), "each try at an instant of its own"


def test_a_script_in_its_walls_writes_mails_and_follows_changes() -> None:
    script = """export default async ({ changes, db, mail }) => {
      const items = await changes("orders", { limit: 10 });
      for (const order of items) await db.seen.insert({ id: order.id });
      if (items.length) await mail.send({ to: "ann@example.com", subject: `${items.length} new`, text: "" });
      return items.length;
    }"""
    with Stage() as stage:
        furnished(stage, script)
        stage.engine.scripts.put("acme", "order", "export default ({ db }) => db.orders.insert({ n: 1 })")
        stage.engine.schedules.create("acme", "follow", script="job", rules="on changes of orders")
        stage.settle()
        stage.assert_not_run("acme")
        stage.engine.run_in("acme", "order", "1h")
        stage.advance("2h")
        assert stage.assert_ran("acme", "follow", times=1).result == 1
        stage.assert_mailed("acme", to="ann@example.com", about="1 new")
        (order,) = stage.documents("acme", "orders")
        assert [seen["id"] for seen in stage.documents("acme", "seen")] == [order["id"]]
        assert stage.documents("zeta", "orders") == []


def test_a_platforms_own_table() -> None:
    table = Table("lamps", MetaData(), Column("id", Integer, primary_key=True), Column("house", String, nullable=False),
                  Column("lit", Integer, nullable=False))  # fmt: skip
    with Stage() as stage:
        furnished(stage, "export default async ({ db }) => { await db.lamps.update(1, { lit: 1 }); }")
        with stage.engine.context.database.write() as connection:
            table.metadata.create_all(connection)
            connection.execute(insert(table), [{"id": 1, "house": "acme", "lit": 0}])
        stage.engine.expose(table, tenant_column="house", write=["lit"], insert=False, delete=False)
        stage.engine.grants.give("acme", "sets:write:lamps")
        stage.engine.run_in("acme", "job", 0)
        stage.settle()
        stage.assert_ran("acme")
        with stage.engine.context.database.read() as connection:
            assert connection.scalar(select(table.c.lit)) == 1


def test_handlers_pauses_and_expiry_keep_to_the_stages_time() -> None:
    with Stage(pretend=ONES) as stage:
        furnished(stage)
        seen: list[str] = []
        stage.engine.handler("tidy", offered=True)(lambda call: seen.append(call.tenant_id))
        stage.engine.schedules.create("acme", "tidy", script="@tidy", rules="every 1d")
        stage.engine.schedules.create("acme", "s", script="job", rules="every 1h")
        stage.engine.schedules.pause("acme", "s", until=stage.now + timedelta(hours=12))
        stage.advance("12h")
        stage.assert_not_run("acme", "s")
        stage.advance("12h")
        stage.assert_ran("acme", "s", times=12)
        assert seen == ["acme"]


def test_what_should_have_happened_is_told_with_what_did() -> None:
    with Stage() as stage:
        furnished(stage, 'export default () => {\n  console.log("so far");\n  throw new RangeError("no such cart");\n}')
        stage.engine.schedules.create("acme", "s", script="job", rules="every 1h")
        with pytest.raises(AssertionError, match="expected at least one runs of acme's s, found 0; the ledger has no"):
            stage.assert_ran("acme", "s")
        stage.advance("1h")
        with pytest.raises(AssertionError) as failed:
            stage.assert_ran("acme", "s")
        said = str(failed.value)
        assert "ended script_error, not ok" in said
        assert "RangeError: no such cart (main.js:3)" in said
        assert "info: so far" in said
        stage.assert_ran("acme", "s", outcome="script_error", times=1)
        with pytest.raises(AssertionError, match="expected no runs"):
            stage.assert_not_run("acme")
        with pytest.raises(AssertionError, match="found:\n  none"):
            stage.assert_mailed("acme")


def test_wrong_use_is_told() -> None:
    with Stage(pretend={}) as stage:
        furnished(stage)
        stage.engine.run_in("acme", "job", 0)
        stage.settle()
        action = stage.actions("acme")[-1]
        assert action.error is not None
        assert "Stage(pretend=" in action.error.message
        with pytest.raises(ValueError, match="is in the past"):
            stage.advance_to(BEGIN - timedelta(seconds=1))
        with pytest.raises(InputError, match="is not an instant"):
            stage.advance_to(datetime(2028, 1, 1))
        with pytest.raises(InputError):
            stage.advance("soon")
    with pytest.raises(InputError, match="is not an instant"):
        FakeClock(datetime(2028, 1, 1))


def test_however_long_attempts_take_they_are_waited_for_and_named_when_they_do_not_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inline, "LOOK_S", 0.0)  # a slow run is one with many looks
    with Stage() as stage:
        furnished(stage, "export default () => new Promise((ring) => setTimeout(ring, 1000))")
        stage.engine.run_in("acme", "job", 0)
        stage.settle()
        stage.assert_ran("acme", times=1)
        monkeypatch.setattr(inline, "PATIENCE_S", -3600.0)
        stage.engine.run_in("acme", "job", 0)
        with pytest.raises(TimeoutError, match="for attempt 1 of acme's job, which runs"):
            stage.settle()
        monkeypatch.undo()
        stage.settle()
        stage.assert_ran("acme", times=2)
        monkeypatch.setattr(inline, "PATIENCE_S", -3600.0)
        stage.engine.run_in("acme", "job", 0)
        with pytest.raises(TimeoutError):
            stage.settle()  # and the stage ends, without what still runs


def test_half_of_a_character_in_a_result_reaches_the_next_step_and_the_next_slot() -> None:
    script = "export default ({ action }) => [action.lastResult, '😀'.slice(0, 1)];"
    with Stage() as stage:
        furnished(stage, script)
        stage.engine.scripts.put("acme", "echo", "export default ({ action }) => action.input")
        stage.engine.scripts.put("acme", "module", command(""))
        stage.engine.schedules.create("acme", "s", script=["job", "echo"], rules="0 * * * *")
        stage.engine.schedules.create("acme", "m", script=["job", "module"], rules="0 * * * *")
        stage.advance("2h")
        assert stage.assert_ran("acme", "s", times=2).result == [[None, "\ud83d"], "\ud83d"]
        stage.assert_ran("acme", "m", times=2)
