"""Retention at work: a tenant that stores too much loses its oldest history at once, not when its turn in the round comes."""

from pathlib import Path

import pytest
from tests.node.harness import SETTINGS, Script, Signals, working

from lodger.engine import Engine
from lodger.engine.effects.finished import Finished
from lodger.engine.node.services import retention
from lodger.engine.store.usage import storage_usage
from lodger.sandbox.job import LogLine
from lodger.sandbox.outcome import Outcome

LOUD = Finished(Outcome.OK, result='"' + "r" * 1000 + '"', logs=(LogLine("info", "x" * 9000, 1),))


async def test_what_does_not_fit_goes_between_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "LOOK_S", 0.05)
    monkeypatch.setattr(retention, "STEP_S", 0.01)
    script = Script(answer=lambda _claim: LOUD)
    settings = SETTINGS.model_copy(update={"storage_bytes": 50_000})

    async with working(tmp_path, script, settings) as (engine, _node, signals):
        await run_many(engine, signals, 1)
        await run_many(engine, signals, 20)

        async def fits() -> bool:
            with engine.context.database.read() as connection:
                return 0 < storage_usage.of_tenant(connection, "acme").total <= 50_000

        await signals.until(fits)


async def run_many(engine: Engine, signals: Signals, number: int) -> None:
    before = len([event for event in signals.events if event.kind == "finished"])
    for _ in range(number):
        await engine.run_in("acme", "job", 0)
    await signals.wait("finished", before + number)


def test_a_slow_transaction_makes_the_next_one_smaller() -> None:
    assert retention.next_portion(100, 0.02) == 100
    assert retention.next_portion(100, 0.5) == 10
    assert retention.next_portion(1, 60.0) == 1
    assert [retention.next_portion(10, 0.0), retention.next_portion(80, 0.05)] == [20, 100]
