"""Schedules that run on changes: which sets each follows, and how far it has read."""

from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, delete, insert, select, update

from lodger.engine.store.schema import scheduling as tables
from lodger.engine.store.schema.feeds import cursors, followers

_f, _c, _k = followers.c, cursors.c, tables.schedule_clock.c


class Position(NamedTuple):
    """A place in a feed; everything up to and including it has been read."""

    xid: int
    seq: int


class Follower(NamedTuple):
    """A schedule that is armed and follows the set of this name."""

    tenant_id: str
    schedule_id: str
    name: str


def bind(connection: Connection, tenant_id: str, schedule_id: str, names: Iterable[str], now_us: int) -> None:
    """Let a schedule follow these sets and no others."""
    connection.execute(delete(followers).where(_f.tenant_id == tenant_id, _f.schedule_id == schedule_id))
    rows = [{"tenant_id": tenant_id, "schedule_id": schedule_id, "name": name, "bound_us": now_us} for name in names]
    if rows:
        connection.execute(insert(followers), rows)


def armed(connection: Connection, tenant_id: str, schedule_id: str, now_us: int) -> None:
    """Take note that a schedule may run again: what it follows may have changed meanwhile."""
    mine = (_f.tenant_id == tenant_id, _f.schedule_id == schedule_id)
    connection.execute(update(followers).where(*mine).values(bound_us=now_us, woken_xid=None, woken_seq=None))


def forget(connection: Connection, tenant_id: str, schedule_id: str) -> None:
    """Forget what a schedule follows and how far it has read."""
    bind(connection, tenant_id, schedule_id, (), 0)
    connection.execute(delete(cursors).where(_c.tenant_id == tenant_id, _c.consumer == schedule_id))


def following(connection: Connection, name: str | None = None, *, since_us: int | None = None) -> list[Follower]:
    """Give armed schedules that follow something: one set, or bound or armed since an instant, when so asked."""
    wanted = (
        select(_f.tenant_id, _f.schedule_id, _f.name)
        .join_from(
            followers, tables.schedule_clock, (_k.tenant_id == _f.tenant_id) & (_k.schedule_id == _f.schedule_id)
        )
        .where(_k.state == "armed")
    )
    if name is not None:
        wanted = wanted.where(_f.name == name)
    if since_us is not None:
        wanted = wanted.where(_f.bound_us > since_us)
    return [Follower(*row) for row in connection.execute(wanted)]


def any_there(connection: Connection) -> bool:
    """Whether anything follows anything."""
    return connection.scalar(select(_f.name).limit(1)) is not None


def place(connection: Connection, follower: Follower, source: str) -> Position | None:
    """Give how far a schedule has read a feed, None when it never has."""
    mine = (_c.tenant_id == follower.tenant_id, _c.consumer == follower.schedule_id, _c.source == source)
    row = connection.execute(select(_c.xid, _c.seq).where(*mine)).first()
    return None if row is None else Position(row.xid, row.seq)


def woken(connection: Connection, follower: Follower) -> Position | None:
    """Return up to which change a run of a schedule was asked for, None when none was."""
    row = connection.execute(select(_f.woken_xid, _f.woken_seq).where(*_mine(follower))).first()
    return None if row is None or row.woken_xid is None else Position(row.woken_xid, row.woken_seq)


def note_woken(connection: Connection, follower: Follower, until: Position) -> None:
    """Remember up to which change a run was asked for."""
    values = {"woken_xid": until.xid, "woken_seq": until.seq}
    connection.execute(update(followers).where(*_mine(follower)).values(values))


def _mine(follower: Follower) -> tuple[ColumnElement[bool], ...]:
    return (_f.tenant_id == follower.tenant_id, _f.schedule_id == follower.schedule_id, _f.name == follower.name)
