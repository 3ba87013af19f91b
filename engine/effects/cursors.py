"""Positions of consumers in feeds, in the ledger's database; moved only by the commit of the run that has read the changes."""

from sqlalchemy import Connection, select

from lodger.engine.data.sets.scope import Scope
from lodger.engine.effects.commit_errors import ConflictFound
from lodger.engine.effects.effect import Consumed
from lodger.engine.store.drivers import driver_of
from lodger.engine.store.queue.followers import Position
from lodger.engine.store.schema.feeds import cursors

_c = cursors.c


def read(connection: Connection, tenant_id: str, consumer: str, source: str) -> Position | None:
    """Return a consumer's position in a feed, None if it has never read it."""
    mine = (_c.tenant_id == tenant_id, _c.consumer == consumer, _c.source == source)
    row = connection.execute(select(_c.xid, _c.seq).where(*mine)).first()
    return None if row is None else Position(row.xid, row.seq)


def move(
    connection: Connection, tenant_id: str, effect: Consumed, now_us: int, *, index: int, verify: bool = True
) -> None:
    """Move a consumer's position.

    Raises:
        ConflictFound: another run of the same consumer has read the same changes and was committed first.
    """
    Scope(tenant_id)  # checks the tenant, which comes from the journal and not from a script
    if verify and read(connection, tenant_id, effect.consumer, effect.source) != effect.base:
        raise ConflictFound(
            "conflict",
            f"changes of {effect.name} were read by another run in the meantime",
            index=index,
            place=effect.line,
        )
    statement = (
        driver_of(connection)
        .insert(cursors)
        .values(
            tenant_id=tenant_id,
            consumer=effect.consumer,
            source=effect.source,
            xid=effect.to[0],
            seq=effect.to[1],
            updated_us=now_us,
        )
    )
    moved = {name: statement.excluded[name] for name in ("xid", "seq", "updated_us")}
    connection.execute(statement.on_conflict_do_update(index_elements=["tenant_id", "consumer", "source"], set_=moved))
