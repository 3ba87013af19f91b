"""The directory of tenants, a table of the first ledger: where each lives, and how far its move is."""

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from sqlalchemy import Column, Connection, SmallInteger, String, Table, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from lodger.engine.core.errors import Unavailable
from lodger.engine.store.connection.savepoint import savepoint
from lodger.engine.store.records import AnyRow
from lodger.engine.store.schema.metadata import metadata
from lodger.engine.store.schema.scheduling import Name
from lodger.engine.store.schema.scheduling import tenants as tenant_rows

# The column is not called tenant_id: the row stays when the tenant's rows are erased in the ledger that it leaves.
directory = Table(
    "lodger_directory",
    metadata,
    Column("tenant", Name, primary_key=True),
    Column("ledger", String(63), nullable=False),
    # While it moves: the ledger that it leaves or goes to, and whether it is resumed there.
    Column("target", String(63)),
    Column("source", String(63)),
    Column("resumes", SmallInteger, nullable=False, server_default="0"),
)
_c = directory.c


@dataclass(frozen=True, slots=True)
class TenantPlace:
    """The ledger that a tenant lives in.

    Attributes:
        ledger: name of the ledger; it runs there unless it moves.
        target: while it is moved away: the ledger that it goes to.
        source: while the end of a move is still to be done: the ledger that it has left.
        resumes: whether it was active before its move.
    """

    LOCATION: ClassVar = "/tenants/{tenant}/ledger"
    tenant: str
    ledger: str
    target: str | None = None
    source: str | None = None
    resumes: bool = False


def find(connection: Connection, tenant_id: str) -> TenantPlace | None:
    """Return the place of a tenant, None if it has no row."""
    row = connection.execute(select(directory).where(_c.tenant == tenant_id)).first()
    return None if row is None else _place(row)


def add(connection: Connection, tenant_ids: Iterable[str], ledger: str) -> list[str]:
    """Note where tenants live, and return those that were added; a row that another process has added stays."""
    added = []
    for tenant_id in tenant_ids:
        with suppress(IntegrityError), savepoint(connection):
            connection.execute(insert(directory).values(tenant=tenant_id, ledger=ledger))
            added.append(tenant_id)
    return added


def ledgers_of(connection: Connection, tenant_ids: Sequence[str]) -> set[str]:
    """Return the ledgers in which these tenants live."""
    return set(connection.scalars(select(_c.ledger).where(_c.tenant.in_(tenant_ids)).distinct()))


def change(connection: Connection, before: TenantPlace, **values: Any) -> bool:
    """Change a row if it still is as it was; return whether it was."""
    c = _c
    same = (
        c.tenant == before.tenant, c.ledger == before.ledger,
        c.target.is_not_distinct_from(before.target), c.source.is_not_distinct_from(before.source),
    )  # fmt: skip
    return connection.execute(update(directory).where(*same).values(values)).rowcount == 1


def drop(connection: Connection, tenant_id: str) -> None:
    """Delete the row of a tenant from the directory."""
    connection.execute(delete(directory).where(_c.tenant == tenant_id))


def counts(connection: Connection) -> Counter[str]:
    """Return the number of tenants by ledger; one that moves counts in the ledger that it goes to, too."""
    found: Counter[str] = Counter()
    for column in (_c.ledger, _c.target):
        rows = connection.execute(select(column, func.count()).where(column.is_not(None)).group_by(column))
        found.update({row[0]: row[1] for row in rows})
    return found


def moving(connection: Connection) -> list[TenantPlace]:
    """Return the tenants whose move is not finished."""
    unfinished = _c.target.is_not(None) | _c.source.is_not(None)
    return [_place(row) for row in connection.execute(select(directory).where(unfinished).order_by(_c.tenant))]


def has_others(connection: Connection) -> bool:
    """Whether the directory of this ledger names tenants that are not in it."""
    own = select(tenant_rows.c.id).where(tenant_rows.c.id == _c.tenant)
    return connection.execute(select(_c.tenant).where(~own.exists()).limit(1)).first() is not None


def adopt(connection: Connection, tenant_ids: Sequence[str], ledger: str) -> None:
    """Note the tenants of a ledger that joins the system.

    Raises:
        Unavailable: ledger_unreachable, if one of them lives in another ledger, too.
    """
    for at in range(0, len(tenant_ids), 500):
        some = tenant_ids[at : at + 500]
        row = connection.execute(select(_c.tenant, _c.ledger).where(_c.tenant.in_(some), _c.ledger != ledger)).first()
        if row is not None:
            raise LedgerUnreachable(ledger, f"its tenant {row.tenant} lives in the ledger {row.ledger}, too")
        connection.execute(insert(directory), [{"tenant": each, "ledger": ledger} for each in some])


class LedgerUnreachable(Unavailable):
    """A ledger cannot be reached: code ledger_unreachable."""

    def __init__(self, ledger: str, reason: str) -> None:
        super().__init__("ledger_unreachable", ledger=ledger, reason=reason, details={"ledger": ledger})


def _place(row: AnyRow) -> TenantPlace:
    """Return the tenant's place in a row of the directory."""
    return TenantPlace(row.tenant, row.ledger, row.target, row.source, bool(row.resumes))
