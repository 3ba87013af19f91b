"""An attempt with an end that cannot be written delays no other: it alone becomes an engine fault, the others are stored."""

from collections.abc import Callable

import pytest
from sqlalchemy import Column, Dialect, Identity, Integer, MetaData, Table, Text
from tests.databases.fixtures import kind, url
from tests.node.harness import SETTINGS, Script, Signals

from lodger.engine import Engine
from lodger.engine.core.execution import Claim
from lodger.engine.effects.finished import Finished
from lodger.engine.effects.journal import Journal
from lodger.sandbox.job import LogLine
from lodger.sandbox.outcome import Outcome

__all__ = ["kind", "url"]
#: Prepares what makes the attempts of one tenant unwritable; returns how each attempt ends.
Poison = Callable[[Engine], Callable[[Claim], Finished]]


class Poisoned(Text):
    """A platform's column type that raises for every value."""

    def bind_processor(self, _dialect: Dialect) -> Callable[[str], str]:
        def process(_value: str) -> str:
            raise OverflowError("a platform's column type that nobody foresaw")

        return process


def _table(name: str, kind: type[Text] | type[Poisoned] = Text) -> Table:
    return Table(
        name,
        MetaData(),
        Column("key", Integer, Identity(), primary_key=True),
        Column("tenant_id", Text, nullable=False),
        Column("name", kind, nullable=False),
    )


def _journals(engine: Engine, table: Table) -> Callable[[Claim], Finished]:
    """Return what answers claims with a row in this table for the tenant that poisons the batch."""
    rows = engine.expose(table, tenant_column="tenant_id", write=["name"], feed="off")

    def answer(claim: Claim) -> Finished:
        journal = None
        if claim.tenant_id == "poison":
            journal = Journal(claim.tenant_id, claim.action_id, claim.step, engine.datasets.pinned())
            journal.insert(rows, {"key": journal.token(), "name": "poison"}, given=frozenset({"name"}), token=True)
        return Finished(Outcome.OK, result="1", journal=journal)

    return answer


def _raises(engine: Engine) -> Callable[[Claim], Finished]:
    """Return what answers claims with a value that no column type can bind."""
    return _journals(engine, _table("notes", Poisoned))


def _dropped(engine: Engine) -> Callable[[Claim], Finished]:
    """Return what answers claims with a row of a table that does not exist."""
    return _journals(engine, _table("a_table_that_the_platform_has_dropped"))


def _denied(engine: Engine) -> Callable[[Claim], Finished]:
    """Return what answers claims with a row that a trigger refuses."""
    table = _table("guarded")
    with engine.context.database.write() as connection:
        table.create(connection)
        connection.exec_driver_sql(
            "CREATE FUNCTION deny() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE insufficient_privilege; END $$"
        )
        connection.exec_driver_sql("CREATE TRIGGER denies BEFORE INSERT ON guarded EXECUTE FUNCTION deny()")
    return _journals(engine, table)


def _unwritable(_engine: Engine) -> Callable[[Claim], Finished]:
    """Return what answers claims with a result that no database can store."""

    def answer(claim: Claim) -> Finished:
        if claim.tenant_id == "poison":
            # Half of a surrogate pair: no database can store it.
            return Finished(Outcome.OK, result="\ud800", logs=(LogLine("info", "x", 0),))
        return Finished(Outcome.OK, result="1")

    return answer


@pytest.mark.parametrize(
    "poison", [_raises, _dropped, _denied, _unwritable], ids=["raises", "dropped", "denied", "text"]
)
async def test_an_end_that_cannot_be_written_holds_up_nobody(kind: str, url: str, poison: Poison) -> None:
    if kind == "sqlite" and poison is _denied:
        pytest.skip("SQLite knows no users")

    settings = SETTINGS.model_copy(update={"slots": 4})
    async with Engine.open(url, settings=settings) as engine:
        for tenant in ("poison", "acme"):
            await engine.tenants.create(tenant)
            await engine.scripts.put(tenant, "job", "export default () => 1")
        answer = poison(engine)
        signals = Signals(engine)
        async with engine.node(Script(answer=answer), "n1"):
            bad = await engine.run_in("poison", "job", 0)
            good = [await engine.run_in("acme", "job", 0) for _ in range(3)]

            async def written() -> bool:
                ends = [(await engine.actions.get(None, asked.id)).state for asked in good]
                return ends == ["done"] * 3 and (await engine.actions.get(None, bad.id)).outcome is Outcome.ENGINE_FAULT

            await signals.until(written)
            after = await engine.run_in("acme", "job", 0)

            async def still() -> bool:
                return (await engine.actions.get(None, after.id)).state == "done"

            await signals.until(still)
