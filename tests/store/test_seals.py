"""A run that writes in a platform's own database: sealed here, applied there, settled here; at most once, and whole."""

from pathlib import Path
from threading import Thread

import pytest
import sqlalchemy as sa
from tests.databases.fixtures import place
from tests.store.bench import Bench
from tests.store.platform_database import AFTER, ALL, BEFORE, NOTHING, PlatformDatabase, call
from tests.unit.data.shop import customers, orders

from lodger.engine.core.errors import Conflict
from lodger.engine.node.executors.attempt import Attempt
from lodger.sandbox.outcome import Outcome

__all__ = ["place"]


@pytest.fixture
def far(place: str, bench: Bench) -> PlatformDatabase:  # in this order: the place outlives the connections to it
    return PlatformDatabase(bench, place)


def test_seal_apply_settle(far: PlatformDatabase) -> None:
    asked = far.ask()
    _committed, one = far.seal()
    assert one is not None
    assert far.engine.actions.get(None, asked).state == "sealed"
    assert far.there() == BEFORE | {"receipts": []}
    assert far.here() == NOTHING | {"lodger_sealed": 1, "lodger_holds": 3}
    assert far.apply(one).outcome is Outcome.OK
    assert far.there() == AFTER
    assert far.here()["kv"] == []
    done = far.settle(one, far.apply(one))
    assert done is not None
    assert (done.settled.state, done.finished.result) == ("done", "1")
    assert (far.there(), far.here()) == (AFTER, ALL)
    assert far.settle(one, far.apply(one)) is None, "a second node finds it settled"
    assert (far.there(), far.here()) == (AFTER, ALL)
    (attempt,) = far.engine.actions.attempts(None, asked)
    assert attempt.outcome is Outcome.OK
    assert [effect["effect"] for effect in attempt.effects].count("insert") == 3


def test_what_is_sealed_is_never_run_again_only_finished(far: PlatformDatabase) -> None:
    asked = far.ask()
    far.seal()
    far.bench.clock.advance(10_000)
    far.bench.rescue()
    assert far.bench.claim() == []
    with pytest.raises(Conflict) as refused:
        far.engine.actions.cancel(None, asked)
    assert refused.value.code == "action_sealed"
    far.engine.tenants.suspend("one")
    assert far.engine.actions.get(None, asked).state == "sealed"
    (one,) = far.left()
    done = far.settle(one, far.apply(one))
    assert done is not None
    assert done.settled.state == "done"
    assert (far.there(), far.here()) == (AFTER, ALL)


def test_two_nodes_that_apply_at_once_apply_once(far: PlatformDatabase) -> None:
    far.ask()
    _, one = far.seal()
    assert one is not None
    verdicts = []
    threads = [Thread(target=lambda: verdicts.append(far.apply(one).outcome)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert verdicts == [Outcome.OK] * 4
    assert far.there() == AFTER


def meddle(far: PlatformDatabase, **values: object) -> None:
    """Change a row of the platform's while an attempt is sealed."""
    with far.database.engine.begin() as connection:
        connection.execute(orders.update().where(orders.c.id == 1).values(**values))


def test_a_row_that_changed_there_is_a_conflict_and_runs_again(far: PlatformDatabase) -> None:
    far.ask()
    _, one = far.seal()
    assert one is not None
    meddle(far, note="meanwhile")
    refused = far.apply(one)
    assert refused.outcome is Outcome.CONFLICT
    assert refused.error is not None
    assert (refused.error.file, refused.error.line) == ("main.js", 7)
    meddle(far, note=None)
    assert far.apply(one).outcome is Outcome.CONFLICT, "what the ledger may have been told stays so"
    done = far.settle(one, refused)
    assert done is not None
    assert done.settled.state == "ready"
    assert far.here() == NOTHING
    assert far.there() == BEFORE | {"receipts": [("refused",)]}
    _, again = far.seal()
    assert again is not None
    assert again.attempt > one.attempt
    assert far.apply(again).outcome is Outcome.OK
    assert far.settle(again, far.apply(again)) is not None
    assert (far.there(), far.here()) == (AFTER, ALL)
    assert far.settle(one, far.apply(one)) is None, "the first attempt's end changes nothing any more"
    assert (far.there(), far.here()) == (AFTER, ALL)


async def negative(attempt: Attempt) -> None:
    """Ask for effects of which one is refused by the platform's database."""
    await call(attempt, "kv.set", key="k", value=1)
    await call(attempt, "db.increment", set="orders", id=1, amounts={"items": -5}, line="main.js:3")


def test_a_rule_of_the_table_refuses_with_the_line(far: PlatformDatabase) -> None:
    asked = far.ask()
    _, one = far.seal(negative)
    assert one is not None
    far.settle(one, far.apply(one))
    action = far.engine.actions.get(None, asked)
    assert (action.state, action.outcome) == ("failed", Outcome.EFFECT_REFUSED)
    assert action.error is not None
    assert action.error.line == 3
    assert far.here() == NOTHING


async def both(attempt: Attempt) -> None:
    """Ask for effects in both databases."""
    await call(attempt, "kv.set", key="k", value="text")
    await call(attempt, "kv.add", key="n", amount=1)
    await call(attempt, "db.update", set="orders", id=1, changes={"state": "x"})


def test_what_would_be_refused_here_is_never_sealed(far: PlatformDatabase) -> None:
    """The part in the ledger's database is tried before the point of return."""
    asked = far.ask()
    claim, done = far.run(both)
    with far.engine.context.database.write() as connection:
        connection.execute(sa.text("INSERT INTO lodger_kv VALUES ('one', '', 'n', '\"text\"', NULL, 0)"))

    committed = far.bench.commit(claim, finished=done)
    assert committed.sealed == ()
    action = far.engine.actions.get(None, asked)
    assert (action.state, action.outcome) == ("failed", Outcome.EFFECT_REFUSED)
    assert far.there()["orders"] == BEFORE["orders"]


def test_what_a_sealed_attempt_writes_here_is_held_until_it_has(far: PlatformDatabase) -> None:

    far.ask()
    _, one = far.seal()
    assert one is not None

    async def touching(attempt: Attempt) -> None:
        await call(attempt, "kv.set", key="k", value=7)

    async def elsewhere(attempt: Attempt) -> None:
        await call(attempt, "kv.set", key="other", value=7)

    far.ask()
    claim, done = far.run(touching)
    held_up = far.bench.commit(claim, finished=done)
    assert (held_up.waiting, held_up.settled) == ((claim,), ())
    far.ask()
    free, other = far.run(elsewhere)
    assert far.bench.commit(free, finished=other).settled[0].outcome is Outcome.OK
    far.settle(one, far.apply(one))
    assert far.bench.commit(claim, finished=done).settled[0].outcome is Outcome.OK
    assert dict(far.here()["kv"])["k"] == "7"  # type: ignore[arg-type]  # pairs


def test_without_its_receipts_a_database_is_read_only(bench: Bench, place: str) -> None:
    far = PlatformDatabase(bench, place, prepared=False)
    reported: list[str] = []

    async def tries(attempt: Attempt) -> None:
        assert (await call(attempt, "db.count", set="orders")) == 3
        for name, more in (
            ("db.insert", {"values": {"state": "x", "items": 1}}),
            ("db.update", {"id": 1, "changes": {"state": "x"}}),
            ("db.increment", {"id": 1, "amounts": {"items": 1}}),
            ("db.delete", {"id": 1}),
        ):
            reply = await attempt.call(name, __import__("json").dumps({"set": "orders", **more}))
            assert not reply.ok
            reported.append(reply.json)

    far.ask()
    far.run(tries)
    assert len(reported) == 4
    assert all("denied" in each and "lodger_receipts" in each for each in reported)
    far.engine.prepare()
    far.engine.prepare()
    far.ask()
    _, one = far.seal()
    assert one is not None
    assert far.apply(one).outcome is Outcome.OK


def test_a_run_writes_in_one_database_of_the_platforms(bench: Bench, place: str, tmp_path: Path) -> None:
    far = PlatformDatabase(bench, place)
    other = far.engine.attach(f"sqlite:///{tmp_path / 'third.db'}")
    customers.metadata.create_all(other.engine)
    far.engine.expose(customers, tenant_column="org_id", write=["email"], name="people", database=other)
    far.engine.prepare()

    async def crossing(attempt: Attempt) -> None:
        await call(attempt, "db.update", set="orders", id=1, changes={"state": "x"})
        assert (await call(attempt, "db.count", set="people")) == 0
        refused = await attempt.call("db.insert", '{"set":"people","values":{"email":"x"}}')
        assert "denied" in refused.json
        await call(attempt, "kv.set", key="k", value=1)

    far.ask()
    _, one = far.seal(crossing)
    assert one is not None
    assert far.settle(one, far.apply(one)) is not None


def test_a_table_that_is_gone_is_our_fault_and_leaves_its_receipt(far: PlatformDatabase, kind: str) -> None:
    asked = far.ask()
    _, one = far.seal()
    assert one is not None
    with far.database.engine.begin() as connection:
        connection.execute(sa.text(f"DROP TABLE orders {'CASCADE' if kind == 'postgresql' else ''}"))
    verdict = far.apply(one)
    assert verdict.outcome is Outcome.ENGINE_FAULT
    assert verdict.error is not None
    assert "orders" not in verdict.error.message
    far.settle(one, verdict)
    assert far.engine.actions.get(None, asked).state == "ready"


class Cut(Exception):
    """The injected fault."""


def test_a_fault_between_any_two_statements_of_any_of_the_three_leaves_all_or_nothing(far: PlatformDatabase) -> None:
    """Every statement of seal, apply and settle is cut once; then the attempt is finished and everything is there once."""

    engines = [far.engine.context.database.engine, far.database.engine]
    left = [-1]
    said = [0]

    def cut(*_: object) -> None:
        said[0] += 1
        if left[0] == 0:
            raise Cut
        left[0] -= 1

    far.ask()
    claim, done = far.run()
    for engine in engines:
        sa.event.listen(engine, "before_cursor_execute", cut)
    try:
        sealed = None
        for place in range(1000):
            left[0] = place
            try:
                sealed = far.bench.commit(claim, finished=done).sealed[0]
            except Cut:
                left[0] = -1
                assert far.here() == NOTHING
                continue
            break
        assert sealed is not None
        assert place > 10
        for place in range(1000):
            left[0] = place
            try:
                receipt = far.apply(sealed)
            except Cut:
                left[0] = -1
                assert far.there() == BEFORE | {"receipts": []}, place
                continue
            break
        assert place > 10
        for place in range(1000):
            left[0] = place
            try:
                far.settle(sealed, receipt)
            except Cut:
                left[0] = -1
                assert far.here() == NOTHING | {"lodger_sealed": 1, "lodger_holds": 3}, place
                continue
            break
        left[0] = -1
        assert place > 10
    finally:
        for engine in engines:
            sa.event.remove(engine, "before_cursor_execute", cut)
    assert (far.there(), far.here()) == (AFTER, ALL)
