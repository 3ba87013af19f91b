"""Nodes at work on a ledger and a platform's own database: conflicts run again, outages wait, any node finishes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.databases.fixtures import kind, place, url
from tests.node.harness import Signals
from tests.store.platform_database import AFTER, ALL, Player, every_effect, expose, furnish, here, tenant
from tests.unit.data.shop import orders

from lodger.engine import Engine
from lodger.engine.core.events import Event
from lodger.engine.core.settings import Settings
from lodger.engine.node.executors.attempt import Attempt

__all__ = ["kind", "place", "url"]
SETTINGS = Settings(sqlite_synchronous="NORMAL", slots=4, concurrent_runs=4, min_interval_s=1, poll_s=0.05, drain_s=0.1)


def open_ledger(url: str) -> Engine:
    return Engine.open(url, settings=SETTINGS)


def platform_rows(database: Any) -> list[Any]:
    """Return state and items of the tenant's orders."""
    with database.engine.connect() as connection:
        rows = connection.execute(
            sa.select(orders.c.state, orders.c["items"]).where(orders.c.org_id == "one").order_by(orders.c.id)
        )
        return [tuple(row) for row in rows]


def outcomes(events: list[Event]) -> list[str]:
    """Return the outcomes of the attempts that have ended."""
    return [str(event.details["outcome"]) for event in events if event.kind == "finished"]


@pytest.fixture(params=["url", "engine"])
def attached(request: pytest.FixtureRequest, place: str) -> Iterator[str | sa.Engine]:
    """The platform's database, by its URL and as an engine of the platform's."""
    if request.param == "url":
        yield place
    else:
        made = sa.create_engine(place)
        yield made
        made.dispose()


async def test_a_node_seals_applies_and_settles(url: str, attached: str | sa.Engine) -> None:
    async with open_ledger(url) as engine:
        database = furnish(engine.inner, attached)
        tenant(engine.inner)
        signals = Signals(engine)
        async with engine.node(Player(engine.inner, every_effect)):
            await engine.run_in("one", "job", 0)
            await signals.wait("finished")
        assert [event.kind for event in signals.events if event.kind in ("started", "sealed", "finished")] == [
            "started", "sealed", "finished",
        ]  # fmt: skip
        assert outcomes(signals.events) == ["ok"]
        assert (platform_rows(database), here(engine)) == ([row[:2] for row in AFTER["orders"]], ALL)


async def test_an_outage_is_waited_for_and_a_second_node_may_finish(url: str, place: str, tmp_path: Path) -> None:
    """The first node seals while the platform's database refuses; it is stopped; the second one never runs the script."""

    async with open_ledger(url) as engine:
        database = furnish(engine.inner, place)
        tenant(engine.inner)
        signals = Signals(engine)
        first = Player(engine.inner, every_effect)
        gone = sa.create_engine("sqlite:////nowhere/at/all.db")

        async def play(attempt: Attempt) -> None:
            await every_effect(attempt)
            database.engine = gone

        alive = database.engine
        first.play = play
        async with engine.node(first):
            asked = await engine.run_in("one", "job", 0)
            await signals.wait("sealed")
            faults = await signals.wait("fault")
            assert faults[0].details["service"] == "sealed-commits"
        assert (await engine.actions.get(None, asked.id)).state == "sealed"
        database.engine = alive
        gone.dispose()

    async with open_ledger(url) as engine:
        expose(engine.inner, database := engine.attach(place))
        signals = Signals(engine)

        async def never(_attempt: Attempt) -> None:
            raise AssertionError("what is sealed is never run again")

        async with engine.node(Player(engine.inner, never)):
            await signals.wait("finished")
        assert outcomes(signals.events) == ["ok"]
        assert (platform_rows(database), here(engine)) == ([row[:2] for row in AFTER["orders"]], ALL)
