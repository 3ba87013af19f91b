"""A transaction of the platform's holds a row that a run wants to write: the run waits its turn, its neighbours do not."""

import asyncio

import pytest
import sqlalchemy as sa
from tests.store.bench import Bench
from tests.store.platform_database import Player, call, tenant
from tests.unit.data.shop import count_on, customers, orders, platform

from lodger.engine.core.execution import Claim
from lodger.engine.effects import outcome_commit
from lodger.engine.effects.finished import Finished
from lodger.engine.node.executors.attempt import Attempt
from lodger.sandbox.outcome import Outcome


@pytest.fixture
def shop(bench: Bench, kind: str) -> Bench:
    if kind == "sqlite":
        pytest.skip("SQLite has one writer: there are no rows to hold")
    with bench.engine.context.database.write() as connection:
        platform.create_all(connection)
        connection.execute(orders.insert().values(id=1, org_id="one", state="open", items=1))
        count_on(connection, orders)
    bench.engine.expose(customers, tenant_column="org_id", write=["email"])
    bench.engine.expose(orders, tenant_column="org_id", read=["id", "state", "items"], write=["state", "items"])
    tenant(bench.engine, concurrent_runs=10)
    return bench


def played(shop: Bench, *plays: object) -> list[tuple[Claim, Finished]]:
    async def go() -> list[tuple[Claim, Finished]]:
        player = Player(shop.engine, plays[0])  # type: ignore[arg-type]  # a coroutine function
        await player.start()
        made = []
        for claim, play in zip(shop.claim(len(plays)), plays, strict=True):
            player.play = play  # type: ignore[assignment]  # a coroutine function
            made.append((claim, await player.execute(claim)))
        await player.stop()
        return made

    for _ in plays:
        shop.engine.run_in("one", "job", 0)
    return asyncio.run(go())


async def update(attempt: Attempt) -> None:
    await call(attempt, "db.update", set="orders", id=1, changes={"state": "done"}, line="main.js:4")


async def neighbour(attempt: Attempt) -> None:
    await call(attempt, "db.insert", set="orders", values={"state": "new", "items": 1})
    await call(attempt, "kv.add", key="n", amount=1)


def commit(
    shop: Bench, batch: list[tuple[Claim, Finished]], waited_long: frozenset[str] = frozenset()
) -> outcome_commit.Committed:
    with shop.engine.context.database.write() as connection:
        return outcome_commit.commit(
            shop.engine.context, connection, shop.lease(), batch, shop.clock.us, waited_long=waited_long
        )


def test_a_held_row_waits_and_its_neighbours_go_on(shop: Bench) -> None:
    batch = played(shop, update, neighbour)
    (mine, _), (other, _) = batch
    with shop.engine.context.database.engine.connect() as holder, holder.begin():
        holder.execute(sa.text("SELECT * FROM orders WHERE id = 1 FOR UPDATE"))
        done = commit(shop, batch)  # ends while the row is held
        assert done.waiting == (mine,)
        assert [each.action_id for each in done.settled] == [other.action_id]
        again = commit(shop, batch[:1], frozenset({mine.action_id}))
    (settled,) = again.settled
    assert settled.outcome is Outcome.CONFLICT, "it has waited long enough, and runs again"
    assert settled.state == "ready"


def test_a_row_that_is_let_go_is_written(shop: Bench) -> None:
    batch = played(shop, update)
    with shop.engine.context.database.engine.connect() as other, other.begin():
        other.execute(sa.text("UPDATE orders SET note = 'x' WHERE id = 1"))
        assert commit(shop, batch).waiting
    assert commit(shop, batch).settled[0].outcome is Outcome.OK
    with shop.engine.context.database.read() as connection:
        assert connection.scalar(sa.select(orders.c.state)) == "done"


def test_a_trigger_without_end_ends_its_own_run_and_no_other(shop: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lodger.engine.effects.commit.STATEMENT_MS", 100)
    with shop.engine.context.database.write() as connection:
        connection.execute(
            sa.text(
                "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN PERFORM pg_sleep(60); RETURN NEW; END $$"
            )
        )
        connection.execute(sa.text("CREATE TRIGGER t BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION slow()"))
    committed = commit(shop, played(shop, update, neighbour))
    slow, good = committed.settled
    assert (slow.outcome, good.outcome) == (Outcome.EFFECT_REFUSED, Outcome.OK)
    error = shop.engine.actions.get(None, slow.action_id).error
    assert error is not None
    assert ("took too long" in error.message, error.line) == (True, 4)
    with shop.engine.context.database.read() as connection:
        assert connection.scalar(sa.text("SHOW statement_timeout")) == "0"
        assert sorted(connection.scalars(sa.select(orders.c.state))) == ["new", "open"]
