"""Moves a tenant between ledgers in steps, each of which one transaction ends: a move that was interrupted goes on at its step.

The directory says the step: ``target`` while the tenant's ledger is the old one, ``source`` while the old one has to be cleared. In the old
ledger the tenant is held before it is copied, and never let go again; the copy is held until the directory has switched. So at
each instant it runs in at most one ledger, and every change is in the copy or was refused.
"""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Table, select

from lodger.engine.core.access.audit_context import current_audit_context
from lodger.engine.core.errors import Conflict, InputError, NotFound
from lodger.engine.core.ids import PLATFORM
from lodger.engine.features.archive.export import export, tables
from lodger.engine.features.archive.restore import bring_in
from lodger.engine.features.ledgers import directory
from lodger.engine.features.ledgers.directory import TenantPlace
from lodger.engine.service.engine import Engine
from lodger.engine.store import audit
from lodger.engine.store.bulk import insert_many
from lodger.engine.store.migrations.revision import current
from lodger.engine.store.queue import ready_queue
from lodger.engine.store.schema import feeds, nodes, scheduling, script_data
from lodger.engine.store.schema.access import running_lines
from lodger.engine.store.schema.metadata import metadata
from lodger.engine.store.tenants import tenants

if TYPE_CHECKING:
    from lodger.engine.features.ledgers.system import System

#: Tables with rows of a tenant that stay: derived ones, those of running attempts and sealed ones, of which a held tenant has none,
#: locks of nodes, and positions in the feed of changes, which are numbered anew.
_LEFT = (
    scheduling.turns, script_data.storage, script_data.reservations, script_data.sealed, script_data.holds, running_lines, nodes.locks,
    feeds.cursors,
)  # fmt: skip


def move(system: "System", tenant_id: str, ledger: str) -> TenantPlace:
    """Move a tenant, or go on with its move; with the ledger that it lives in, take an unfinished move back.

    Raises:
        as :meth:`lodger.engine.features.ledgers.operations.TenantVerbs.move`.
    """
    if tenant_id == PLATFORM:
        raise Conflict("platform_stays.export")
    system.member(ledger)
    place = system.place_of(tenant_id)
    if place.source is not None:
        place = _finish(system, place)
    if place.ledger == ledger:
        return _take_back(system, place)
    if place.target is None:
        place = _begin(system, place, ledger)
    if place.target != ledger:
        raise Conflict("tenant_moving", tenant=tenant_id)
    source, target = (system.member(name) for name in (place.ledger, ledger))
    source.run(partial(_hold, tenant_id))
    copied = source.run(partial(_copied, tenant_id))
    target.run(partial(_restore, tenant_id, copied))
    return _finish(system, _changed(system, place, ledger=ledger, target=None, source=place.ledger))


def _hold(tenant_id: str, engine: Engine) -> None:
    """Hold a tenant in a ledger while it is moved."""
    with engine.context.database.write() as connection:
        ready_queue.lock(connection, [tenant_id])
        tenants.hold(engine.context, connection, tenant_id, engine.context.clock.now_us())
    engine.changed()


def _changed(system: "System", before: TenantPlace, **values: Any) -> TenantPlace:
    """Change the directory's row, with a row of the audit log; another mover may have changed it before.

    Raises:
        Conflict: tenant_moving.
    """

    def change(engine: Engine) -> TenantPlace:
        """Change the row in a transaction of the first ledger."""
        context = engine.context
        with context.database.write() as connection:
            if not directory.change(connection, before, **values):
                raise Conflict("tenant_moving", tenant=before.tenant)
            after = directory.find(connection, before.tenant)
            assert after is not None, "it was changed"
            doing = audit.AuditSubject("tenants.move", None, before.tenant)
            was, now = (
                {"ledger": each.ledger, "target": each.target, "source": each.source} for each in (before, after)
            )
            row = audit.row(context, current_audit_context(), doing, was, now, context.clock.now_us())
            audit.write(connection, [row])
            return after

    return system.home.run(change)


def _begin(system: "System", place: TenantPlace, ledger: str) -> TenantPlace:
    """Note in the directory where a tenant goes, if that ledger has its schema and none of its id, and whether it was active."""
    source, target = system.member(place.ledger), system.member(ledger)
    old, new = (each.run(_revision) for each in (source, target))
    if old != new:
        raise InputError(
            "archive_of_other_version.ledger", source=source.name, target=ledger, revision=old, current=new
        )
    here, there = (each.run(partial(_state, place.tenant)) for each in (source, target))
    if there not in (None, tenants.MOVING):
        raise Conflict("tenant_exists", tenant=place.tenant)
    return _changed(system, place, target=ledger, resumes=int(here == "active"))


def _revision(engine: Engine) -> str | None:
    """Return the revision of a ledger's schema."""
    with engine.context.database.read() as connection:
        return current(connection)


def _state(tenant_id: str, engine: Engine) -> str | None:
    """Return the state of a tenant in a ledger, None if the ledger does not have it."""
    try:
        return engine.tenants.get(tenant_id).state
    except NotFound:
        return None


def _take_back(system: "System", place: TenantPlace) -> TenantPlace:
    """Let a tenant go on where it lives; what was copied to the other ledger is erased now, or before the next copy."""
    if place.target is not None:
        target = system.member(place.target)
        place = _changed(system, place, target=None)
        target.run(partial(_clear, place.tenant))
    system.member(place.ledger).run(partial(_resume, place))
    return _changed(system, place, resumes=0) if place.resumes else place


def _finish(system: "System", place: TenantPlace) -> TenantPlace:
    """Resume a tenant in its new ledger and erase it in the old one."""
    system.member(place.ledger).run(partial(_resume, place))
    assert place.source is not None, "the directory has switched"
    system.member(place.source).run(partial(_clear, place.tenant))
    return _changed(system, place, source=None, resumes=0)


def _resume(place: TenantPlace, engine: Engine) -> None:
    """End the hold of a moved tenant, and resume it if it was active before the move."""
    context = engine.context
    with context.database.write() as connection:
        if tenants.release(connection, place.tenant) and place.resumes:
            tenants.resume(context, connection, place.tenant, context.clock.now_us())
    context.forget(place.tenant)
    engine.changed()


def _clear(tenant_id: str, engine: Engine) -> None:
    """Erase what a ledger has of a tenant that does not live there."""
    with engine.context.database.write() as connection:
        _erase(connection, tenant_id)
    engine.context.forget(tenant_id)


def _erase(connection: Connection, tenant_id: str) -> None:
    """Delete a tenant that is held for a move."""
    if tenants.release(connection, tenant_id):
        tenants.erase(connection, tenant_id)


@dataclass(frozen=True, slots=True)
class _Copy:
    """A tenant's rows: its archive, the rows of tables that an archive leaves out, names of bound scripts by id, and its feeds."""

    archive: bytes
    rows: list[tuple[Table, list[dict[str, Any]]]]
    bound: dict[str, str]
    changes: list[Any]
    cursors: list[Any]
    woken: list[Any]


def _copied(tenant_id: str, engine: Engine) -> _Copy:
    """Read everything of a tenant from one snapshot."""
    others = [
        table
        for table in metadata.sorted_tables
        if "tenant_id" in table.c and table.name not in tables() and table not in _LEFT
    ]
    c, f = feeds.changes.c, feeds.followers.c
    with engine.context.database.read() as connection:
        return _Copy(
            export(connection, tenant_id, engine.context.clock.now_us()),
            [
                (table, [dict(row._mapping) for row in connection.execute(select(table).where(table.c.tenant_id == tenant_id))])
                for table in others
            ],
            _bound(connection, tenant_id),
            list(connection.execute(select(feeds.changes).where(feeds.of_collections(feeds.changes, tenant_id)).order_by(c.xid, c.seq))),
            list(connection.execute(select(feeds.cursors).where(feeds.cursors.c.tenant_id == tenant_id))),
            list(connection.execute(select(feeds.followers).where(f.tenant_id == tenant_id, f.woken_xid.is_not(None)))),
        )  # fmt: skip


def _bound(connection: Connection, tenant_id: str) -> dict[str, str]:
    """Return the names of the platform's scripts that a tenant has bound, by their id in this ledger."""
    c = scheduling.scripts.c
    rows = connection.execute(select(c.id, c.name).where(c.tenant_id == tenant_id, c.kind == "bound"))
    return {row.id: row.name for row in rows}


def _restore(tenant_id: str, copied: _Copy, engine: Engine) -> None:
    """Store a copy, held, in place of one that an interrupted move has left.

    Raises:
        Conflict: tenant_exists.
    """
    context = engine.context
    with context.database.write() as connection:
        _erase(connection, tenant_id)
        bring_in(context, connection, tenant_id, copied.archive, context.clock.now_us())
        ids = {name: identity for identity, name in _bound(connection, tenant_id).items()}
        here = {identity: ids[name] for identity, name in copied.bound.items()}
        for table, rows in copied.rows:
            if "script_id" in table.c:
                rows = [row | {"script_id": here.get(row["script_id"], row["script_id"])} for row in rows]
            insert_many(connection, table, rows)
        _restore_feeds(connection, tenant_id, copied)
        tenants.hold(context, connection, tenant_id, context.clock.now_us())


def _restore_feeds(connection: Connection, tenant_id: str, copied: _Copy) -> None:
    """Store the changes under numbers of this ledger, and the positions of their readers between the same ones."""
    c, plain = feeds.changes.c, ("source", "owner", "key", "kind", "at_us", "made_by")
    insert_many(connection, feeds.changes, [{name: getattr(row, name) for name in plain} for row in copied.changes])
    stored = connection.execute(
        select(c.xid, c.seq).where(feeds.of_collections(feeds.changes, tenant_id)).order_by(c.xid, c.seq)
    ).all()
    numbers = [((row.xid, row.seq), (now.xid, now.seq)) for row, now in zip(copied.changes, stored, strict=True)]

    def position(xid: int, seq: int) -> tuple[int, int]:
        """Return this ledger's position for one of the old ledger: after the last copied change that is not behind it."""
        return max((new for old, new in numbers if old <= (xid, seq)), default=(0, 0))

    moved = [
        dict(row._mapping) | dict(zip(("xid", "seq"), position(row.xid, row.seq), strict=True))
        for row in copied.cursors
    ]
    insert_many(connection, feeds.cursors, moved)
    for row in copied.woken:
        xid, seq = position(row.woken_xid, row.woken_seq)
        mine = (
            feeds.followers.c.tenant_id == tenant_id,
            feeds.followers.c.schedule_id == row.schedule_id,
            feeds.followers.c.name == row.name,
        )
        connection.execute(feeds.followers.update().where(*mine).values(woken_xid=xid, woken_seq=seq))
