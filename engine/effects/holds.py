"""Holds: rows of the ledger's database that a sealed attempt will write, locked for other attempts until it has.

A sealed attempt can no longer fail, because its effects in another database may be applied. Rows that were compared
when it was sealed must not change until then. A hold lasts as long as the seal: one round trip, unless the platform's
database is unreachable.
"""

from collections.abc import Callable, Iterable

from sqlalchemy import Connection, bindparam, delete, insert, select

from lodger.engine.data.sets.dataset import Collection
from lodger.engine.effects.commit_errors import ConflictFound, WriteBlocked
from lodger.engine.effects.effect import Consumed, Effect, KvAdd, KvSet
from lodger.engine.effects.write_set import ROW_EFFECTS, Place, WriteSet
from lodger.engine.store.drivers.prepared import Answer, Prepared
from lodger.engine.store.schema.script_data import holds


def written_places(effects: Iterable[tuple[int, Effect]]) -> dict[Place, tuple[int, Effect]]:
    """Return the rows, keys and cursors that these effects write in the ledger's database, each with its first effect."""
    found: dict[Place, tuple[int, Effect]] = {}
    for index, effect in effects:
        place: Place | None = None
        if isinstance(effect, KvSet | KvAdd):
            place = ("kv", effect.scope, effect.key)
        elif isinstance(effect, Consumed):
            place = ("cursor", effect.consumer, effect.source)
        elif isinstance(effect, ROW_EFFECTS) and isinstance(effect.rows, Collection):
            place = ("document", effect.rows.name, effect.key)
        if place is not None:
            found.setdefault(place, (index, effect))
    return found


_of = Prepared(
    lambda _driver: select(holds.c.kind, holds.c.scope, holds.c.key).where(holds.c.tenant_id == bindparam("tenant"))
)


def ask(connection: Connection, write_set: WriteSet) -> Callable[[], None]:
    """Ask for the rows that sealed attempts of the tenant hold; the returned function checks that none is a row that these effects write.

    Raises:
        WriteBlocked: one does, when the result is called.
    """
    wanted = written_places(write_set.effects)
    held: Answer = _of.ask(connection, {"tenant": write_set.tenant_id}) if wanted else list

    def require_free() -> None:
        """Raise WriteBlocked if a sealed attempt holds one of the rows."""
        for row in held():
            met = wanted.get((row.kind, row.scope, row.key))
            if met is not None:
                index, effect = met
                said = f"{row.kind} '{row.key}' is reserved by a run that is being committed to another database"
                raise WriteBlocked(ConflictFound("conflict", said, index=index, place=effect.line))

    return require_free


def take(connection: Connection, write_set: WriteSet) -> None:
    """Hold the rows that the effects of a sealed attempt will write."""
    rows = [
        {"tenant_id": write_set.tenant_id, "kind": kind, "scope": scope, "key": key, "action_id": write_set.action_id}
        for kind, scope, key in written_places(write_set.effects)
    ]
    if rows:
        connection.execute(insert(holds), rows)


def release(connection: Connection, tenant_id: str, action_id: str) -> None:
    """Release the holds of an action."""
    connection.execute(delete(holds).where(holds.c.tenant_id == tenant_id, holds.c.action_id == action_id))
