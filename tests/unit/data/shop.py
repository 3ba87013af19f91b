"""A platform's tables, as the tests of data expose them: orders of three tenants, in SQLite."""

import asyncio
import datetime as dt
from collections.abc import Callable
from contextlib import AbstractContextManager
from decimal import Decimal
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.pool import StaticPool

from lodger.engine.capabilities.fetch_state import FetchState
from lodger.engine.core.access.grants import parse
from lodger.engine.core.execution import Claim
from lodger.engine.data.changes import prepare
from lodger.engine.data.sets import guard
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.node.executors.attempt import Attempt
from lodger.engine.store.connection.database import Database
from lodger.engine.store.schema.metadata import metadata
from lodger.engine.store.schema.script_data import TABLES

T = TypeVar("T")
NOW_US = 1_795_000_000_000_000
#: What most of these tests are not about.
ALL = parse(["collections", "sets:write", "kv", "mail:*", "events", "fetch:*"])
platform = sa.MetaData()

customers = sa.Table(
    "customers",
    platform,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("org_id", sa.String(40), nullable=False),
    sa.Column("email", sa.String(80), nullable=False),
    sa.UniqueConstraint("org_id", "email", name="uq_customer_email"),
)
orders = sa.Table(
    "orders",
    platform,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("org_id", sa.String(40), nullable=False),
    sa.Column("customer_id", sa.ForeignKey("customers.id")),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("note", sa.Text),
    sa.Column("items", sa.Integer, nullable=False, default=0),
    sa.Column("serial", sa.BigInteger),
    sa.Column("weight", sa.Float),
    sa.Column("total", sa.Numeric(12, 2)),
    sa.Column("paid", sa.Boolean),
    sa.Column("modified", sa.DateTime(timezone=True)),
    sa.Column("day", sa.Date),
    sa.Column("ref", sa.Uuid),
    sa.Column("extra", sa.JSON(none_as_null=True)),
    sa.Column("blob", sa.LargeBinary),
    sa.Column("audit", sa.String(20), default="by the platform"),
    sa.CheckConstraint("items >= 0", name="items"),
)
READ = [c.name for c in orders.columns if c.name not in ("org_id", "audit")]
WRITE = [name for name in READ if name != "id"]


class Frozen:
    """A clock that stands still."""

    def now_us(self) -> int:
        return NOW_US

    def elapsed_s(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


class Shop:
    """One database with Lodger's and the platform's tables: in memory on SQLite, or at a URL with Lodger's tables in it."""

    def __init__(self, url: str | None = None) -> None:
        if url is None:
            self.engine = sa.create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
            sa.event.listen(self.engine, "connect", lambda raw, _: raw.execute("PRAGMA foreign_keys = ON"))
            metadata.create_all(self.engine, tables=list(TABLES))
        else:
            self.engine = Database(url).engine
        platform.create_all(self.engine)
        self.datasets = Datasets()
        self.customers = self.datasets.expose(customers, tenant_column="org_id", write=["email"])
        self.orders = self.datasets.expose(orders, tenant_column="org_id", read=READ, write=WRITE)
        self.asked = 0

    def wall(self) -> None:
        """Create the second wall, where the database has one, and assert that it stands."""
        prepare.prepare(self.datasets, self)
        self.stand()

    def stand(self) -> None:
        """Assert that the second wall stands."""
        with self.engine.connect() as connection:
            self.datasets.stand(None, guard.look(connection, self.datasets.tables(None)))

    @property
    def dialect(self) -> str:
        return self.engine.dialect.name

    def write(self) -> AbstractContextManager[sa.Connection]:
        return self.engine.begin()

    async def read(self, work: Callable[[sa.Connection], T]) -> T:
        self.asked += 1
        with self.engine.connect() as connection:
            return work(connection)

    def attempt(self, tenant: str = "one", now_us: int = NOW_US, **options: Any) -> Attempt:
        """Return an attempt of a tenant, with all grants."""
        budgets = options.pop("budgets", {})
        reported = {"grants": ALL, "schedule_id": "s1", "budgets": budgets} | options.pop("claim", {})
        claim = Claim(
            action_id="018f0000-0000-7000-8000-000000000001", tenant_id=tenant, script_name="t", script_version=1, modules={},
            attempt=1, step=0, lease_epoch=1, origin="slot", slot_us=NOW_US, due_us=NOW_US, started_us=NOW_US, **reported,
        )  # fmt: skip
        fetch_state = options.pop("fetch_state", FetchState.of(claim))
        return Attempt(claim, self.read, self.datasets, now_us=now_us, fetch_state=fetch_state, **options)

    def add(self, table: sa.Table, *rows: dict[str, Any]) -> None:
        with self.engine.begin() as connection:
            for row in rows:
                connection.execute(table.insert().values(**row))
            count_on(connection, table)

    def rows(self, table: sa.Table, **where: Any) -> list[dict[str, Any]]:
        columns = [sa.type_coerce(c, sa.Float) if isinstance(c.type, sa.Numeric) else c for c in table.columns]
        found = sa.select(*columns).order_by(*table.primary_key.columns)
        for name, value in where.items():
            found = found.where(table.c[name] == value)
        with self.engine.connect() as connection:
            return [dict(zip(table.columns.keys(), row, strict=True)) for row in connection.execute(found)]

    def close(self) -> None:
        self.engine.dispose()


def count_on(connection: sa.Connection, table: sa.Table) -> None:
    """Let the database's own keys begin behind those that were given."""
    if connection.dialect.name == "postgresql":
        last = f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), max(id)) FROM {table.name}"
        connection.execute(sa.text(last))


def order(tenant: str, number: int, **values: Any) -> dict[str, Any]:
    """Return the row of an order."""
    total = values.pop("total", None)
    row: dict[str, Any] = {"id": number, "org_id": tenant, "state": "open", "items": 1} | values
    if total is not None:
        row["total"] = sa.literal(float(Decimal(total)), sa.Float())
    return row


def instant(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)
