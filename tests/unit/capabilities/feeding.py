"""Reading and writing feeds as runs do, without workers."""

import asyncio
import json
from typing import Any

from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from tests.unit.data.shop import NOW_US, Shop, orders

from lodger.engine.effects import commit
from lodger.engine.node.executors.attempt import Attempt


def ask(attempt: Attempt, name: str, **arguments: Any) -> Any:
    reply = asyncio.run(attempt.call(name, json.dumps(arguments)))
    body = json.loads(reply.json)
    return body if reply.ok else (body["code"], body["message"])


def settle(shop: Shop, attempt: Attempt, now_us: int = NOW_US) -> dict[int, Any]:
    """Commit an attempt; return the keys of its new rows by their tokens."""
    with shop.engine.begin() as connection:
        return commit.apply(connection, attempt.journal, now_us=now_us)


def reader_attempt(shop: Shop, tenant: str = "one", schedule: str | None = "reader") -> Attempt:
    """Return an attempt of the schedule that reads changes."""
    return shop.attempt(tenant, claim={"schedule_id": schedule})


def read(shop: Shop, name: str = "orders", tenant: str = "one", *, keep: bool = True, **options: Any) -> list[Any]:
    """Read as a run of another schedule does; keep what it has read, or let the run fail."""
    attempt = reader_attempt(shop, tenant)
    found = ask(attempt, "db.changes", set=name, **options)
    if keep and attempt.journal:
        settle(shop, attempt)
    return [(each["id"], each["kind"]) for each in found["changes"]]


def write(shop: Shop, tenant: str = "one", **more: Any) -> Any:
    """Insert an order in a run, and commit it."""
    attempt = shop.attempt(tenant)
    made = ask(attempt, "db.insert", set="orders", values={"state": "new", "items": 1} | more)
    settle(shop, attempt)
    return made


def made(shop: Shop) -> list[int]:
    """Return the ids of all orders."""
    return [row["id"] for row in shop.rows(orders)]


class Base(DeclarativeBase):
    pass


class Parcel(Base):
    __tablename__ = "parcels"
    number: Mapped[int] = mapped_column("id", primary_key=True, autoincrement=False)
    org: Mapped[str | None]
    state: Mapped[str]


def parcels(shop: Shop, **options: Any) -> None:
    """Create and expose a table of parcels."""
    Base.metadata.create_all(shop.engine)
    shop.datasets.expose(Parcel, tenant_column=Parcel.org, **options)
    shop.wall()
