"""A schedule that has become slower is reported once."""

from pathlib import Path

import pytest
from sqlalchemy import text
from tests.node.harness import SETTINGS, Script, working

from lodger.engine import Engine
from lodger.engine.core.execution import Claim
from lodger.engine.effects.finished import Finished
from lodger.engine.features.slow_runs import service
from lodger.engine.policy.pace import pace
from lodger.engine.store.actions import monitoring
from lodger.engine.vault.keyring import Keyring
from lodger.sandbox.job import Usage
from lodger.sandbox.outcome import Outcome


async def test_a_run_that_hangs_is_marked_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitoring, "paces", lambda _connection, tracks: {track: pace([10.0] * 9) for track in tracks})
    async with working(tmp_path, Script(hang=True)) as (engine, _node, signals):
        schedule = await engine.schedules.create("acme", "s", script="job", rules="every 3600s")
        await engine.actions.run_now("acme", schedule.id)
        await signals.wait("started")
        assert not (await engine.actions.running("acme"))[0].slow
        with engine.context.database.write() as connection:
            connection.execute(text("UPDATE lodger_actions SET started_us = started_us - 60000000"))
        assert (await engine.actions.running("acme"))[0].slow


async def test_a_slow_down_is_reported_once_by_event_hook_webhook_log_and_metric(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(service, "FRESH_S", 0.0)
    walls = iter([112.0] * 12 + [2525.0] * 8)
    hooked: list[str | None] = []
    Keyring(tmp_path / "keys").add()
    settings = SETTINGS.model_copy(update={"secret_keys": tmp_path / "keys"})

    def answer(_claim: Claim) -> Finished:
        return Finished(Outcome.OK, result="1", usage=Usage(1.0, next(walls)))

    async with working(tmp_path, Script(answer=answer), settings) as (engine, node, signals):
        engine.on("slowed", lambda event: hooked.append(event.schedule_id))
        (watch,) = [each for each in node.services if isinstance(each, service.SlowRuns)]
        await watch.stop()
        schedule = await engine.schedules.create("acme", "s", script="job", rules="every 3600s")
        await engine.webhooks.put("acme", "pager", "https://pager.example/in", events=["lodger.schedule.slowed"])
        for number in range(1, 21):
            await engine.actions.run_now("acme", schedule.id)
            await signals.wait("finished", number)
            await watch.round()
        (slowed,) = await signals.wait("slowed")
        assert slowed.schedule_id == schedule.id
        assert {name: slowed.details[name] for name in ("onset", "from_ms", "to_ms", "step")} == {
            "onset": "jump", "from_ms": 112.0, "to_ms": 2525.0, "step": 0,
        }  # fmt: skip
        assert _value(engine, "lodger_slowdowns_total", "jump") == 1
        (sent,) = await engine.actions.deliveries("acme", str(slowed.action_id))
        assert (sent.kind, sent.to, sent.about) == ("webhook", ("pager",), "lodger.schedule.slowed")

    assert len(hooked) == 1
    (record,) = [record for record in caplog.records if "has become slower" in record.getMessage()]
    assert "took 112 ms before and take 2525 ms now" in record.getMessage()
    assert vars(record)["tenant_id"] == "acme"


def _value(engine: Engine, name: str, *labels: str) -> float:
    (metric,) = [each for each in engine.process_metrics.read() if each.name == name]
    wanted = [sample for sample in metric.samples if tuple(value for _name, value in sample.labels) == labels]
    return wanted[0].value
