"""Identity of the ledger: the row that a restore replaces, and the server's timeline, which a promoted standby leaves."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select

from lodger.engine.store.context import StoreContext
from lodger.engine.store.schema.nodes import ledger
from lodger.engine.store.schema.scheduling import attempts

#: Tenant, action, step and number of an attempt.
AttemptKey = tuple[str, str, int, int]
_CHUNK = 500
_identity = select(ledger.c.identity)
_there = select(attempts.c.tenant_id, attempts.c.action_id, attempts.c.step, attempts.c.n).where(
    attempts.c.tenant_id.in_(bindparam("tenants", expanding=True)),
    attempts.c.action_id.in_(bindparam("actions", expanding=True)),
)


@dataclass(frozen=True, slots=True)
class LedgerIdentity:
    """The ledger's own identity and its server's timeline, empty if unknown."""

    ledger: str
    timeline: str

    def __str__(self) -> str:
        return f"{self.ledger}/{self.timeline}" if self.timeline else self.ledger

    def differs(self, before: "LedgerIdentity") -> bool:
        """Whether commits that were answered before may be missing here."""
        moved = bool(self.timeline and before.timeline) and self.timeline != before.timeline
        return moved or self.ledger != before.ledger


def read(context: StoreContext, connection: Connection) -> LedgerIdentity:
    """Read the ledger's identity and its server's timeline."""
    return LedgerIdentity(connection.scalars(_identity).one(), context.database.driver.timeline(connection))


def find_missing(connection: Connection, keys: Collection[AttemptKey]) -> list[AttemptKey]:
    """Return those of these committed attempts of which the ledger has no row."""
    missing: list[AttemptKey] = []
    listed = sorted(keys)
    for place in range(0, len(listed), _CHUNK):
        chunk = listed[place : place + _CHUNK]
        values = {"tenants": sorted({key[0] for key in chunk}), "actions": sorted({key[1] for key in chunk})}
        there = {(row.tenant_id, str(row.action_id), row.step, row.n) for row in connection.execute(_there, values)}
        missing += [key for key in chunk if key not in there]
    return missing
