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

from lodger.engine.store.drivers import Driver, PerDriver, driver_of

T = TypeVar("T")
Values = Mapping[str, Any]
#: Returns the rows of a query that was asked, and waits for them if they have not come.
Answer = Callable[[], list[Any]]
#: Number of ``statements`` that this process has sent past SQLAlchemy, for measurements.
counted: Counter[str] = Counter()
_CURSOR = "lodger_cursor"


class Prepared:
    """A statement that is compiled on first use.

    Args:
        build: builds it for a driver. Bound lists need :meth:`lodger.engine.store.drivers.Driver.among`: the text is the
            same for lists of any length.
    """

    def __init__(self, build: Callable[[Driver], Select[Any] | UpdateBase]) -> None:
        self._compiled: PerDriver[CompiledOnce] = PerDriver(lambda driver: CompiledOnce(build(driver)))

    def rows(self, connection: Connection, values: Values) -> list[Any]:
        """Return all rows as named tuples; ``values`` are the bound values by name."""
        return self._compiled.of(connection).rows(connection, values)

    def ask(self, connection: Connection, values: Values) -> Answer:
        """Send the query, and let a server answer later, together with the next statements; call the returned answer for the rows."""
        return self._compiled.of(connection).ask(connection, values)

    def answer(self, connection: Connection, values: Values, make: Callable[[list[Any]], T]) -> Callable[[], T]:
        """Send the query as :meth:`ask` does; the returned function returns what ``make`` makes of the rows."""
        asked = self.ask(connection, values)
        return lambda: make(asked())

    def run(self, connection: Connection, values: Values) -> None:
        """Execute a statement without rows; a server does so with the next one that is waited for."""
        self._compiled.of(connection).rows(connection, values)

    def first(self, connection: Connection, values: Values) -> Any | None:
        """Return the first row, None if there is none."""
        found = self.rows(connection, values)
        return found[0] if found else None


class CompiledOnce:
    """A statement for one driver, compiled on first use."""

    def __init__(self, statement: Any) -> None:
        self._statement = statement
        self._text = ""
        self._names: list[str] | None = None
        self._options: Mapping[str, Any] = {}
        self._constants: dict[str, Any] = {}
        self._processors: dict[str, Callable[[Any], Any]] = {}
        self._make: Callable[[Sequence[Any]], Any] = tuple
        self._is_write = isinstance(statement, UpdateBase) and not statement._returning

    def _compile(self, connection: Connection) -> None:
        """Compile the statement for the dialect of a connection."""
        dialect = connection.dialect
        self._options = driver_of(connection).hot_options
        compiled: Any = self._statement.compile(dialect=dialect)
        for bound, name in compiled.bind_names.items():
            processor = bound.type.dialect_impl(dialect).bind_processor(dialect)
            if processor is not None:
                self._processors[name] = processor
        self._constants = {name: value for name, value in compiled.params.items() if not compiled.binds[name].required}
        self._names = None if compiled.positiontup is None else list(compiled.positiontup)
        self._make = row_maker(self._statement, dialect)
        self._text = str(compiled)

    def has_lists(self, connection: Connection) -> bool:
        """Whether values are lists of any length, whose text is made anew each time."""
        self._compile(connection)
        return "__[POSTCOMPILE_" in self._text

    def rows(self, connection: Connection, values: Values) -> list[Any]:
        """Return all rows as named tuples; none of a statement that returns none, which a server may execute later."""
        text, given = self._bound(connection, values)
        if self._is_write and send(connection, text, given, is_awaited=False, **self._options) is not None:
            return []
        return [*map(self._make, fetch(connection, text, given, **self._options))]

    def ask(self, connection: Connection, values: Values) -> Answer:
        """Return the answer of :meth:`rows`, which a server may give later."""
        text, given = self._bound(connection, values)
        answer = send(connection, text, given, **self._options)
        if answer is None:
            rows = [*map(self._make, fetch(connection, text, given, **self._options))]
            return lambda: rows
        return lambda: [*map(self._make, answer())]

    def _bound(self, connection: Connection, values: Values) -> tuple[str, Any]:
        """Return the SQL text of a statement, and these values as its parameters."""
        if not self._text:
            self._compile(connection)
        bound = {**self._constants, **values}
        for name, process in self._processors.items():
            bound[name] = process(bound[name])
        return self._text, bound if self._names is None else tuple([bound[name] for name in self._names])


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


def _is_listened_to(connection: Connection) -> bool:
    """Whether SQLAlchemy has to send the statements of a connection, because listeners hear of them, and may replace them."""
    listeners = connection.engine.dispatch
    return bool(listeners.before_cursor_execute or listeners.after_cursor_execute)


def fetch(connection: Connection, statement: str, values: Any, **options: Any) -> Sequence[Any]:
    """Return all rows of a statement in the DBAPI's own parameter style, as tuples; ``options`` are its cursor's."""
    if _is_listened_to(connection):
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


class ForeignCursor:
    """Stands for the kept cursor of a connection that is not one of Lodger's: SQLAlchemy sends the statements."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._rows: Sequence[Any] = ()
        connection.info[_CURSOR] = self

    def execute(self, statement: str, values: Any, **_options: Any) -> None:
        """Run a statement."""
        result = self._connection.exec_driver_sql(statement, values)
        self._rows = result.all() if result.returns_rows else ()

    def fetchall(self) -> Sequence[Any]:
        """Return the rows, none of a statement that returns none."""
        return self._rows

    def close(self) -> None:
        """Do nothing: the cursor keeps nothing."""


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
    if not hasattr(raw, "send") or _is_listened_to(connection):
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
    compiled = CompiledOnce(statement)
    if compiled.has_lists(connection):
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


def run_each(connection: Connection, statement: str, rows: Sequence[Any]) -> None:
    """Run a statement in the DBAPI's own parameter style for each of these tuples."""
    if _is_listened_to(connection):
        connection.exec_driver_sql(statement, list(rows))
        return
    counted["statements"] += 1
    raw: Any = connection.connection.dbapi_connection
    cursor = raw.cursor()
    try:
        cursor.executemany(statement, rows)
    except Exception as error:
        raise _explained(connection, statement, rows, error) from error
    finally:
        cursor.close()


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
