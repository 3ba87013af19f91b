"""Opens the ledger's database and provides write transactions and read snapshots.

Callers use SQLAlchemy Core; differences between databases are the driver's (:mod:`lodger.engine.store.drivers`). How
writers wait for each other is described in :mod:`lodger.engine.store.queue.ready_queue`.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar
from weakref import WeakSet

from sqlalchemy import Connection, Engine, event, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry

from lodger.engine.core import error_table
from lodger.engine.core.clock import SystemClock
from lodger.engine.core.context_values import holding
from lodger.engine.core.errors import InputError, Unavailable
from lodger.engine.store.connection.notify import Hints
from lodger.engine.store.drivers import Driver, addresses, driver_of, patience
from lodger.engine.store.drivers.addresses import mask_password
from lodger.engine.store.drivers.features import CommitWatcher
from lodger.engine.store.drivers.postgresql.commits import ServerWatcher
from lodger.engine.store.migrations.revision import Progress, current, head, ignore_progress, require_usable
from lodger.engine.store.schema.nodes import HEARTBEAT, ledger, nodes

#: Codes of errors by which a database that answers refuses every write.
REFUSING = frozenset({"disk_full", "database_read_only"})
_from_replica: ContextVar[bool] = ContextVar("from_replica", default=False)
#: The snapshot of this context: its database, its connection, and the thread that uses it.
_snapshot: ContextVar["tuple[Database, Connection, int] | None"] = ContextVar("snapshot", default=None)

T = TypeVar("T")


def reads_from_replica() -> AbstractContextManager[None]:
    """Let reads of this context use the replica, if the database has one: for callers that accept a state of moments ago."""
    return holding(_from_replica, True)


def read_together(*works: Callable[[], Any], connection: Connection | None = None) -> list[Any]:
    """Return the results of functions that only read; a server is asked by all of them at once.

    Args:
        connection: the one by which all of them read; None for that of :meth:`Database.snapshot`, without which one reads after the other.
    """
    found = _snapshot.get()
    if connection is None and found is not None and found[2] == threading.get_ident():
        connection = found[1]
    if connection is None or len(works) < 2:
        return [work() for work in works]
    return [answer() for answer in driver_of(connection).read_together(connection, works)]


#: The databases of this process: a forked child must not use their connections.
_open: WeakSet["Database"] = WeakSet()


def _forked() -> None:
    """Make the databases of a forked process open connections of their own."""
    for each in list(_open):
        each._reopen()


os.register_at_fork(after_in_child=_forked)


class Database:
    """The open ledger.

    Args:
        url: ``sqlite:///path``, ``postgresql://…`` or the path of a SQLite file. ``:memory:`` is refused, because a
            second connection would open another database.
        synchronous: on SQLite, FULL survives a power failure and NORMAL a killed process.
        patience_s: maximum time to wait for an answer of the server; PostgreSQL only.
        progress: called before each migration.
        replica: address of a replica for reads inside :func:`reads_from_replica`; None for this database.
        name: name of the ledger in the file of ``LODGER_LEDGERS``: a ledger keeps the one under which it was first opened.
        deferred: check the database at its first use, at which it must have a ledger.
        upgrade: bring an older schema to this version's; an empty database is always set up.

    Raises:
        Unavailable: not_a_database, database_unreadable, database_read_only, disk_full, database_behind, database_newer,
            database_in_use, database_busy, ledger_other (also of a replica, here or by a read); of a server also
            database_unreachable, database_login_refused, database_encoding.
        InputError: database_url.
    """

    def __init__(
        self,
        url: str,
        *,
        synchronous: str = "FULL",
        progress: Progress = ignore_progress,
        patience_s: float = patience.PATIENCE_S,
        upgrade: bool = False,
        replica: str | None = None,
        name: str | None = None,
        deferred: bool = False,
    ) -> None:
        error_table.load()
        self.driver, self.url = addresses.ledger_url(url)
        self.hints = Hints()
        self._closed = False
        self._patience_s = patience_s
        #: Number of write transactions that have ended in this process.
        self.written = 0
        #: Number of reads that have ended in this process.
        self.read_count = 0
        #: The error by which the last write was refused: the disk is full, or the database read-only.
        self.refused: Unavailable | None = None
        #: Whether this object has created the ledger: there was none.
        self.created = False
        self._counting, self._checking = threading.Lock(), threading.Lock()
        self._checked, self._deferred, self._name = False, deferred, name
        self.engine = self.driver.open(self.url, synchronous=synchronous, patience_s=patience_s)
        event.listen(self.engine, "checkin", self._returned)
        self._writer = self.driver.writer(self.engine)
        self._replica: Engine | None = None
        _open.add(self)
        self._is_replica_checked = False
        if replica is not None:
            driver, url_of_replica = addresses.ledger_url(replica)
            if driver is not self.driver or driver.is_absent(url_of_replica):
                raise Unavailable("ledger_other.replica", place=mask_password(replica))
            self._replica = driver.open(url_of_replica, synchronous=synchronous, patience_s=patience_s)
            event.listen(self._replica, "checkin", self._returned)
        if not deferred:
            try:
                self._check(progress, upgrade=upgrade)
            except BaseException:
                self.close()
                raise

    def _check(self, progress: Progress = ignore_progress, *, upgrade: bool = False) -> None:
        """Check the schema and the ledger's name once; an empty database is set up."""
        with self._checking:
            if self._checked:
                return
            if self._deferred and self.driver.is_absent(self.url):
                raise Unavailable("not_a_ledger", place=self.url.database)
            with self._write() as connection:
                self.driver.prepare_upgrade(connection)
                at = current(connection)
                if at is None and self._deferred:
                    raise Unavailable("not_a_ledger", place=self.url.database)
                if at is None or (upgrade and at != head()):
                    self._upgrade(connection, progress)
                    self.created = at is None
                elif at != head():
                    require_usable(connection)
                if self._name is not None:
                    found = connection.scalar(select(ledger.c.name))
                    if found is None:
                        connection.execute(ledger.update().values(name=self._name))
                    elif found != self._name:
                        raise Unavailable("ledger_other", ledger=self._name, name=found)
            self._checked = True

    def _upgrade(self, connection: Connection, progress: Progress) -> None:
        """Migrate the schema to that of this version; ``progress`` is called before each migration."""
        from lodger.engine.store.migrations.upgrade import upgrade

        clock = select(self.driver.now_us()) if self.driver.is_remote else None
        now_us = SystemClock().now_us() if clock is None else int(connection.execute(clock).scalar_one())
        with patience.waiting(patience.UPGRADE_S):
            upgrade(connection, progress, now_us=now_us)

    @contextmanager
    def write(self, then: Callable[[], object] | None = None) -> Iterator[Connection]:
        """Open a write transaction; it commits at the end and rolls back on any exception.

        Args:
            then: called after the commit, before the transaction is counted.
        """
        if not self._checked:
            self._check()
        with self._write(then) as connection:
            yield connection

    @contextmanager
    def _write(self, then: Callable[[], object] | None = None) -> Iterator[Connection]:
        """Open a write transaction of a database that may be unchecked."""
        try:
            with explaining(self.driver, str(self.url.database)), self._writer.begin() as connection:
                yield connection
            self.refused = None
            if then is not None:
                then()
        except Unavailable as error:
            if error.code in REFUSING:
                self.refused = error
            raise
        finally:
            # Counted after failures too: a commit may have succeeded although its answer was lost.
            with self._counting:
                self.written += 1

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a consistent read-only snapshot; it never waits for a writer."""
        found = _snapshot.get()
        if found is not None and found[0] is self and found[2] == threading.get_ident():
            yield found[1]
            return
        if not self._checked:
            self._check()
        engine = self._replica if self._replica is not None and _from_replica.get() else self.engine
        try:
            with explaining(self.driver, str(engine.url.database)):
                if engine is self._replica and not self._is_replica_checked:
                    with engine.connect() as here, self.engine.connect() as there:
                        if identity(here) != identity(there):
                            raise Unavailable("ledger_other.replica", place=engine.url.render_as_string())
                    self._is_replica_checked = True
                with engine.connect() as connection:
                    connection = connection.execution_options(**self.driver.read_options)
                    with connection.begin():
                        yield connection
        finally:
            with self._counting:
                self.read_count += 1

    def ask(self, work: Callable[[Connection], T], *, writes: bool = False) -> T:
        """Return the result of a function in a transaction of its own: a snapshot, or with ``writes`` one that may write."""
        with self.write() if writes else self.read() as connection:
            return work(connection)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let all reads of this context and thread be of one snapshot."""
        with self.read() as connection, holding(_snapshot, (self, connection, threading.get_ident())):
            yield

    @property
    def transactions(self) -> int:
        """Number of transactions that this process has ended."""
        return self.written + self.read_count

    def _reopen(self) -> None:
        """In a forked child, leave the connections to the parent process: each later call opens its own."""
        self._counting, self._checking = threading.Lock(), threading.Lock()
        for engine in (self.engine, self._replica):
            if engine is not None:
                engine.dispose(close=False)
        self._writer = self.driver.writer(self.engine)

    def check_place(self) -> None:
        """Begin and end a read, which fails if the file was replaced. A database that does not answer is not this check's subject.

        Raises:
            Unavailable: ledger_replaced.
        """
        try:
            with self.read():
                pass
        except Unavailable as error:
            if error.code == "ledger_replaced":
                raise

    def file_watcher(self) -> CommitWatcher | None:
        """Return a watcher of a file for commits by other ways than :meth:`write`, or None for a server."""
        return self.driver.file_watcher(self._writer)

    def server_watcher(self) -> ServerWatcher | None:
        """Return the commit watcher of a server, or None if there is no server. The caller closes it."""
        return self.driver.server_watcher(self.url, self._patience_s, nodes, HEARTBEAT)

    def close(self) -> None:
        """Close every connection; one in use is closed when its thread returns it. Safe to call twice."""
        self._closed = True
        self.engine.dispose()
        if self._replica is not None:
            self._replica.dispose()

    def connections(self) -> dict[str, int]:
        """Return the number of connections by state."""
        pool: Any = self.engine.pool
        return {"in_use": pool.checkedout(), "idle": pool.checkedin()}

    def _returned(self, _raw: object, entry: ConnectionPoolEntry) -> None:
        """Close a connection that is returned after the database was closed."""
        # A disposed pool does not know the connections in use, and would keep them when they are returned.
        if self._closed:
            entry.close()


def identity(connection: Connection) -> str | None:
    """Return the identity of the ledger that a database has; None without one."""
    return None if current(connection) is None else connection.scalar(select(ledger.c.identity))


@contextmanager
def explaining(driver: Driver, place: str) -> Iterator[None]:
    """Raise InputError or Unavailable in place of an error of the database that concerns a text or the host."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise InputError("text_unstorable.surrogate") from error
    except DBAPIError as error:
        if "NUL (0x00)" in str(error.orig):
            raise InputError("text_unstorable") from error
        explained = driver.explain(error, place)
        if explained is None:
            raise
        raise explained from error


__all__ = ["Database", "mask_password", "reads_from_replica"]
