"""Stored rules that this process cannot read pause their schedule, with the reason, and stop no other schedule's slots."""

import sqlite3
from pathlib import Path

import pytest
from tests.node.harness import SETTINGS, Script, Signals

from lodger.engine import Engine
from lodger.engine.core.errors import Unavailable


def _lose_the_zone(place: Path) -> None:
    """What a host with other zone data sees; the stored release differs too, so that the node works clocks out anew."""
    connection = sqlite3.connect(place)
    with connection:
        connection.execute(
            "UPDATE lodger_schedule_revisions SET rules = replace(rules, 'Europe/Berlin', 'Mars/Phobos')"
        )
        connection.execute("UPDATE lodger_schedule_clock SET tzdata = 'older'")
    connection.close()


async def test_a_schedule_that_cannot_be_read_stops_nobody_else(tmp_path: Path) -> None:
    place = tmp_path / "ledger.db"
    async with Engine.open(str(place), settings=SETTINGS) as engine:
        for tenant, zone in (("lost", "Europe/Berlin"), ("fine", None)):
            await engine.tenants.create(tenant)
            await engine.scripts.put(tenant, "job", "export default () => 1")
            await engine.schedules.create(tenant, "s", script="job", rules="every 1s", tz=zone)
    _lose_the_zone(place)
    async with Engine.open(str(place), settings=SETTINGS) as engine:
        signals = Signals(engine)
        async with engine.node(Script(), "n1"):
            finished = await signals.wait("finished", 2)
        assert {event.tenant_id for event in finished} == {"fine"}
        aside = await engine.schedules.get("lost", "s")
        assert aside.state == "paused"
        assert "Mars/Phobos" in (aside.note or "")
        with pytest.raises(Unavailable, match="cannot be resumed"):
            await engine.schedules.resume("lost", "s")
        await engine.schedules.edit("lost", "s", tz="Europe/Berlin")
        assert (await engine.schedules.resume("lost", "s")).state == "armed"
