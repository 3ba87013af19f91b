"""Rules that a database looks at only when a transaction ends, in a transaction of many runs: the run that breaks one fails alone."""

import sqlalchemy as sa
from tests.databases.fixtures import kind, url
from tests.node.harness import SETTINGS, Signals
from tests.store.platform_database import Player, call

from lodger.engine import Engine
from lodger.engine.node.executors.attempt import Attempt
from lodger.sandbox.outcome import Outcome

__all__ = ["kind", "url"]
platform = sa.MetaData()
shelves = sa.Table(
    "shelves", platform, sa.Column("id", sa.Integer, primary_key=True), sa.Column("org", sa.String(9), nullable=False),
    sa.Column("n", sa.Integer),
)  # fmt: skip
loans = sa.Table(
    "loans",
    platform,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("org", sa.String(9), nullable=False),
    sa.Column("shelf_id", sa.ForeignKey("shelves.id", deferrable=True, initially="DEFERRED")),
)


async def play(attempt: Attempt) -> None:
    if attempt.claim.tenant_id == "poison":
        await call(attempt, "kv.set", key="k", value=1)
        await call(attempt, "db.delete", set="shelves", id=1, line="main.js:3")
    elif attempt.claim.script_name == "empties":
        await call(attempt, "db.delete", set="shelves", id=2)
        await call(attempt, "db.delete", set="loans", id=2)
    else:
        await call(attempt, "kv.add", key="k", amount=1)


async def test_who_breaks_a_late_rule_is_refused_and_nobody_else(url: str, kind: str) -> None:
    async with Engine.open(url, settings=SETTINGS) as engine:
        with engine.inner.context.database.write() as connection:
            platform.create_all(connection)
            for number, org in ((1, "poison"), (2, "acme")):
                connection.execute(shelves.insert().values(id=number, org=org))
                connection.execute(loans.insert().values(id=number, org=org, shelf_id=number))
        engine.expose(shelves, tenant_column="org", write=["n"])
        engine.expose(loans, tenant_column="org", write=["shelf_id"])
        for tenant in ("poison", "acme"):
            await engine.tenants.create(tenant, grants=["sets:write", "kv"])
            for script in ("job", "empties"):
                await engine.scripts.put(tenant, script, "export default () => 1")
        signals = Signals(engine)
        async with engine.node(Player(engine.inner, play), "n1"):
            bad = await engine.run_in("poison", "job", 0)
            good = [await engine.run_in("acme", script, 0) for script in ("job", "empties", "job")]

            async def over() -> bool:
                return all(
                    [(await engine.actions.get(None, each.id)).state in ("done", "failed") for each in (bad, *good)]
                )

            await signals.until(over)
        refused = await engine.actions.get(None, bad.id)
        assert refused.outcome is Outcome.EFFECT_REFUSED
        assert refused.error is not None
        assert "a constraint of the table" in refused.error.message
        assert refused.error.line == (3 if kind == "postgresql" else None), "SQLite says only that there was one"
        assert refused.attempt == 1, "a fault of ours would be tried again"
        assert [(await engine.actions.get(None, each.id)).state for each in good] == ["done"] * 3
        faults = [event for event in signals.events if event.kind == "fault"]
        assert len(faults) <= (0 if kind == "postgresql" else 2)
        with engine.inner.context.database.read() as connection:
            assert list(connection.scalars(sa.select(shelves.c.id))) == [1]
