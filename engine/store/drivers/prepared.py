"""Statements of the hot path: compiled once for each driver, then sent as text on the DBAPI's own cursor.

An execution by SQLAlchemy touches some hundred functions. A node that starts one run every few milliseconds finds none
of them in the processor's caches, and pays for their number rather than for their time.
"""

from collections import Counter, namedtuple
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection, Dialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.dml import UpdateBase
from sqlalchemy.sql.selectable import Select

from lodger.engine.store.drivers import OPTION, Driver, driver_of

T = TypeVar("T")
Values = Mapping[str, Any]
#: Returns the rows of a query that was asked, and waits for them if they have not come.
Answer = Callable[[], list[Any]]
#: Number of ``statements`` that this process has sent past SQLAlchemy, for measurements.
counted: Counter[str] = Counter()
_CURSOR = "lodger_cursor"


class Prepared:
    """A statement that is compiled on first use, once for each driver.

    Args:
        build: builds it for a driver. Bound lists need :meth:`lodger.engine.store.drivers.Driver.among`: the text is the
            same for lists of any length.
    """

    def __init__(self, build: Callable[[Driver], Select[Any] | UpdateBase]) -> None:
        self._build = build
        self._compiled: dict[Driver, _Compiled] = {}

    def _of(self, connection: Connection) -> "_Compiled":
        """Return the compiled statement for the driver of this connection."""
        driver = driver_of(connection)
        found = self._compiled.get(driver)
        if found is None:
            found = self._compiled[driver] = _Compiled(self._build(driver), connection)
        return found

    def rows(self, connection: Connection, values: Values) -> list[Any]:
        """Return all rows as named tuples; none of a statement that returns none, which a server may execute with the next one.

        ``values`` are the bound values by name.
        """
        return self._of(connection).rows(connection, values)

    def ask(self, connection: Connection, values: Values) -> Answer:
        """Send the query, and let a server answer later, together with the next statements; call the returned answer for the rows."""
        compiled = self._of(connection)
        given = compiled.bound(values)
        answer = send(connection, compiled.text, given, **compiled.options)
        if answer is None:
            rows = [*map(compiled.make, fetch(connection, compiled.text, given, **compiled.options))]
            return lambda: rows
        return lambda: [*map(compiled.make, answer())]

    def answer(self, connection: Connection, values: Values, make: Callable[[list[Any]], T]) -> Callable[[], T]:
        """Send the query as :meth:`ask` does; the returned function returns what ``make`` makes of the rows."""
        asked = self.ask(connection, values)
        return lambda: make(asked())

    def first(self, connection: Connection, values: Values) -> Any | None:
        """Return the first row, None if there is none."""
        found = self.rows(connection, values)
        return found[0] if found else None


class _Compiled:
    """A statement for one driver.

    Attributes:
        text: its SQL.
        options: of the DBAPI's cursor.
        make: makes a named tuple of a row.
    """

    def __init__(self, statement: Any, connection: Connection) -> None:
        dialect = connection.dialect
        compiled: Any = statement.compile(dialect=dialect)
        self.text, self.options = str(compiled), driver_of(connection).hot_options
        self.make = row_maker(statement, dialect)
        self._is_write = isinstance(statement, UpdateBase) and not statement._returning
        processors = {
            name: bound.type.dialect_impl(dialect).bind_processor(dialect)
            for bound, name in compiled.bind_names.items()
        }
        self._processors = {name: process for name, process in processors.items() if process is not None}
        self._constants = {name: value for name, value in compiled.params.items() if not compiled.binds[name].required}
        self._names: list[str] | None = None if compiled.positiontup is None else list(compiled.positiontup)

    def rows(self, connection: Connection, values: Values) -> list[Any]:
        """Return all rows, as :meth:`Prepared.rows` does."""
        given = self.bound(values)
        if self._is_write and send(connection, self.text, given, is_awaited=False, **self.options) is not None:
            return []
        return [*map(self.make, fetch(connection, self.text, given, **self.options))]

    def bound(self, values: Values) -> Any:
        """Return these values as the statement's parameters."""
        bound = {**self._constants, **values}
        for name, process in self._processors.items():
            bound[name] = process(bound[name])
        return bound if self._names is None else tuple([bound[name] for name in self._names])


def row_maker(statement: Any, dialect: Dialect) -> Callable[[Sequence[Any]], Any]:
    """Return a function that makes named tuples of a query's rows, of the types that the columns declare."""
    if not isinstance(statement, Select):
        return tuple
    columns = list(statement.selected_columns)
    kind: Any = namedtuple("Row", [str(each.key) for each in columns], rename=True)  # type: ignore[misc]  # noqa: PYI024 - the query's names
    processors = [each.type.dialect_impl(dialect).result_processor(dialect, None) for each in columns]
    # What ``_make`` does, without a call of Python and a check of the length.
    make = partial(tuple.__new__, kind)
    if not any(processors):
        return make
    return lambda row: make(
        [value if process is None else process(value) for value, process in zip(row, processors, strict=True)]
    )


def _is_sent_by_sqlalchemy(connection: Connection) -> bool:
    """Whether SQLAlchemy has to send the statements of a connection: listeners hear of them, and may replace them, or it is a caller's."""
    listeners = connection.engine.dispatch
    are_heard = bool(listeners.before_cursor_execute or listeners.after_cursor_execute)
    return are_heard or OPTION not in connection.get_execution_options()


def fetch(connection: Connection, statement: str, values: Any, **options: Any) -> Sequence[Any]:
    """Return all rows of a statement in the DBAPI's own parameter style, as tuples; ``options`` are its cursor's."""
    if _is_sent_by_sqlalchemy(connection):
        result = connection.exec_driver_sql(statement, values)
        return result.all() if result.returns_rows else []
    counted["statements"] += 1
    # To make a cursor of psycopg for each statement costs as much as to send the statement.
    kept = connection.info
    cursor = kept.pop(_CURSOR, None)  # another reader of the connection may send a statement meanwhile
    if cursor is None:
        raw: Any = connection.connection.dbapi_connection
        cursor = raw.cursor()
    try:
        cursor.execute(statement, values, **options)
        rows: Sequence[Any] = cursor.fetchall()
    except Exception as error:
        cursor.close()
        raise _explained(connection, statement, values, error) from error
    kept[_CURSOR] = cursor
    return rows


def keeps(connection: Connection) -> bool:
    """Whether statements of this connection can be kept and sent together; not those of a platform's own."""
    return hasattr(connection.connection.dbapi_connection, "send")


def send(
    connection: Connection, statement: str, values: Any = None, *, is_awaited: bool = True, **options: Any
) -> Callable[[], Sequence[Any]] | None:
    """Send a statement with the next one that is waited for; None if this connection cannot, and nothing was sent.

    Args:
        is_awaited: the result is read, by calling what is returned. Otherwise an error of the statement is raised by what is waited
            for next, the commit at the latest.
    """
    raw: Any = connection.connection.dbapi_connection
    if not hasattr(raw, "send") or _is_sent_by_sqlalchemy(connection):
        return None
    counted["statements"] += 1
    try:
        cursor = raw.send(statement, values, is_awaited=is_awaited, **options)
    except Exception as error:
        raise _explained(connection, statement, values, error) from error

    known: list[Sequence[Any]] = []

    def read_rows() -> Sequence[Any]:
        """Return the rows of the sent query; the first call waits for them."""
        if not known:
            try:
                if cursor.pgresult is None:
                    raw.flush()
                known.append(cursor.fetchall())
            except Exception as error:
                raise _explained(connection, statement, values, error) from error
            raw.reuse(cursor)
        return known[0]

    return read_rows


def later(connection: Connection, statement: str) -> int:
    """Execute a statement whose rows are not needed, at the latest with the next one that is waited for; return :func:`sent`."""
    if send(connection, statement, is_awaited=False) is None:
        connection.exec_driver_sql(statement)
    return sent(connection)


def write(connection: Connection, statement: UpdateBase) -> None:
    """Execute an UPDATE or DELETE of which nothing is asked; a server does so with the next statement that is waited for."""
    compiled = _Compiled(statement, connection) if keeps(connection) else None
    if compiled is None or "__[POSTCOMPILE_" in compiled.text:  # the text of lists depends on their lengths
        connection.execute(statement)
    else:
        compiled.rows(connection, {})


def sent(connection: Connection) -> int:
    """Return the number of statements that this connection has kept so far, those that were sent included."""
    return int(getattr(connection.connection.dbapi_connection, "sent", 0))


def flush(connection: Connection) -> None:
    """Send the statements that wait; raise the error of one that failed."""
    raw: Any = connection.connection.dbapi_connection
    if getattr(raw, "pending", 0):
        try:
            raw.flush()
        except Exception as error:
            raise _explained(connection, "", (), error) from error


def last(connection: Connection) -> None:
    """Declare that the next statement of this read that is waited for is its last one: a server then ends the transaction with it."""
    raw: Any = connection.connection.dbapi_connection
    if hasattr(raw, "is_last"):
        raw.is_last = True


def mark(connection: Connection, of: object) -> object:
    """Set the owner of the statements that are sent from now on, for :func:`mark_of`; return the owner of those before."""
    if connection.invalidated:
        return None  # its error is on the way
    raw: Any = connection.connection.dbapi_connection
    before: object = getattr(raw, "mark", None)
    if hasattr(raw, "mark"):
        raw.mark = of
    return before


def mark_of(error: BaseException | None) -> Any:
    """Return the mark of the statement that failed; None if it is not known, or was waited for at once."""
    while error is not None:
        found = getattr(getattr(error, "orig", error), "mark", None)
        if found is not None:
            return found
        error = error.__cause__
    return None


def _explained(connection: Connection, statement: str, values: Any, error: Exception) -> BaseException:
    """Return SQLAlchemy's exception for an error of the DBAPI; a lost connection leaves the pool.

    Raises:
        Exception: the error itself if it is not the DBAPI's; as its own cause it would have no end.
    """
    dialect = connection.dialect
    dbapi: Any = dialect.dbapi
    if not isinstance(error, dbapi.Error):
        raise error
    lost = dialect.is_disconnect(error, connection.connection.driver_connection, None)
    found: BaseException = DBAPIError.instance(
        statement,
        values,
        error,
        dbapi.Error,
        connection_invalidated=lost,
        dialect=dialect,
        ismulti=isinstance(values, list),
    )
    if lost:
        connection.invalidate(error)
    return found
