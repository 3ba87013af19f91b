"""A node adopts what a platform's SQL has inserted into its schedules, reported or not, and goes on after SQL that makes no sense."""

import asyncio
import sqlite3
import threading
from datetime import datetime
from pathlib import Path

from sqlalchemy import event
from tests.node.harness import SETTINGS, Script, Signals, working

from lodger.engine import Engine
from lodger.engine.recurrence.compile import compile_schedule
from lodger.engine.recurrence.rule import ScheduleRules
from lodger.engine.recurrence.schedule import CompiledSchedule
from lodger.engine.store.schedules import adoption

COPY = """
INSERT INTO lodger_schedule_revisions
    (tenant_id, schedule_id, revision, rules, sentence, script_id, missed, overlap, requires, anchor_us, created_us)
SELECT tenant_id, schedule_id, revision + 1, replace(rules, ?, ?), '', script_id, missed, overlap, requires, anchor_us, created_us
FROM lodger_schedule_revisions WHERE schedule_id = ? ORDER BY revision DESC LIMIT 1
"""


def test_a_node_adopts_what_sql_has_inserted_and_refuses_what_cannot_be(tmp_path: Path) -> None:
    def insert(was: str, now: str, schedule: str) -> None:
        with sqlite3.connect(tmp_path / "ledger.db", timeout=60) as connection:
            connection.execute(COPY, (was, now, schedule))
        connection.close()

    async def scenario() -> None:
        async with working(tmp_path, Script()) as (engine, _node, signals):
            made = await engine.schedules.create("acme", "s", script="job", rules="every 3600s")

            async def adopted() -> bool:
                return (await engine.schedules.get("acme", "s")).text.startswith("Every 1 second,")

            await asyncio.to_thread(insert, "every 3600s", "every 1s", made.id)
            await signals.until(adopted)
            await signals.wait("finished", 2)  # its clock is armed
            await asyncio.to_thread(insert, "every 1s", "every nonsense", made.id)

            async def refused() -> bool:
                return ((await engine.schedules.get("acme", "s")).note or "").startswith(adoption.REFUSED)

            await signals.until(refused)
            faults = [event for event in signals.events if event.kind == "fault"]
            assert [event.details["error"].code for event in faults] == ["revision_refused"]
            ran = len([event for event in signals.events if event.kind == "finished"])
            await signals.wait("finished", ran + 2)  # the present revision goes on

    asyncio.run(scenario())


def test_a_revision_inserted_by_sql_is_compiled_before_its_write_transaction(tmp_path: Path) -> None:
    place = tmp_path / "ledger.db"
    transaction = threading.local()
    compiled: list[tuple[str, bool]] = []

    def watched(rules: ScheduleRules, *, now: datetime) -> CompiledSchedule:
        compiled.append((rules.rules[0].text, getattr(transaction, "writes", False)))
        return compile_schedule(rules, now=now)

    def executed(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.lstrip().startswith(("INSERT", "UPDATE", "DELETE")):
            transaction.writes = True

    def ended(_connection: object) -> None:
        transaction.writes = False

    async def scenario() -> None:
        async with Engine.open(str(place), settings=SETTINGS, compile_schedule=watched) as engine:
            listened = engine.context.database.engine
            event.listen(listened, "before_cursor_execute", executed)
            event.listen(listened, "commit", ended)
            event.listen(listened, "rollback", ended)
            await engine.tenants.create("acme")
            await engine.scripts.put("acme", "job", "export default () => 1")
            made = await engine.schedules.create("acme", "s", script="job", rules="0 9 * * *")
            with sqlite3.connect(place, timeout=60) as connection:
                connection.execute(COPY, ("0 9", "0 10", made.id))
            connection.close()
            signals = Signals(engine)

            async def adopted() -> bool:
                return (await engine.schedules.get("acme", "s")).revision == 2

            async with engine.node(Script(), "n1"):
                await signals.until(adopted)

    asyncio.run(scenario())
    assert compiled == [("0 9 * * *", False), ("0 10 * * *", False)]
