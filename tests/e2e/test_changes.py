"""Schedules that run on changes, on real nodes: woken by every way in which a change can come, caught up in bounded batches."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import sqlalchemy as sa
from tests.databases.fixtures import kind, place, url
from tests.node.harness import Signals
from tests.store.platform_database import Player, call, tenant

from lodger.engine import Engine
from lodger.engine.core.settings import Settings
from lodger.engine.data.changes import feed
from lodger.engine.data.sets.reads import ThreadReads
from lodger.engine.node.executors.attempt import Attempt
from lodger.engine.node.executors.host_side import HostSide
from lodger.engine.node.executors.sandbox_executor import SandboxExecutor
from lodger.engine.recurrence.rule_errors import RuleInvalid
from lodger.engine.store.schema.feeds import cursors
from lodger.sandbox.pool import Pool

__all__ = ["kind", "place", "url"]
SETTINGS = Settings(sqlite_synchronous="NORMAL", slots=4, concurrent_runs=4, min_interval_s=1, poll_s=0.02, drain_s=0.1)
platform = sa.MetaData()
parcels = sa.Table(
    "parcels",
    platform,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("org", sa.String(40)),
    sa.Column("state", sa.String(20)),
)


class Reader:
    """A script that reads changes in bounded batches; remembers what its runs that succeeded have read."""

    def __init__(self, batch: int = 500, pages: int = 1) -> None:
        self.batch, self.pages = batch, pages
        self.by_action: dict[str, list[Any]] = {}
        self.fail = 0

    async def __call__(self, attempt: Attempt) -> None:
        seen: list[Any] = []
        for _ in range(self.pages):
            found = await call(attempt, "db.changes", set="parcels", limit=self.batch)
            seen += [each["id"] for each in found["changes"]]
            if not found["more"]:
                break
        if self.fail:
            self.fail -= 1
            raise RuntimeError("the script fails")
        await call(attempt, "kv.add", key="read", amount=len(seen))
        self.by_action[attempt.claim.action_id] = seen  # of an attempt that is done again, the last is what counts

    @property
    def runs(self) -> list[list[Any]]:
        return list(self.by_action.values())

    @property
    def read(self) -> list[Any]:
        return [each for run in self.runs for each in run]


def furnish(engine: Any, **options: Any) -> None:
    place = options.get("database") or engine.context.database
    with place.write() as connection:
        platform.create_all(connection)
    engine.expose(parcels, tenant_column="org", write=["state"], **options)
    engine.prepare()
    tenant(engine)


def play(url: str, work: Callable[[Engine, Signals, Reader], Awaitable[None]], reader: Reader, **options: Any) -> None:
    async def go() -> None:
        async with Engine.open(url, settings=SETTINGS) as engine:
            database = engine.attach(options.pop("place")) if "place" in options else None
            furnish(engine.inner, **options, **({"database": database} if database else {}))
            signals = Signals(engine)
            async with engine.node(Player(engine.inner, reader)):
                await work(engine, signals, reader)

    asyncio.run(go())


async def change(engine: Engine, statement: str) -> None:
    def write() -> None:
        with (engine.datasets.table("parcels").database or engine.context.database).write() as connection:
            connection.execute(sa.text(statement))

    await asyncio.to_thread(write)


async def follow(engine: Engine, **options: Any) -> Any:
    return await engine.schedules.create("one", "follow", script="job", rules="on changes of parcels", **options)


def test_a_change_wakes_the_schedule_once(url: str) -> None:
    async def work(engine: Engine, signals: Signals, reader: Reader) -> None:
        made = await follow(engine)
        assert (made.text, made.state, made.next_at) == ("On changes of parcels", "armed", None)
        await change(engine, "INSERT INTO parcels VALUES (1, 'one', 'a'), (2, 'two', 'a')")
        (done,) = await signals.wait("finished")
        assert done.details["outcome"] == "ok"
        assert reader.runs == [[1]]
        await change(engine, "UPDATE parcels SET state = 'b'")
        await signals.wait("finished", 2)
        assert reader.runs == [[1], [1]]
        (action, _) = await engine.actions.list("one")
        assert action.origin == "change"

    play(url, work, Reader(), feed="trigger")


def test_a_script_that_never_reads_changes_runs_once_for_each(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On two nodes which look at everything all the time: nothing but a new change asks for a run."""
    monkeypatch.setattr("lodger.engine.node.services.change_feed.WHOLE_S", 0.0)

    class Idle(Reader):
        async def __call__(self, _attempt: Attempt) -> None:
            pass

    async def work(engine: Engine, signals: Signals, reader: Reader) -> None:
        async with engine.node(Player(engine.inner, reader), "second"):
            followed = await follow(engine)
            for number in range(1, 4):
                await change(engine, f"INSERT INTO parcels VALUES ({number}, 'one', 'a')")
                await signals.wait("finished", number)
            # By then both nodes have looked at the first schedule again and again.
            await engine.schedules.create("one", "other", script="job", rules="every 1s")
            await signals.wait("finished", 5)
            await engine.schedules.pause("one", "other")
            runs = [each for each in await engine.actions.list("one") if each.schedule_id == followed.id]
            assert [each.origin for each in runs] == ["change"] * 3

    play(url, work, Idle(), feed="trigger")


def test_changes_in_a_database_of_the_platforms(url: str, place: str) -> None:
    async def work(engine: Engine, signals: Signals, reader: Reader) -> None:
        await follow(engine)
        await change(engine, "INSERT INTO parcels VALUES (1, 'one', 'a'), (2, 'two', 'a')")
        await signals.wait("finished")
        assert reader.read == [1]

    play(url, work, Reader(), feed="trigger", place=place)


def test_a_pause_keeps_what_waits(url: str) -> None:
    async def work(engine: Engine, signals: Signals, reader: Reader) -> None:
        await follow(engine)
        await engine.schedules.pause("one", "follow")
        await change(engine, "INSERT INTO parcels VALUES (1, 'one', 'a')")
        other = await engine.schedules.create("one", "other", script="job", rules="on changes of parcels")
        await signals.wait("finished")
        assert {event.schedule_id for event in signals.events if event.kind == "finished"} == {other.id}
        await engine.schedules.resume("one", "follow")
        await change(engine, "INSERT INTO parcels VALUES (2, 'one', 'a')")

        async def both() -> bool:
            return sorted(reader.read) == [1, 1, 2, 2]

        await signals.until(both)
        await engine.schedules.delete("one", "follow")
        with engine.context.database.read() as connection:
            assert list(connection.scalars(sa.select(cursors.c.consumer))) == [other.id]

    play(url, work, Reader(), feed="trigger")


SCRIPT = """
export default async ({ db, changes }) => {
  const seen = await changes("parcels", { limit: 3 });
  for (const change of seen) {
    const parcel = await db.parcels.get(change.id);
    await db.parcels.update(change.id, { state: change.kind + " " + parcel.state });
  }
  return { read: seen.length, more: seen.more };
}
"""


async def test_a_real_script_in_real_walls(url: str) -> None:
    """It writes what it follows: what it wrote itself wakes it no more."""

    async with Engine.open(url, settings=SETTINGS) as engine:
        furnish(engine.inner, feed="trigger")
        await engine.scripts.put("one", "job", SCRIPT)
        signals = Signals(engine)
        pool = Pool(size=1, cores=1, profile="trusted")
        reads = ThreadReads(engine.context.database)
        executor = SandboxExecutor(pool, HostSide(reads, engine.datasets, engine.context.clock))
        values = "(1, 'one', 'a'), (2, 'one', 'a'), (3, 'one', 'a'), (4, 'one', 'a')"
        await change(engine, f"INSERT INTO parcels VALUES {values}")
        async with engine.node(executor):
            await follow(engine)
            await signals.wait("finished", 2)
            await change(engine, "INSERT INTO parcels VALUES (5, 'one', 'a')")
            ended = await signals.wait("finished", 3)
        results = [json.loads(event.details["finished"].result) for event in ended]
        assert [each["read"] for each in results] == [3, 1, 1]
        assert [each["more"] for each in results] == [True, False, False]
        with engine.context.database.read() as connection:
            assert set(connection.scalars(sa.select(parcels.c.state))) == {"insert a"}


async def test_what_a_rule_on_changes_cannot_be(url: str) -> None:
    async with Engine.open(url, settings=SETTINGS) as engine:
        furnish(engine.inner)
        for wrong in ("on changes of", "on changes of a b", "on changes of o; DROP", "on changes of " + "x" * 80):
            with pytest.raises(RuleInvalid):
                await engine.schedules.create("one", "w", script="job", rules=wrong)
        from datetime import UTC, datetime

        with pytest.raises(RuleInvalid) as refused:
            await follow(engine, end=datetime(2030, 1, 1, tzinfo=UTC))
        assert refused.value.code == "changes_end"
        both = await engine.schedules.create("one", "both", script="job", rules=["on changes of parcels", "0 9 * * *"])
        assert both.next_at is not None
        assert both.text == "On changes of parcels; and also daily at 09:00 (UTC)"
        shown = await engine.schedules.preview(["on changes of parcels"])
        assert (shown.slots, shown.ends) == ((), False)
        await engine.schedules.edit("one", "both", rules="0 9 * * *")
        from lodger.engine.store.queue import followers

        with engine.context.database.read() as connection:
            assert followers.list_followers(connection) == []


def test_a_horizon_that_is_held_back_is_told(url: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "sqlite":
        pytest.skip("SQLite has one writer: nothing is held back")
    monkeypatch.setattr("lodger.engine.node.services.change_feed.HORIZON_S", 0.0)
    monkeypatch.setattr("lodger.engine.node.services.change_feed.HELD_S", 0.0)

    async def work(engine: Engine, signals: Signals, _reader: Reader) -> None:
        await follow(engine)
        with engine.context.database.engine.connect() as late, late.begin():
            feed.record(late, "table:parcels", "two", [("7", "update")], 0)
            holder = late.scalar(sa.text("SELECT pg_backend_pid()"))  # sends the row: an answer is waited for
            await change(engine, "INSERT INTO parcels VALUES (1, 'one', 'a')")
            (reported, *_) = await signals.wait("feed_held")
            assert reported.details["waiting"] == 1
            metrics = {each.name: each.samples for each in engine.inner.process_metrics.read()}
            (waiting,), (held_s,) = metrics["lodger_feed_held"], metrics["lodger_feed_held_seconds"]
            assert (waiting.labels, waiting.value) == ((("database", "ledger"),), 1)
            assert held_s.value > 0
            assert reported.details["holder"] == holder
        await signals.wait("finished")

    play(url, work, Reader(), feed="trigger")
