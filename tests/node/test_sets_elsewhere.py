"""A table that another process has exposed is no empty collection here: the run waits for a node that has it."""

from pathlib import Path

from sqlalchemy import Column, Integer, MetaData, String, Table

from lodger.engine.core.settings import Settings
from lodger.engine.sync import Engine

SOURCE = "export default async ({ db }) => (await db.orders.insert({ total: 5 })).total"
SETTINGS = Settings(profile="trusted", check_scripts=False)


def orders() -> Table:
    return Table(
        "orders",
        MetaData(),
        Column("id", Integer, primary_key=True),
        Column("tenant", String, nullable=False),
        Column("total", Integer, nullable=False),
    )


def test_a_run_that_needs_a_table_of_another_process_waits_for_it(tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path / 'ledger.db'}"
    with Engine.open(place, settings=SETTINGS) as platform, Engine.open(place, settings=SETTINGS) as bare:
        table = orders()
        with platform.context.database.write() as connection:
            table.metadata.create_all(connection)
        platform.expose(table, tenant_column="tenant", write=["total"])
        platform.tenants.create("acme", grants=["sets:write"])
        platform.scripts.put("acme", "job", SOURCE)
        tried = bare.scripts.dry_run("acme", "job")
        assert (tried.outcome, tried.error is not None and "orders is a table" in tried.error.message) == (
            "engine_fault",
            True,
        )
        assert platform.scripts.dry_run("acme", "job").outcome == "ok"
        with bare.node() as node:
            run, beside = bare.run_in("acme", "job", 0), bare.run_in("acme", "job", 0)
            for each in (run, beside):  # side by side: neither takes the table for a collection
                for change in bare.live("acme", each.id):
                    if getattr(change, "requires", ()):
                        break
            assert node is not None
        assert bare.collections.list("acme") == []
        waiting = bare.actions.get("acme", run.id)
        assert (waiting.state, waiting.requires) == ("ready", ("set:orders",))
        assert len(bare.actions.attempts("acme", run.id)) == 1
        assert waiting.error is not None
        assert "orders is a table" in waiting.error.message
        with platform.node():
            for change in platform.live("acme", run.id):
                if getattr(change, "state", "") in {"done", "failed"}:
                    break
        ended = platform.actions.get("acme", run.id)
        assert (ended.state, ended.result) == ("done", 5), (ended.state, platform.actions.attempts("acme", run.id))
