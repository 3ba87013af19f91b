"""The shops' rows: thousands, the same for the same seed, and such that every script of the demo finds work."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Connection, create_engine, func, select

from lodger.engine.demo.cast import CAST, VICTIM_ORDER, Part
from lodger.engine.demo.demo_rows import SHOPS, fill
from lodger.engine.demo.tables import carts, metadata, orders, tickets

NOW = datetime(2026, 11, 21, 0, 30, tzinfo=UTC)


@pytest.fixture
def connection() -> Iterator[Connection]:
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def _everything(seed: int) -> dict[str, list[object]]:
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        fill(connection, NOW, seed=seed)
        rows = {name: list(map(tuple, connection.execute(select(table)))) for name, table in metadata.tables.items()}
    engine.dispose()
    return rows


def test_thousands_of_rows_for_each_shop(connection: Connection) -> None:
    counts = fill(connection, NOW)
    assert counts["orders"] > 5000
    assert counts["customers"] > 1000
    for shop in SHOPS:
        own = connection.scalar(select(func.count()).select_from(orders).where(orders.c.shop == shop.id))
        assert own == shop.orders


def test_the_seed_decides_and_nothing_else() -> None:
    first = _everything(1)
    assert first == _everything(1)
    assert first != _everything(2)


def test_scripts_find_work(connection: Connection) -> None:
    fill(connection, NOW)
    day = (NOW - timedelta(days=1)).replace(tzinfo=None)
    for shop in SHOPS:
        left = select(func.count()).select_from(carts)
        left = left.where(carts.c.shop == shop.id, carts.c.state == "open", carts.c.modified < day)
        assert (connection.scalar(left) or 0) > 30
        waiting = select(func.count()).select_from(orders).where(orders.c.shop == shop.id, orders.c.state == "new")
        assert (connection.scalar(waiting) or 0) > 300
        unanswered = select(func.count()).select_from(tickets)
        unanswered = unanswered.where(tickets.c.shop == shop.id, tickets.c.state == "open", tickets.c.opened < day)
        assert (connection.scalar(unanswered) or 0) > 1


def test_the_victim_is_the_other_shops(connection: Connection) -> None:
    fill(connection, NOW)
    (nosy,) = [part for part in CAST if part.script == "nosy"]
    owner = connection.scalar(select(orders.c.shop).where(orders.c.id == VICTIM_ORDER))
    assert owner == nosy.params["victim"] != nosy.shop


@pytest.mark.parametrize("part", CAST, ids=lambda part: f"{part.shop}-{part.name}")
def test_every_script_is_there(part: Part) -> None:
    assert "export default" in part.source()
