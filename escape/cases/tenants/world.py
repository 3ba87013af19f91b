"""Two tenants in an in-memory database, and the real host of an attempt of one of them."""

import json
from collections.abc import Collection
from functools import lru_cache
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.pool import StaticPool

from lodger.engine.capabilities.fetch_state import FetchState, Send
from lodger.engine.core.access.grants import Grants, parse
from lodger.engine.core.execution import Claim
from lodger.engine.core.refusal import CallRefused
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.node.executors.attempt import Attempt
from lodger.engine.store.schema.metadata import metadata
from lodger.engine.store.schema.script_data import documents, kv
from lodger.engine.store.tenants.secrets import OpenSecret
from lodger.sandbox.job import LogLine, Reply
from lodger.sandbox.limits import Limits
from lodger.sandbox.nodejs.intl_process import IntlProcesses

T = TypeVar("T")

MINE, THEIRS = "escape", "victim"
#: Part of every text of the other tenant.
CANARY = "canary-of-the-other"
NOW_US = 1_795_000_000_000_000
ROWS = 5
_GRANTS = ("sets:read", "sets:write", "collections", "kv", "mail:*@example.com")
_platform = sa.MetaData()
orders = sa.Table(
    "orders",
    _platform,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("org_id", sa.String(40), nullable=False),
    sa.Column("state", sa.String(40), nullable=False),
    sa.Column("note", sa.Text),
    sa.Column("total", sa.Integer, nullable=False),
    sa.Column("margin", sa.String(40)),
)
_SHOWN, _WRITTEN = ["id", "state", "note", "total"], ["state", "note", "total"]


class Everything(Grants):
    """Grants that permit everything."""

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("of_") or name == "any_of":
            return True if name == "of_events" else lambda *_given, **_named: True
        return super().__getattribute__(name)


class World:
    """The database and its exposed tables."""

    def __init__(self) -> None:
        self.engine = sa.create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
        metadata.create_all(self.engine)
        _platform.create_all(self.engine)
        self.exposed, self.open = Datasets(), Datasets()
        self.exposed.expose(orders, tenant_column="org_id", read=_SHOWN, write=_WRITTEN)
        everything = [column.name for column in orders.columns if column.name not in ("org_id", "id")]
        self.open.expose(orders, tenant_column="org_id", read=["id", *everything], write=everything)
        with self.engine.begin() as connection:
            for number in range(2 * ROWS):
                self._fill(connection, number, THEIRS if number % 2 else MINE)

    @staticmethod
    def _fill(connection: sa.Connection, number: int, tenant: str) -> None:
        """Insert the rows of a tenant."""
        text = f"{CANARY} {number}" if tenant == THEIRS else f"mine {number}"
        row = {"id": number + 1, "org_id": tenant, "state": "open", "note": text, "total": number, "margin": CANARY}
        connection.execute(orders.insert().values(**row))
        body = json.dumps({"text": text, "rank": number, "share": "50%" if number == 2 else "all"})
        connection.execute(
            documents.insert().values(
                tenant_id=tenant, collection="things", id=f"{tenant}-{number}", body=body, **_defaults(documents)
            )
        )
        for key in (f"key-{number}", "shared"):
            values = {"tenant_id": tenant, "scope": "", "key": key, "value": json.dumps(text)}
            if key != "shared" or number < 2:
                connection.execute(kv.insert().values(**values, **_defaults(kv)))

    async def read(self, work: Any) -> Any:
        """Run a read in a transaction."""
        with self.engine.connect() as connection:
            return work(connection)


def _defaults(table: sa.Table) -> dict[str, Any]:
    """Return values for required columns of a table."""
    given = {"tenant_id", "collection", "id", "body", "scope", "key", "value"}
    return {
        column.name: NOW_US if "us" in column.name.split("_") else 1
        for column in table.columns
        if column.name not in given and not column.nullable and column.server_default is None
    }


@lru_cache(maxsize=1)
def world() -> World:
    """Return the shared world, which never changes because journals are discarded."""
    return World()


class TenantHost:
    """The real host of one attempt.

    Args:
        limits: of the attempt.
        granted: grants of the script.
        datasets: exposed tables.
        budgets: budgets that differ from the defaults.
        send: makes HTTP requests.

    Attributes:
        asked: all received calls.
        facts: numbers of the host after the attempt.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        granted: Grants | None = None,
        datasets: Datasets | None = None,
        budgets: dict[str, int] | None = None,
        send: Send | None = None,
    ) -> None:
        self.asked: list[tuple[str, str]] = []
        self.facts: dict[str, str] = {}
        self.answered = 0
        place = world()
        claim = Claim(
            action_id="00000000-0000-7000-8000-000000000000", tenant_id=MINE, schedule_id="s", script_name="main",
            script_version=1, modules={}, attempt=1, step=0, lease_epoch=1, origin="slot", slot_us=NOW_US, due_us=NOW_US,
            started_us=NOW_US, grants=granted or parse(_GRANTS), limits=limits, budgets=budgets or {},
        )  # fmt: skip
        self.attempt = Attempt(
            claim,
            place.read,
            datasets or place.exposed,
            now_us=NOW_US,
            fetch_state=FetchState.of(claim, send),
            read_secrets=_opened,
            intl=IntlProcesses(),
        )

    def log(self, line: LogLine) -> None:
        """Discard the line."""

    async def call(self, name: str, arguments: str) -> Reply:
        """Record and answer one call."""
        if len(self.asked) < 10_000:
            self.asked.append((name, arguments[:4096]))
        reply = await self.answer(name, arguments)
        self.answered += reply.ok
        self.facts["answered"] = str(self.answered)
        return reply

    async def answer(self, name: str, arguments: str) -> Reply:
        """Answer a call with the real attempt."""
        return await self.attempt.call(name, arguments)


async def _opened(names: Collection[str]) -> dict[str, OpenSecret]:
    """Return no secret: the host of the attack has none."""
    raise CallRefused("not_found", "there is no such secret")


def context() -> str:
    """Return the context JSON of the attempt, as written by the real host."""
    return TenantHost(Limits()).attempt.context()
