"""A cancelled run in real walls: the worker dies, the row says cancelled, its logs and what it used are kept and charged."""

import asyncio
from pathlib import Path

import pytest
from tests.node.harness import SETTINGS, Signals

from lodger.engine import Engine
from lodger.engine.core.execution import Claim
from lodger.engine.node.executors.sandbox_executor import SandboxExecutor
from lodger.sandbox.job import LogLine
from lodger.sandbox.outcome import Outcome

#: No lease is to be lost on a busy machine: the run would be given up for that, and begin again.
LASTING = SETTINGS.model_copy(update={"lease_s": 300.0})
LOOP = "export default () => { console.log('begun'); for (let i = 0; ; i++); }"


def _usage(engine: Engine) -> tuple[int, int]:
    with engine.context.database.read() as connection:
        row = connection.exec_driver_sql("SELECT runs, cpu_us FROM lodger_usage_days WHERE tenant_id = 'acme'").first()
    return (0, 0) if row is None else (row[0], row[1])


@pytest.mark.parametrize("by", ["cancel", "suspend", "cancel, seen twice"])
async def test_logs_and_usage_outlive_the_worker(tmp_path: Path, by: str) -> None:
    async with Engine.open(str(tmp_path / "ledger.db"), settings=LASTING) as engine:
        await engine.tenants.create("acme", limits={"cpu_ms": 30_000, "wall_ms": 60_000})
        await engine.scripts.put("acme", "job", LOOP)
        signals, said = Signals(engine), asyncio.Event()

        def heard(_claim: Claim, _line: LogLine) -> None:
            said.set()

        executor = SandboxExecutor.of(engine.inner.host, workers=1)
        executor.side.hear(heard)
        async with engine.node(executor, "n1") as node:
            asked = await engine.run_in("acme", "job", 0)
            await asyncio.wait_for(said.wait(), 120)
            if by != "suspend":
                await engine.actions.cancel(None, asked.id)
                for _ in range(3 if by.endswith("twice") else 0):
                    node.attempts.kill()
                    await asyncio.sleep(0)
            else:
                await engine.tenants.suspend("acme")
            await signals.wait("killed")
            assert not node.attempts
            (attempt,) = await engine.actions.attempts(None, asked.id)
            assert attempt.outcome is Outcome.CANCELLED
            assert [line.text for line in attempt.logs] == ["begun"]
            assert attempt.usage.cpu_ms > 0
            assert attempt.usage.wall_ms >= attempt.usage.cpu_ms * 0.5
            state = (await engine.actions.get(None, asked.id)).state
            assert state == ("ready" if by == "suspend" else "cancelled")
            charged = (1, round(attempt.usage.cpu_ms * 1000)) if by != "suspend" else (0, 0)
            assert _usage(engine) == charged, "a run that a suspension stops is free"
