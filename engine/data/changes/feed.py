"""The change feed of one database: recording changes, reading them in order, and how far they can be read.

Synchronous, on the caller's connection. A position is (transaction, number): see :mod:`lodger.engine.store.schema.feeds`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, bindparam, delete, func, insert, not_, select, tuple_
from sqlalchemy.sql.elements import ColumnElement

from lodger.engine.core.refusal import CallRefused
from lodger.engine.data.sets.dataset import Collection, Dataset, TableDataset
from lodger.engine.data.values import kinds
from lodger.engine.data.values.kinds import Kind
from lodger.engine.store.bulk import insert_many
from lodger.engine.store.drivers import driver_of, prepared
from lodger.engine.store.queue.followers import Position
from lodger.engine.store.schema import feeds

INSERT, UPDATE, DELETE = "insert", "update", "delete"
KINDS = (INSERT, UPDATE, DELETE)
_c, _f = feeds.changes.c, feeds.forgotten.c


#: Before everything.
START = Position(-1, -1)


#: Maximum number of changes that one look for feeds with changes reads.
_NEWS_AT_ONCE = 5000


@dataclass(frozen=True, slots=True)
class Change:
    """A recorded change. ``key`` is the row's key as text."""

    key: str
    kind: str
    at_us: int


def source_of(rows: Dataset) -> str:
    """Return the name under which changes of a dataset are recorded: the table's, because several datasets may show one table."""
    return f"collection:{rows.name}" if isinstance(rows, Collection) else f"table:{rows.origin.fullname}"


def owner_of(rows: Dataset, tenant_id: str) -> str:
    """Return the tenant as the feed of a dataset writes it.

    Raises:
        CallRefused: ``denied``: the tenant has no part in the dataset.
    """
    value = rows.tenant_value(tenant_id)
    if value is None:
        raise CallRefused("denied", f"this tenant has no access to {rows.name}")
    return str(value)


def key_text(rows: Dataset, key: Any) -> str:
    """Return a canonical key as the feed writes it."""
    return key.isoformat() if rows.key.kind is Kind.DATE else str(key)


def key_shown(rows: Dataset, key: str) -> Any:
    """Return a key of a feed as scripts see keys of its dataset."""
    return kinds.show(rows.key.kind, int(key)) if rows.key.kind in (Kind.INT, Kind.BIGINT) else key


#: What became of a row in one run, by what was so far: a row inserted and removed again is no change.
NOTHING = "nothing"
_NET = {
    (INSERT, UPDATE): INSERT,
    (INSERT, DELETE): NOTHING,
    (UPDATE, DELETE): DELETE,
    (DELETE, INSERT): UPDATE,
}


def net(before: str | None, kind: str) -> str:
    """Return the combined kind of two successive changes of a row; ``before`` is None if there was no earlier one."""
    return kind if before is None else _NET.get((before, kind), kind)


def kept(rows: Dataset) -> bool:
    """Whether changes of a dataset are recorded at all."""
    return not isinstance(rows, TableDataset) or rows.feed != "off"


def record(
    connection: Connection,
    source: str,
    owner: str,
    keyed: Iterable[tuple[str, str]],
    at_us: int,
    made_by: str | None = None,
) -> None:
    """Record changes, (key, kind) each, in the caller's transaction; they can be read after its commit."""
    fixed = {"source": source, "owner": owner, "at_us": at_us, "made_by": made_by}
    rows = [{"key": key, "kind": kind} | fixed for key, kind in keyed]
    if not rows:
        return
    if prepared.keeps(connection):
        insert_many(connection, feeds.changes, rows)
    else:  # the connection of a platform, or of SQLite
        connection.execute(insert(feeds.changes), rows)


def _final(connection: Connection) -> ColumnElement[bool]:
    """Return the condition that no transaction that is still under way can add a change before this one."""
    return driver_of(connection).is_final(_c.xid)


class Batch(NamedTuple):
    """Changes that were read, the position after them, and whether further ones wait."""

    changes: list[Change]
    position: Position
    more: bool


#: Changes that are looked at together, and how often one question goes on when they were the consumer's own.
PAGE, PAGES = 200, 20


def read(
    connection: Connection, source: str, owner: str, after: Position, limit: int, *, consumer: str | None = None
) -> Batch:
    """Return the next changes after a position, oldest first, without the consumer's own.

    A change is returned only when no older one can still be committed.
    """
    found: list[Change] = []
    for _ in range(PAGES):
        wanted = max(limit + 1, PAGE)
        rows = _page(connection, source, owner, after, wanted)
        for row in rows:
            if row.made_by is None or row.made_by != consumer:
                if len(found) == limit:
                    return Batch(found, after, True)
                found.append(Change(row.key, row.kind, row.at_us))
            after = Position(row.xid, row.seq)
        if len(rows) < wanted:
            return Batch(found, after, False)
    return Batch(found, after, True)


def _page(connection: Connection, source: str, owner: str, after: Position, limit: int) -> Sequence[Any]:
    """Read changes after a position, in their order."""
    asked = (
        select(_c.key, _c.kind, _c.at_us, _c.made_by, _c.xid, _c.seq)
        .where(_c.source == source, _c.owner == owner, tuple_(_c.xid, _c.seq) > tuple_(*after))
        .where(_final(connection))
        .order_by(_c.xid, _c.seq)
        .limit(limit)
    )
    return connection.execute(asked).all()


def last(connection: Connection, source: str, owner: str) -> Position:
    """Return the position of the newest readable change: the start of a new consumer."""
    return end(connection, _c.source == source, _c.owner == owner)


def require_complete(connection: Connection, source: str, owner: str, at: Position) -> None:
    """Require that every change after a position is still there.

    Raises:
        CallRefused: ``changes_forgotten``: retention has deleted unread changes; ``changes_rewound``: the database was put
            back to an earlier state, so that its numbers begin anew.
    """
    row = connection.execute(select(_f.xid, _f.seq).where(_f.source == source, _f.owner == owner)).first()
    if row is not None and Position(row.xid, row.seq) > at:
        raise CallRefused(
            "changes_forgotten",
            'changes were deleted before they were read; continue with { from: "start" }',
        )
    following = driver_of(connection).next_transaction(connection)
    if following is not None and at.xid >= following:
        raise CallRefused(
            "changes_rewound", 'the database was restored to an earlier state; continue with { from: "start" }'
        )


class News(NamedTuple):
    """Feeds with changes since the last poll, and the position up to which they were polled."""

    feeds: set[tuple[str, str]]
    position: Position
    more: bool


def news(connection: Connection, after: Position) -> News:
    """Return the feeds, (source, owner) each, with changes after a position."""
    behind = tuple_(_c.xid, _c.seq) > tuple_(*after)
    asked = select(_c.source, _c.owner, _c.xid, _c.seq).where(behind, _final(connection))
    rows = connection.execute(asked.order_by(_c.xid, _c.seq).limit(_NEWS_AT_ONCE)).all()
    position = Position(rows[-1].xid, rows[-1].seq) if rows else after
    return News({(row.source, row.owner) for row in rows}, position, len(rows) == _NEWS_AT_ONCE)


def end(connection: Connection, *of: ColumnElement[bool]) -> Position:
    """Return the position of the newest readable change of all feeds, or of those with these conditions."""
    asked = select(_c.xid, _c.seq).where(*of, _final(connection))
    row = connection.execute(asked.order_by(_c.xid.desc(), _c.seq.desc()).limit(1)).first()
    return START if row is None else Position(row.xid, row.seq)


@dataclass(frozen=True, slots=True)
class FeedLag:
    """How far the feed of a database can be read.

    Attributes:
        waiting: changes that are committed and cannot be read yet, because an older transaction is still under way.
        held_us: since when the oldest of them waits, microseconds since 1970; None when none does.
        holder: the server process of the oldest transaction; None when none holds changes back, or when it may not be seen.
        since_us: when that transaction began.
    """

    waiting: int = 0
    held_us: int | None = None
    holder: int | None = None
    since_us: int | None = None


def horizon(connection: Connection) -> FeedLag:
    """Return the lag of the feed; there is none where one transaction writes at a time."""
    driver = driver_of(connection)
    if not driver.has_row_locks:
        return FeedLag()
    waits = select(func.count(), func.min(_c.at_us)).where(not_(driver.is_final(_c.xid)))
    waiting, oldest = connection.execute(waits).one()
    if not waiting:
        return FeedLag()
    holder, since_us = driver.oldest_writer(connection) or (None, None)
    return FeedLag(waiting, oldest, holder, since_us)


_first = select(_c.seq, _c.source, _c.owner, _c.xid, _c.at_us).order_by(_c.xid, _c.seq).limit(1000)


def forget(connection: Connection, before_us: int) -> int:
    """Delete older changes among the first of the feed, record for each feed how far, and return their number.

    Only the beginning is looked at: feeds are nearly ordered by time, and a search for old changes would read a whole feed.
    """
    rows = [row for row in connection.execute(_first) if row.at_us < before_us]
    upto: dict[tuple[str, str], Position] = {}
    for row in rows:
        upto[row.source, row.owner] = Position(row.xid, row.seq)
    if not rows:
        return 0
    _remember(connection, feeds.forgotten, upto)
    numbers = [{"gone": row.seq} for row in rows]
    connection.execute(delete(feeds.changes).where(_c.seq == bindparam("gone")), numbers)
    return len(rows)


def _remember(connection: Connection, table: Table, upto: dict[tuple[str, str], Position]) -> None:
    """Store up to which position each feed's changes were deleted."""
    statement = driver_of(connection).insert(table)
    moved = {"xid": statement.excluded.xid, "seq": statement.excluded.seq}
    statement = statement.on_conflict_do_update(index_elements=["source", "owner"], set_=moved)
    given: list[dict[str, Any]] = [
        {"source": source, "owner": owner, "xid": at.xid, "seq": at.seq} for (source, owner), at in sorted(upto.items())
    ]
    connection.execute(statement, given)
