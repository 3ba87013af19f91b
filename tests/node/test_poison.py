"""An attempt whose end cannot be written holds up nobody: it alone becomes a fault of ours, the others are stored."""

import asyncio

import pytest
from sqlalchemy import Connection
from tests.databases.fixtures import kind, url
from tests.node.harness import SETTINGS, Script, Signals
from tests.store.intervals import compile_intervals

from lodger.engine import Engine
from lodger.engine.core.execution import Claim, Finished
from lodger.sandbox.job import LogLine
from lodger.sandbox.outcome import Outcome

__all__ = ["kind", "url"]


def _apply(_connection: Connection, claim: Claim, _finished: Finished) -> None:
    if claim.tenant_id == "poison":
        raise OverflowError("a platform's column type that nobody foresaw")


def _dropped(connection: Connection, claim: Claim, _finished: Finished) -> None:
    if claim.tenant_id == "poison":
        connection.exec_driver_sql("UPDATE a_table_that_the_platform_has_dropped SET a = 1")


def _denied(connection: Connection, claim: Claim, _finished: Finished) -> None:
    if claim.tenant_id == "poison":
        connection.exec_driver_sql("DO $$ BEGIN RAISE insufficient_privilege; END $$")


def _journal(_claim: Claim) -> Finished:
    return Finished(Outcome.OK, result="1", journal=object())


def _unwritable(claim: Claim) -> Finished:
    if claim.tenant_id == "poison":
        # Half of a surrogate pair: no database can store it.
        return Finished(Outcome.OK, result="\ud800", logs=(LogLine("info", "x", 0),))
    return Finished(Outcome.OK, result="1")


@pytest.mark.parametrize(
    ("answer", "apply"),
    [(_journal, _apply), (_journal, _dropped), (_journal, _denied), (_unwritable, None)],
    ids=["raises", "dropped", "denied", "text"],
)
def test_an_end_that_cannot_be_written_holds_up_nobody(kind: str, url: str, answer, apply) -> None:
    if kind == "sqlite" and apply is _denied:
        pytest.skip("SQLite knows no users")

    async def scenario() -> None:
        settings = SETTINGS.model_copy(update={"slots": 4})
        async with Engine.open(url, settings=settings, compile_schedule=compile_intervals) as engine:
            for tenant in ("poison", "acme"):
                await engine.tenants.create(tenant)
                await engine.scripts.put(tenant, "job", "export default () => 1")
            signals = Signals(engine)
            async with engine.node(Script(answer=answer), "n1", apply_effects=apply):
                bad = await engine.run_in("poison", "job", 0)
                good = [await engine.run_in("acme", "job", 0) for _ in range(3)]

                async def written() -> bool:
                    ends = [(await engine.actions.get(None, asked.id)).state for asked in good]
                    return (
                        ends == ["done"] * 3
                        and (await engine.actions.get(None, bad.id)).outcome is Outcome.ENGINE_FAULT
                    )

                await signals.until(written)
                after = await engine.run_in("acme", "job", 0)

                async def still() -> bool:
                    return (await engine.actions.get(None, after.id)).state == "done"

                await signals.until(still)

    asyncio.run(scenario())
