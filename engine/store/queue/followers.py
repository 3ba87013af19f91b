"""Schedules that run on changes: the datasets that each follows, and its position in their feeds."""

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, delete, insert, select, update

from lodger.engine.store.drivers import driver_of, prepared
from lodger.engine.store.drivers.prepared import Prepared
from lodger.engine.store.schema import scheduling as tables
from lodger.engine.store.schema.feeds import cursors, followers

_f, _c, _k = followers.c, cursors.c, tables.schedule_clock.c


class Position(NamedTuple):
    """A position in a feed; everything up to and including it has been read."""

    xid: int
    seq: int


class Follower(NamedTuple):
    """An armed schedule and the name of a dataset that it follows."""

    tenant_id: str
    schedule_id: str
    name: str


def bind(connection: Connection, tenant_id: str, schedule_id: str, names: Iterable[str], now_us: int) -> None:
    """Replace the datasets that a schedule follows."""
    prepared.write(connection, delete(followers).where(_f.tenant_id == tenant_id, _f.schedule_id == schedule_id))
    rows = [{"tenant_id": tenant_id, "schedule_id": schedule_id, "name": name, "bound_us": now_us} for name in names]
    if rows:
        connection.execute(insert(followers), rows)


def record_armed(connection: Connection, tenant_id: str, schedule_id: str, now_us: int) -> None:
    """Record that a schedule was armed: the datasets that it follows may have changed meanwhile."""
    mine = (_f.tenant_id == tenant_id, _f.schedule_id == schedule_id)
    prepared.write(connection, update(followers).where(*mine).values(bound_us=now_us, woken_xid=None, woken_seq=None))


def unbind(connection: Connection, tenant_id: str, schedule_id: str) -> None:
    """Delete the datasets that a schedule follows and its positions."""
    bind(connection, tenant_id, schedule_id, (), 0)
    prepared.write(connection, delete(cursors).where(_c.tenant_id == tenant_id, _c.consumer == schedule_id))


_own_clock = (_k.tenant_id == _f.tenant_id) & (_k.schedule_id == _f.schedule_id)
#: Not a join: without statistics PostgreSQL would begin with all clocks.
_is_armed = select(_k.state).where(_own_clock).scalar_subquery() == "armed"


def list_followers(
    connection: Connection,
    name: str | None = None,
    tenant_ids: Collection[str] | None = None,
    *,
    since_us: int | None = None,
) -> list[Follower]:
    """Return armed schedules that follow a dataset: those of one, or of these tenants, or those bound or armed since an instant."""
    wanted = select(_f.tenant_id, _f.schedule_id, _f.name).where(_is_armed)
    if name is not None:
        wanted = wanted.where(_f.name == name)
    if tenant_ids is not None:
        wanted = wanted.where(_f.tenant_id.in_(tenant_ids))
    if since_us is not None:
        wanted = wanted.where(_f.bound_us > since_us)
    return [Follower(*row) for row in connection.execute(wanted)]


def ask_any_followers(connection: Connection) -> Callable[[], bool]:
    """Query whether any schedule follows a dataset; the returned function returns the answer."""
    return _any_follower.answer(connection, {}, bool)


_any_follower = Prepared(lambda _driver: select(_f.name).limit(1))


def position(connection: Connection, tenant_id: str, consumer: str, source: str) -> Position | None:
    """Return the position of a consumer in a feed, None if it has never read it."""
    mine = (_c.tenant_id == tenant_id, _c.consumer == consumer, _c.source == source)
    row = connection.execute(select(_c.xid, _c.seq).where(*mine)).first()
    return None if row is None else Position(row.xid, row.seq)


def move(connection: Connection, tenant_id: str, consumer: str, source: str, to: tuple[int, int], now_us: int) -> None:
    """Store the position of a consumer in a feed."""
    keys = {"tenant_id": tenant_id, "consumer": consumer, "source": source}
    moved = {"xid": to[0], "seq": to[1], "updated_us": now_us}
    statement = driver_of(connection).insert(cursors).values(keys | moved)
    connection.execute(statement.on_conflict_do_update(index_elements=list(keys), set_=moved))


def last_requested(connection: Connection, follower: Follower) -> Position | None:
    """Return the last change for which a run of a schedule was requested, None if there is none."""
    row = connection.execute(select(_f.woken_xid, _f.woken_seq).where(*_key(follower))).first()
    return None if row is None or row.woken_xid is None else Position(row.woken_xid, row.woken_seq)


def record_requested(connection: Connection, follower: Follower, until: Position) -> None:
    """Record the last change for which a run was requested."""
    values = {"woken_xid": until.xid, "woken_seq": until.seq}
    prepared.write(connection, update(followers).where(*_key(follower)).values(values))


def _key(follower: Follower) -> tuple[ColumnElement[bool], ...]:
    """Return the condition for the row of a follower."""
    return (_f.tenant_id == follower.tenant_id, _f.schedule_id == follower.schedule_id, _f.name == follower.name)
