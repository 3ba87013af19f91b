"""What the ledgers of a system keep: each, to which system it belongs, and a copy of the operators' tokens; the first one, the directory.

The directory says where each tenant lives, and how far its move is.
"""

import secrets
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from sqlalchemy import Column, Connection, SmallInteger, String, Table, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from lodger.engine.core.errors import Unavailable
from lodger.engine.store.bulk import insert_many
from lodger.engine.store.connection.savepoint import savepoint
from lodger.engine.store.context import StoreContext
from lodger.engine.store.lifecycle import ledger_identity
from lodger.engine.store.records import AnyRow
from lodger.engine.store.rows import record
from lodger.engine.store.schema.access import tokens
from lodger.engine.store.schema.metadata import metadata
from lodger.engine.store.schema.scheduling import Name, Us

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

#: The system of a ledger, one row.
membership = Table(
    "lodger_membership",
    metadata,
    Column("one", SmallInteger, primary_key=True, autoincrement=False),
    # It signs the cursors of the system; two systems never have the same.
    Column("secret", String(64), nullable=False),
    # Name of the first ledger.
    Column("first", String(63), nullable=False),
    # Time of the copy of the operators' tokens by the first ledger's clock, and this ledger's identity then: a restored one has another.
    Column("copied_us", Us, nullable=False, server_default="0"),
    Column("identity", String(200)),
)
_m = membership.c
#: Time after which a copy of the operators' tokens does not count, in microseconds.
COPY_LIFE_US = 24 * 3600 * 1_000_000


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
    return None if row is None else record(TenantPlace, row)


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
    return [
        record(TenantPlace, row) for row in connection.execute(select(directory).where(unfinished).order_by(_c.tenant))
    ]


def adopt(connection: Connection, tenant_ids: Sequence[str], ledger: str) -> None:
    """Note the tenants of a ledger that joins the system.

    Raises:
        Unavailable: ledger_unreachable, if one of them lives in another ledger, too.
    """
    for at in range(0, len(tenant_ids), 500):
        some = tenant_ids[at : at + 500]
        known = {row.tenant: row.ledger for row in connection.execute(select(directory).where(_c.tenant.in_(some)))}
        for tenant_id, other in known.items():
            if other != ledger:
                raise LedgerUnreachable(ledger, f"its tenant {tenant_id} lives in the ledger {other}, too")
        insert_many(connection, directory, [{"tenant": each, "ledger": ledger} for each in some if each not in known])


def system_of(connection: Connection) -> AnyRow | None:
    """Return the ``secret`` and the ``first`` ledger of the system that a ledger belongs to; None for one that has not joined."""
    return connection.execute(select(membership)).first()


def join(connection: Connection, first: str, secret: str | None = None) -> None:
    """Note the system that a ledger belongs to; without a secret, a new one."""
    with suppress(IntegrityError), savepoint(connection):  # another process was faster
        connection.execute(insert(membership).values(one=1, secret=secret or secrets.token_hex(32), first=first))


def operators(connection: Connection) -> list[dict[str, Any]]:
    """Return the tokens of operators that are not revoked, in the first ledger."""
    columns = [each for each in tokens.c if each is not tokens.c.used_us]
    found = connection.execute(select(*columns).where(tokens.c.tenant_id.is_(None), tokens.c.revoked_us.is_(None)))
    return [dict(row._mapping) for row in found]


def operators_at(connection: Connection, now_us: int) -> tuple[int, list[dict[str, Any]]]:
    """Return the operators' tokens with a time that is later than that of each earlier answer."""
    # The row stays locked until the commit: what was revoked before a later time is not in its answer.
    later = connection.scalar(update(membership).values(copied_us=_m.copied_us + 1).returning(_m.copied_us))
    assert later is not None, "the first ledger has a row"
    connection.execute(update(membership).values(copied_us=max(later, now_us)))
    return max(later, now_us), operators(connection)


def copy_operators(connection: Connection, context: StoreContext, at_us: int, rows: Sequence[dict[str, Any]]) -> None:
    """Replace a ledger's copy of the operators' tokens, unless it is a later one."""
    values = {"copied_us": at_us, "identity": str(ledger_identity.read(context, connection))}
    if connection.execute(update(membership).where(_m.copied_us < at_us).values(values)).rowcount:
        connection.execute(delete(tokens).where(tokens.c.copied == 1))
        insert_many(connection, tokens, [row | {"copied": 1} for row in rows])


def copied_us(connection: Connection, context: StoreContext, now_us: int) -> int:
    """Return the time of a ledger's copy of the operators' tokens; 0 without one that counts."""
    row = connection.execute(select(membership)).one()
    same = row.identity == str(ledger_identity.read(context, connection))
    return int(row.copied_us) if same and row.copied_us > now_us - COPY_LIFE_US else 0


class LedgerUnreachable(Unavailable):
    """A ledger cannot be reached: code ledger_unreachable."""

    def __init__(self, ledger: str, reason: str) -> None:
        super().__init__("ledger_unreachable", ledger=ledger, reason=reason, details={"ledger": ledger})
