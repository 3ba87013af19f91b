"""The monitor: overdue actions are reported; the process's numbers."""

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import text
from tests.node.harness import SETTINGS, Script, working

from lodger.engine import Engine
from lodger.engine.node.services import monitor


@pytest.fixture(autouse=True)
def quick_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor, "ROUND_S", 0.02)
    monkeypatch.setattr(monitor, "LEDGER_ROUNDS", 2)


async def test_a_node_without_a_free_slot_is_saturated(tmp_path: Path) -> None:
    settings = SETTINGS.model_copy(update={"slots": 1})
    async with working(tmp_path, Script(hang=True), settings) as (engine, node, signals):
        (watch,) = [service for service in node.services if isinstance(service, monitor.Monitor)]
        await watch.stop()
        idle = _value(engine, "lodger_node_saturation")
        await engine.run_in("acme", "job", 0)
        await signals.wait("started")
        await signals.until(lambda: asyncio.sleep(0, node.attempts.free <= 0))
        for _ in range(monitor.SATURATION_ROUNDS):
            await watch.round()
        assert idle < 1
        assert _value(engine, "lodger_node_saturation") == 1


async def test_what_is_overdue_is_told(tmp_path: Path) -> None:
    async with working(tmp_path, Script()) as (engine, _node, signals):
        await engine.tenants.edit("acme", labels="nobody-carries")
        asked = await engine.run_in("acme", "job", 0)
        with engine.context.database.write() as connection:
            connection.execute(text("UPDATE lodger_turns SET startable_at = startable_at - 60000000"))
            connection.execute(text("UPDATE lodger_actions SET due_at = due_at - 60000000"))
        (event, *_more) = await signals.wait("overdue")
        assert event.details["number"] == 1
        # The monitor may have looked at its clock a moment before the rows were set back.
        assert event.details["oldest_ms"] >= 50_000
        (late,) = await engine.actions.overdue()
        assert (late.action_id, late.why) == (asked.id, "no_node")


async def test_a_node_counts_what_it_does(tmp_path: Path) -> None:
    async with working(tmp_path, Script()) as (engine, _node, signals):
        await engine.schedules.create("acme", "s", script="job", rules="every 1s")
        await signals.wait("finished", 2)
        assert _value(engine, "lodger_slots_total", "run") >= 2
        assert _value(engine, "lodger_attempts_total", "ok") >= 2
        (late,) = [each for each in engine.process_metrics.read() if each.name == "lodger_lateness_seconds"]
        assert {each.name: each.value for each in late.samples}["lodger_lateness_seconds_count"] >= 2
        assert "lodger_attempts_total" in await engine.metrics.text()


def _value(engine: Engine, name: str, *labels: str) -> float:
    (metric,) = [each for each in engine.process_metrics.read() if each.name == name]
    wanted = [sample for sample in metric.samples if tuple(value for _name, value in sample.labels) == labels]
    return wanted[0].value
