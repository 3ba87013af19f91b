"""The driver of PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError
from sqlalchemy.sql.compiler import IdentifierPreparer

from lodger.engine.core.errors import Unavailable
from lodger.engine.store.drivers import Driver, features, prepared
from lodger.engine.store.drivers.postgresql import backup, commits, connections, guards, server_settings, triggers
from lodger.engine.store.drivers.postgresql.json_path import PostgresJsonPath
from lodger.engine.store.drivers.postgresql.row_security import NAMES, RowSecurity
from lodger.engine.store.drivers.postgresql.rows import Array, Over
from lodger.engine.store.drivers.sql_files import clauses_of

#: SQLSTATEs (PostgreSQL's manual, appendix A).
_QUERY_CANCELED, _OUT_OF_RANGE = "57014", "22003"
#: Statements on the platform's tables are planned as the platform has set it: they do not outlive the size of their tables, as
#: prepared ones do, and an index that gives only the order costs far more than a whole table.
_PLANNED_NOW = tuple(f"SET LOCAL {name} TO DEFAULT" for name in connections.SCANS)
#: Time-outs of a statement, and of a transaction between two statements.
_TIME_LIMITS = ("statement_timeout", "idle_in_transaction_session_timeout")
#: Collations in which only identical texts are equal.
_EXACT = frozenset({"C", "POSIX", "BINARY", "UCS_BASIC", "C.UTF-8", "C.UTF8", "PG_C_UTF8"})
#: Limits of a transaction on the platform's database: wait for a row lock, and duration of a statement.
_PLATFORM_READ = ("SET LOCAL timezone = 'UTC'", "SET LOCAL jit = off", *_PLANNED_NOW)
_PLATFORM_WRITE = ("SET LOCAL lock_timeout = 5000", "SET LOCAL statement_timeout = 30000", *_PLATFORM_READ)
_SQL = clauses_of(__file__)
_XMIN: Any = sa.literal_column(_SQL["oldest_transaction"].text)


class PostgresDriver(Driver):
    """PostgreSQL, as the ledger's database and as the platform's."""

    name: ClassVar[str] = "postgresql"
    aliases: ClassVar[tuple[str, ...]] = ("postgres",)
    is_remote: ClassVar[bool] = True
    has_row_locks: ClassVar[bool] = True
    has_zones: ClassVar[bool] = True
    # Planning a statement took twice as long as executing it.
    hot_options: ClassVar[Mapping[str, Any]] = {"prepare": True}
    backup_begins: ClassVar[bytes] = b"PGDMP"
    sql: ClassVar[Mapping[str, sa.TextClause]] = _SQL
    #: Of a read-only snapshot that never waits.
    read_options: ClassVar[Mapping[str, Any]] = connections.READ
    identifiers: ClassVar[IdentifierPreparer] = NAMES
    transaction_number_sql: ClassVar[str] = "(pg_current_xact_id()::text)::bigint"
    #: Without precision, which would round.
    decimal_type: ClassVar[Any] = sa.Numeric()

    # Connections

    def ledger_url(self, url: sa.URL) -> sa.URL:
        """Return the URL with the driver psycopg, whichever the address names: a platform's own may name asyncpg, whose ``ssl`` is
        ``sslmode``."""
        from psycopg.pq import Conninfo

        if url.drivername.endswith("+asyncpg") and "ssl" in url.query:
            url = url.update_query_dict({"sslmode": url.query["ssl"]}).difference_update_query(["ssl"])
        unknown = sorted(set(url.query) - {each.keyword.decode() for each in Conninfo.get_defaults()})
        if unknown:
            raise ArgumentError(f"PostgreSQL's client has no option {', '.join(unknown)}")
        return url.set(drivername=connections.DRIVER).update_query_dict({"client_encoding": "utf8"})

    def open(self, url: sa.URL, *, synchronous: str, patience_s: float) -> sa.Engine:
        """Return a connection pool with the watchdog for silent servers."""
        return connections.open_pool(url, patience_s, self.options)

    def open_platform(self, url: sa.URL) -> sa.Engine:
        """Return a connection pool with psycopg, or a plain SQLAlchemy pool with any other DBAPI."""
        if url.drivername in (self.name, *self.aliases, f"{self.name}+asyncpg", f"{self.name}+psycopg_async"):
            url = self.ledger_url(url)
        options = self.options
        if url.drivername == connections.DRIVER:
            return connections.open_pool(url, options=options)
        return sa.create_engine(url, hide_parameters=True, execution_options=options)

    def platform_options(self, *, write: bool) -> Mapping[str, Any]:
        """Return the execution options: READ COMMITTED for writes, because under REPEATABLE READ it fails to lock a row that was
        changed meanwhile."""
        return {"isolation_level": "READ COMMITTED"} if write else connections.READ

    def read_together(self, connection: sa.Connection, works: Sequence[Callable[[], Any]]) -> list[Callable[[], Any]]:
        """Run functions that read; statements for which they wait at the same time are sent together."""
        if not prepared.keeps(connection):
            return super().read_together(connection, works)
        raw: Any = connection.connection.dbapi_connection
        answers: list[Callable[[], Any]] = raw.read_together(works)
        return answers

    def begin_platform(self, connection: sa.Connection, *, write: bool) -> None:
        """Set the time limits of a transaction that begins on a platform's pool."""
        for each in _PLATFORM_WRITE if write else _PLATFORM_READ:
            prepared.later(connection, each)

    def prepare_upgrade(self, connection: sa.Connection) -> None:
        """Lock the schema; refuse a database that cannot store all of Unicode."""
        connections.prepare_upgrade(connection)
        self.allow_scans(connection)  # migrations rewrite whole tables

    def table_statements(self, tables: Sequence[sa.Table]) -> Iterator[str]:
        """Return triggers, the scripts' role and its policies."""
        return guards.statements(tables)

    def allow_scans(self, connection: sa.Connection) -> None:
        """Let the planner choose as the server is configured, so that statements of this transaction may read whole tables."""
        for each in _PLANNED_NOW:
            prepared.later(connection, each)

    def explain(self, error: DBAPIError, place: str) -> Unavailable | None:
        """Return the error with a fix for an error of the database that concerns the host, by its SQLSTATE; None for another."""
        return connections.explain(error, place)

    def is_transaction_lost(self, connection: sa.Connection) -> bool:
        """Return False: an error of PostgreSQL never ends the transaction silently."""
        return False

    def server_watcher(
        self, url: sa.URL, patience_s: float, nodes: sa.Table, heartbeat: Collection[str]
    ) -> commits.ServerWatcher | None:
        """Return a watcher of the server's snapshots."""
        return commits.ServerWatcher(partial(connections.connect, url, patience_s), nodes, heartbeat)

    def notify(self, connection: sa.Connection, channel: str) -> None:
        """Notify subscribers of a channel by NOTIFY when the transaction commits."""
        connection.exec_driver_sql(f"NOTIFY {channel}")

    def notifications(self, url: sa.URL | str, channel: str, patience_s: float) -> Generator[bool]:
        """Connect and listen to a channel by LISTEN."""
        return commits.notifications(connections.connect(url, patience_s), channel)

    def waiting_sessions(self, connection: sa.Connection) -> list[tuple[features.Session, float, tuple[int, ...]]]:
        """Return the waiting sessions and their blockers, from pg_stat_activity and pg_locks."""
        return [
            (
                features.Session(row.pid, row.application, row.state, row.transaction_s, row.query),
                row.waited_s,
                tuple(row.blockers),
            )
            for row in connection.execute(_SQL["sessions"])
        ]

    def check_settings(self, connection: sa.Connection) -> list[features.Check]:
        """Check durability, read-only standbys and the room for connections."""
        return server_settings.check(connection)

    # Backup

    def backup(self, url: sa.URL, target: Path) -> None:
        """Write a copy of the database to a file by pg_dump."""
        backup.dump(url, target)

    def restore(self, url: sa.URL, source: Path) -> None:
        """Load a file of pg_dump into a database by pg_restore."""
        backup.load(url, source)

    def integrity(self, connection: sa.Connection) -> list[str]:
        """Return indexes and constraints of Lodger's tables that the server knows to be incomplete."""
        return list(connection.scalars(_SQL["incomplete"]))

    def timeline(self, connection: sa.Connection) -> str:
        """Return the server's system identifier and timeline; empty where the server is managed and does not show them."""
        try:
            with connection.begin_nested():
                return str(connection.scalar(_SQL["timeline"]))
        except DBAPIError:
            return ""

    # Statements on many rows

    def insert(self, table: sa.Table) -> Any:
        """Return PostgreSQL's INSERT."""
        return postgresql.insert(table)

    def row_statement(
        self, types: Mapping[str, sa.ColumnElement[Any]], over: Callable[[Any], Any]
    ) -> features.RowStatement:
        """Compile a statement about many rows: over arrays, a column's values each."""
        return Over(types, over)

    def look_up(self, given: Any, wanted: sa.Select[Any], *conditions: sa.ColumnElement[bool]) -> sa.Select[Any]:
        """Return a query that looks up each row by key, behind OFFSET 0: so the planner uses the key whatever its statistics are."""
        found = wanted.where(*conditions).correlate(given).offset(sa.literal_column("0")).lateral("found")
        return sa.select(*found.c, *given.c).select_from(given.join(found, sa.true()))

    def among(self, column: sa.ColumnElement[Any], name: str) -> sa.ColumnElement[bool]:
        """Return the condition that a column is in an array: planning a list of five hundred values takes longer than the query
        itself."""
        values = sa.cast(sa.bindparam(name, type_=Array()), sa.ARRAY(column.type))
        # The outer cast tells PostgreSQL that the query returns one array, and not elements.
        found: sa.ColumnElement[bool] = column == sa.any_(
            sa.cast(sa.select(values).scalar_subquery(), sa.ARRAY(column.type))
        )
        return found

    def hand_on(self, statement: sa.Select[Any], column: str, name: str) -> sa.Select[Any]:
        """Return the query extended so that it also keeps the column's values in a setting of the transaction, for :meth:`handed`."""
        found = statement.cte("found")
        values = sa.func.coalesce(
            sa.cast(sa.select(sa.func.array_agg(found.c[column])).scalar_subquery(), sa.Text), sa.literal_column("'{}'")
        )
        kept = sa.func.set_config(sa.literal_column(f"'lodger.{name}'"), values, sa.true())
        return sa.select(*found.c, sa.select(kept).scalar_subquery().label("kept"))

    def handed(self, name: str, kind: Any) -> sa.ColumnElement[Any]:
        """Return the values that :meth:`hand_on` has kept as an array; an empty one if the query has found nothing."""
        setting = sa.func.nullif(
            sa.func.current_setting(sa.literal_column(f"'lodger.{name}'"), sa.true()), sa.literal_column("''")
        )
        values = sa.cast(sa.func.coalesce(setting, sa.literal_column("'{}'")), sa.ARRAY(kind))
        # In a query of its own it is read once.
        return sa.cast(sa.select(values).scalar_subquery(), sa.ARRAY(kind))

    # Expressions

    def execute_text(self, connection: sa.Connection, statement: str) -> None:
        """Execute a statement exactly as written: percent signs, which the DBAPI takes for marks of parameters, are doubled."""
        formatted = connection.dialect.paramstyle in ("format", "pyformat")
        connection.exec_driver_sql(statement.replace("%", "%%") if formatted else statement)

    def bytewise_sql(self, text: str) -> str:
        """Return SQL that compares a text by code points: cast and collated, because the column may be ``citext`` or have its own
        collation."""
        return f'(CAST({text} AS TEXT) COLLATE "C")'

    def now_us(self) -> sa.ColumnElement[int]:
        """Return the server's clock at the statement, not at the transaction, which may have begun long before it got its locks."""
        return sa.literal_column(_SQL["now_us"].text, type_=sa.BigInteger())

    def byte_length(self, column: sa.ColumnElement[Any]) -> sa.ColumnElement[int]:
        """Return ``octet_length``."""
        return sa.func.octet_length(column)

    def position(self, text: sa.ColumnElement[Any], part: sa.ColumnElement[Any]) -> sa.ColumnElement[int]:
        """Return ``strpos``."""
        return sa.func.strpos(text, part)

    def ascii_lower(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[str]:
        """Return ``lower`` under the collation C, which knows ASCII only."""
        return sa.func.lower(sa.collate(text, "C"))

    def json_path(self, body: sa.ColumnElement[Any], parts: Sequence[str], tag: str) -> features.JsonPath:
        """Return a path in jsonb."""
        return PostgresJsonPath(body, parts, tag)

    def json_number(self, value: float) -> sa.ColumnElement[Any]:
        """Return a number as a double, for comparison with values of JSON."""
        return sa.literal(float(value), sa.Double())

    def integer_type(self, column: sa.Column[Any]) -> Any:
        """Return BIGINT: a value beyond the column's range is not an error of the query, it equals no row."""
        return sa.BigInteger()

    def extreme(self, column: sa.ColumnElement[Any], *, is_uuid: bool) -> sa.ColumnElement[Any]:
        """Return the text, which sorts alike, or the integer: PostgreSQL has no min and max of UUIDs and booleans."""
        return sa.collate(sa.cast(column, sa.Text()), "C") if is_uuid else sa.cast(column, sa.Integer())

    # Reads and writes of tenants' rows

    def rows_up_to(
        self,
        connection: sa.Connection,
        statement: sa.Select[Any],
        weighed: Sequence[int],
        max_bytes: int,
        min_rows: int,
    ) -> tuple[list[Any], bool]:
        """Return the first rows up to a size, which the statement adds up: a server-side cursor would need three round trips instead
        of one."""
        some = statement.subquery("some")
        wanted = list(some.c)
        bytes_ = reduce(
            add, (sa.func.coalesce(sa.func.octet_length(_plain(wanted[place])), 0) for place in weighed), sa.literal(0)
        )
        weights = sa.select(*wanted, bytes_.label("lodger_bytes")).subquery("weights")
        upto = sa.func.sum(weights.c.lodger_bytes).over(rows=(None, 0))
        before, number, of = upto - weights.c.lodger_bytes, sa.func.row_number().over(), sa.func.count().over()
        extra = (before.label("lodger_before"), number.label("lodger_n"), of.label("lodger_of"))
        summed = sa.select(*list(weights.c)[: len(wanted)], *extra).subquery("summed")
        kept = sa.or_(summed.c.lodger_n <= min_rows, summed.c.lodger_before < max_bytes)
        asked = (*list(summed.c)[: len(wanted)], summed.c.lodger_of)
        found = list(connection.execute(sa.select(*asked).where(kept).order_by(summed.c.lodger_n)))
        return found, bool(found) and found[0][-1] > len(found)

    @contextmanager
    def time_limit(
        self,
        connection: sa.Connection,
        seconds: float,
        elapsed_s: Callable[[], float],
        *,
        scans: bool = False,
    ) -> Iterator[None]:
        """Limit the duration of a block by the server's time-outs, which get shorter as time passes and end with the transaction."""
        end, allowed = elapsed_s() + seconds, seconds

        def shorten_limit(connection: sa.Connection, *_statement: object) -> None:
            """Lower the server's time limit to the time that is left, before a statement."""
            nonlocal allowed
            left = end - elapsed_s()
            if left <= 0:
                raise features.StatementTimeout
            if left < allowed - seconds / 10:
                allowed = left
                set_limit(allowed)

        def set_limit(seconds: float) -> None:
            """Set the server's time limits of statements from the next one on."""
            for each in _TIME_LIMITS:
                prepared.later(connection, f"SET LOCAL {each} = {max(1, int(seconds * 1000))}")

        set_limit(seconds)
        if scans:
            self.allow_scans(connection)
        sa.event.listen(connection, "before_cursor_execute", shorten_limit)
        try:
            yield
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) == _QUERY_CANCELED:
                raise features.StatementTimeout from error
            raise
        finally:
            sa.event.remove(connection, "before_cursor_execute", shorten_limit)

    def query_refusal(self, error: DBAPIError) -> features.QueryRefusal | None:
        """Return why a query was refused, by the error's SQLSTATE; an error without one is the DBAPI's about a value."""
        if not isinstance(error, DataError):
            return None
        state = getattr(error.orig, "sqlstate", None)
        if state is None:
            return features.QueryRefusal.UNREADABLE
        return features.QueryRefusal.OUT_OF_RANGE if state == _OUT_OF_RANGE else features.QueryRefusal.INCOMPARABLE

    @contextmanager
    def short_waits(self, connection: sa.Connection, lock_ms: int, statement_ms: int) -> Iterator[None]:
        """Set the time limits for locks and statements during the block."""
        before = connection.execute(_SQL["limits"]).one()
        self._limit_waits(connection, f"{lock_ms}ms", f"{statement_ms}ms")
        yield  # after an exception the caller's savepoint restores the settings
        self._limit_waits(connection, *before)

    @staticmethod
    def _limit_waits(connection: sa.Connection, lock: str, statement: str) -> None:
        """Set the time limits for locks and statements of the present transaction, such as ``5s``."""
        for name, value in (("lock_timeout", lock), ("statement_timeout", statement)):
            prepared.later(connection, f"SET LOCAL {name} = '{value}'")

    def check_constraints(self, connection: sa.Connection) -> None:
        """Check deferred constraints now, inside a block that is rolled back, so that they are deferred again as their tables declare.

        Not by ROLLBACK, after which psycopg deallocates every prepared statement.
        """
        connection.exec_driver_sql(_SQL["check_constraints"].text)

    def take_numbers(self, connection: sa.Connection, table: sa.Table, column: str, many: int) -> list[int] | None:
        """Take values from the column's sequence; None for ``GENERATED ALWAYS``, which accepts no values."""
        named = NAMES.format_table(table)
        found = connection.execute(_SQL["sequence"], {"table": named, "column": column}).first()
        if found is None or found[0] is None or found[1] == "a":
            return None
        return list(connection.scalars(_SQL["next_numbers"], {"sequence": found[0], "many": many}))

    def table_name(self, table: sa.Table) -> str:
        """Return the name of a table, with its schema and quoted."""
        return NAMES.format_table(table)

    def exclusions(self, table: sa.Table) -> list[features.ExclusionRule]:
        """Return PostgreSQL's EXCLUDE constraints."""
        return [
            features.ExclusionRule(
                str(each.name or ""),
                tuple(each.columns),
                frozenset(column for column in each.columns if each.operators[column.name] == "="),
            )
            for each in table.constraints
            if isinstance(each, postgresql.ExcludeConstraint)
        ]

    def is_loose(self, kind: Any) -> bool:
        """Return True for ``citext`` and for collations that are not known to be exact."""
        collation = getattr(kind, "collation", None)
        return isinstance(kind, postgresql.CITEXT) or (collation or "C").upper() not in _EXACT

    # The change feed

    def is_final(self, transaction: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
        """Return the condition that a transaction is older than the oldest unfinished one."""
        found: sa.ColumnElement[bool] = transaction < _XMIN
        return found

    def next_transaction(self, connection: sa.Connection) -> int | None:
        """Return the first transaction number that the present snapshot does not see."""
        return int(connection.scalar(_SQL["next_transaction"]) or 0)

    def oldest_writer(self, connection: sa.Connection) -> tuple[int, int] | None:
        """Return the oldest writing transaction, from pg_stat_activity."""
        found = connection.execute(_SQL["oldest_writer"]).first()
        return None if found is None else (found[0], found[1])

    def begin_attribution(self, connection: sa.Connection, consumer: str | None) -> int | None:
        """Store the consumer of changes in a setting that the triggers read."""
        connection.execute(_SQL["attribute"], {"consumer": consumer or ""})
        return None

    def trigger_statements(
        self, watched: features.WatchedTable, security: RowSecurity | None, *, wanted: bool
    ) -> list[str]:
        """Return a trigger for each kind of statement."""
        assert security is not None
        return triggers.statements(NAMES, watched, security.schema, wanted=wanted)

    def row_security(self, connection: sa.Connection) -> RowSecurity | None:
        """Return the row security of the connection's user, found out once for each pool of connections."""
        found = _SECURITY.get(connection.dialect)
        if found is None:
            found = _SECURITY[connection.dialect] = RowSecurity.of(connection)
        return found


#: By the dialect, of which each pool has its own.
_SECURITY: WeakKeyDictionary[sa.Dialect, RowSecurity] = WeakKeyDictionary()


def _plain(column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """Return a column as bytes or text, whose length can be measured."""
    return column if isinstance(column.type, sa.LargeBinary) else sa.cast(column, sa.Text())


DRIVER = PostgresDriver()
