"""Reports of a platform's own writes to the change feed: row by row on its own connection, or all that a session flushes."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine, Table, event, inspect

from lodger.engine.core.clock import Clock
from lodger.engine.core.errors import InputError
from lodger.engine.core.refusal import CallRefused
from lodger.engine.data.changes import feed
from lodger.engine.data.sets.dataset import TableDataset
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.data.sets.expose import table_name
from lodger.engine.data.values.stored import canonical
from lodger.engine.store.drivers.borrowed import borrow

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

#: What is a single key, not several.
_ONE = (str, bytes, int)


def record_changed(
    datasets: Datasets,
    clock: Clock,
    own: Engine,
    connection: Any,
    what: Any,
    tenant_id: str,
    keys: Any,
    kind: str = feed.UPDATE,
) -> None:
    """Record changes in the caller's transaction; see :meth:`lodger.engine.sync.Engine.record_changed`."""
    rows = _exposed(datasets, what)
    if kind not in feed.KINDS:
        raise InputError("change_kind", kind=kind, kinds=feed.KINDS)
    if rows.feed == "off":
        raise InputError("feed_off", name=rows.name)
    given = keys if isinstance(keys, Iterable) and not isinstance(keys, _ONE) else [keys]
    try:
        owner = feed.owner_of(rows, tenant_id)
    except CallRefused:
        raise InputError("tenant_unknown.set", tenant=tenant_id, set=rows.name) from None
    found = borrow(connection, own if rows.database is None else rows.database.engine)
    feed.record(found, feed.source_of(rows), owner, [(_text(rows, key), kind) for key in given], clock.now_us())


def _exposed(datasets: Datasets, what: Any) -> TableDataset:
    """Return the dataset through which a table, a mapped class or a name is exposed."""
    table = what if isinstance(what, Table) else None
    mapper = None if isinstance(what, str | Table) else inspect(what, raiseerr=False)
    if mapper is not None:
        # A mapped class comes with it imported; tables and names do not need it.
        from sqlalchemy.orm import Mapper

        if isinstance(mapper, Mapper):
            table = mapper.local_table  # type: ignore[assignment]  # of classes that can be exposed it is a table
    model = None if isinstance(what, str) else table_name(what)
    for rows in datasets:
        if rows.name == what or rows.origin.name == model or (table is not None and rows.origin is table):
            return rows
    raise InputError("set_unknown", name=what)


def _text(rows: TableDataset, key: Any) -> str:
    """Return the key of a row as the change feed stores it; raises InputError (key_missing) for None."""
    if key is None:
        raise InputError("key_missing", name=rows.name)
    return feed.key_text(rows, canonical(rows.key, key))


def record_sessions(datasets: Datasets, clock: Clock, target: Any) -> Callable[[], None]:
    """Report rows that sessions flush; see :meth:`lodger.engine.sync.Engine.record_sessions`."""

    def record_flush(session: "Session", _context: object) -> None:
        """Record the rows that a session is about to write as changes."""
        for each in session.new:
            _tell(datasets, clock, session, each, feed.INSERT)
        for each in session.dirty:
            if session.is_modified(each):
                _tell(datasets, clock, session, each, feed.UPDATE)
        for each in session.deleted:
            _tell(datasets, clock, session, each, feed.DELETE)

    target = _synchronous(target)
    event.listen(target, "after_flush", record_flush)
    return lambda: event.remove(target, "after_flush", record_flush)


def _synchronous(target: Any) -> Any:
    """Return the synchronous session class or factory beneath an asynchronous one; others unchanged."""
    if hasattr(target, "sync_session"):  # an AsyncSession
        return target.sync_session
    kind: Any = getattr(target, "class_", None)
    if not hasattr(kind, "sync_session_class"):
        return target
    # The sessions of an async_sessionmaker get a class of their own, so that those of others report nothing.
    made = type("Session", (target.kw.get("sync_session_class") or kind.sync_session_class,), {})
    target.configure(sync_session_class=made)
    return made


def _tell(datasets: Datasets, clock: Clock, session: "Session", row: object, kind: str) -> None:
    """Record the change of a mapped object that a session flushes."""
    mapper = inspect(type(row))
    rows = next((each for each in datasets if each.origin is mapper.local_table), None)
    if rows is None or rows.feed == "off":
        return
    key, owner = (mapper.get_property_by_column(column).key for column in (rows.key.column, rows.tenant_column))
    state = inspect(row)
    assert state is not None
    now = tuple(_value(state, name, old=False) for name in (key, owner))
    before = tuple(_value(state, name, old=True) for name in (key, owner))
    changed = [(now, kind)]
    if kind == feed.UPDATE and before != now:  # to another tenant, or under another key
        changed = [(before, feed.DELETE), (now, feed.INSERT)]
    elif kind == feed.DELETE:
        changed = [(before, feed.DELETE)]
    connection = session.connection(bind_arguments={"mapper": mapper})
    for (which, tenant), change in changed:
        if tenant is not None:
            feed.record(connection, feed.source_of(rows), str(tenant), [(_text(rows, which), change)], clock.now_us())


def _value(state: Any, name: str, *, old: bool) -> Any:
    """Return the value of a mapped object's attribute; with ``old`` the one before the flushed change."""
    history = state.attrs[name].history
    if old and history.deleted:
        return history.deleted[0]
    return state.attrs[name].value
