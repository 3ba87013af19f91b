"""A psycopg connection that sends statements together, and is closed if the server does not answer in time.

The server may be a millisecond away, so that waiting for it costs more than its work. Statements whose answer is not needed yet are kept
and sent with the next one that is waited for: BEGIN with the first statement, the writes of a transaction with its COMMIT. An error of
a statement is raised where the answer is waited for; what follows it, COMMIT included, is not executed.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import psycopg
from psycopg import generators
from psycopg.abc import PQGen
from psycopg.adapt import Transformer
from psycopg.pq import ConnStatus, TransactionStatus

from lodger.engine.core.clock import SystemClock
from lodger.engine.store.drivers import patience
from lodger.engine.store.drivers.postgresql.connections import PREPARED
from lodger.engine.store.drivers.postgresql.joint_reads import JointReads

T = TypeVar("T")


class Cursor(psycopg.Cursor[Any]):
    """A cursor of a :class:`WatchedConnection`.

    Attributes:
        mark: the connection's mark when the statement was sent.
        is_awaited: whether its result will be read; otherwise it is used again after the statement.
    """

    mark: object = None
    is_awaited = True

    def execute(
        self, query: Any, params: Any = None, *, prepare: bool | None = None, binary: bool | None = None
    ) -> Any:
        """Execute a statement together with those that were kept, and with BEGIN if it is the first one."""
        connection: Any = self._conn
        connection.settle()
        # Several statements in one text go by the simple protocol, which cannot be mixed with the other.
        if connection.begins and (params or not isinstance(query, str) or ";" not in query):
            connection.queue(self, query, params, prepare=prepare)
            connection.flush()
            return self
        while connection.pending:
            connection.flush()
        connection.require_transaction()
        return super().execute(query, params, prepare=prepare, binary=binary)

    def executemany(self, *args: Any, **kwargs: Any) -> None:
        """Execute the kept statements, and then this one for each row."""
        self._conn.flush()  # type: ignore[attr-defined]  # a WatchedConnection
        super().executemany(*args, **kwargs)

    def fetchall(self) -> list[Any]:
        """Return the rows, none of a statement that returns none.

        ``description`` is not asked: it makes an object for each column.
        """
        return super().fetchall() if self.pgresult is not None and self.pgresult.nfields else []

    def enqueue(self, query: Any, params: Any, prepare: bool | None) -> None:
        """Append a statement to the pipeline of its connection."""
        if self._results:
            self._reset()
        if self._last_query is not query:
            self._last_query = query
            self._tx = Transformer(self)
        for _wait in self._maybe_prepare_gen(self._convert_query(query, params), prepare=prepare):
            raise AssertionError("a statement of a pipeline waits for nothing")


class WatchedConnection(psycopg.Connection[Any]):
    """A connection with a time limit on every wait; psycopg calls :meth:`wait`, which checks the clock ten times a second.

    Attributes:
        is_last: whether the next awaited statement ends the transaction, which only reads: its end is sent along.
        mark: owner of the statements that are sent from now on; the error of one has it as attribute ``mark``.
        patience_s: maximum time to wait for an answer; a thread's own limit
            (:class:`lodger.engine.store.drivers.patience.Patience`) takes precedence.
        sent: number of statements that were kept, those that were sent included.
        pooled: each transaction may be given another session of the server.
    """

    patience_s = patience.PATIENCE_S
    pooled = True
    mark: object = None
    is_last = False
    sent = 0
    _clock = SystemClock()
    _is_leaving = _is_over = False
    _joint: JointReads | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._unused: defaultdict[Any, list[Cursor]] = defaultdict(list)

    def cursor(self, name: str = "", **kwargs: Any) -> Any:
        """Return a cursor; one of the server's, which has a name, is opened after the kept statements."""
        if not name:
            return super().cursor(**kwargs)
        self.flush()
        return super().cursor(name, **kwargs)

    @property
    def begins(self) -> bool:
        """Whether the next statement can be kept: others are kept already, or it is the first of a transaction."""
        return (
            self._pipeline is not None
            or self._joint is not None
            or (not self.autocommit and self.pgconn.transaction_status == TransactionStatus.IDLE)
        )

    @property
    def pending(self) -> int:
        """Number of statements that are kept."""
        return 0 if self._pipeline is None else len(self._pipeline.result_queue)

    def send(self, query: str, params: Any = None, *, prepare: bool | None = None, is_awaited: bool = True) -> Cursor:
        """Keep one statement until the next :meth:`flush`; return the cursor that will have its result."""
        if len(self._unused) > PREPARED:
            self._unused.clear()
        unused = self._unused[query]
        cursor: Any = unused.pop() if unused else self.cursor()
        cursor.is_awaited = is_awaited
        self.queue(cursor, query, params, prepare=prepare)
        return cursor  # type: ignore[no-any-return]  # the factory's

    def reuse(self, cursor: Cursor) -> None:
        """Keep a cursor of :meth:`send` whose rows were read, for its statement: to make one costs as much as to send a statement.

        The cursor keeps the converters of its statement's values, and drops its result.
        """
        cursor._reset()
        cursor._tx.set_pgresult(None)
        self._unused[cursor._last_query].append(cursor)

    def queue(self, cursor: Cursor, query: Any, params: Any, *, prepare: bool | None) -> None:
        """Keep one statement until the next flush; its result goes into this cursor."""
        with self.lock:
            self.require_transaction()
            if self._pipeline is None:
                self.settle()
                self._check_connection_ok()
                begins = not self.autocommit and self.pgconn.transaction_status == TransactionStatus.IDLE
                self.pgconn.enter_pipeline_mode()
                self._pipeline = psycopg.Pipeline(self)
                if begins:
                    self._enqueue(self._get_tx_start_command())
            self.sent += 1
            cursor.mark = self.mark
            cursor.enqueue(query, params, prepare)

    def require_transaction(self) -> None:
        """Refuse a statement after the last one of a transaction: it would not have the transaction's settings.

        Raises:
            psycopg.ProgrammingError: the transaction has ended.
        """
        if self._is_over:
            raise psycopg.ProgrammingError(
                "the transaction has ended with the statement that was said to be its last one"
            )

    def _enqueue(self, command: bytes) -> None:
        """Add a command to the pipeline."""
        for _wait in self._exec_command(command):
            raise AssertionError("a command of a pipeline waits for nothing")

    def flush(self) -> None:
        """Send the kept statements, and wait for their results.

        Raises:
            psycopg.Error: of the first statement that failed.
        """
        if self._joint is not None and self._joint.wait():
            return
        if self._pipeline is not None:
            if self.is_last and self.read_only:
                self._enqueue(b"COMMIT")
                self._is_over = True
            with self.lock:
                self.wait(self._flight())

    def read_together(self, works: Sequence[Callable[[], Any]]) -> list[Callable[[], Any]]:
        """Run functions that read by this connection; see :meth:`JointReads.run`."""
        if self._joint is not None:
            return self._joint.run(self.flush, works)
        self._joint = JointReads()
        try:
            return self._joint.run(self.flush, works)
        finally:
            self._joint = None

    def _flight(self) -> PQGen[None]:
        """Send the commands of the pipeline and receive their results; a generator as psycopg's own."""
        pipeline: Any = self._pipeline
        failed: psycopg.Error | None = None
        try:
            for command in pipeline.command_queue:
                command()
            self.pgconn.pipeline_sync()
            yield from generators.send(self.pgconn)
            for queued in (*pipeline.result_queue, None):
                results = yield from generators.fetch_many(self.pgconn)
                try:
                    pipeline._process_results(queued, results)
                except psycopg.Error as error:
                    if failed is None:
                        failed = error
                        error.mark = self.mark if queued is None else queued[0].mark  # type: ignore[attr-defined]  # the caller's
                if queued is not None and not queued[0].is_awaited:
                    self.reuse(queued[0])
        except psycopg.Error as error:
            raise (failed or error) from None
        finally:
            self._leave()
        if failed is not None:
            raise failed
        yield from self._prepared.maintain_gen(self)

    def _leave(self) -> None:
        """End the pipeline mode of the connection."""
        self._pipeline = None
        if self.pgconn.status != ConnStatus.BAD:
            with suppress(psycopg.Error):  # a lost connection has results that will never be read
                self.pgconn.exit_pipeline_mode()

    def commit(self) -> None:
        """Commit, together with the kept statements. The end of a transaction that only reads is not waited for."""
        self.is_last = self._is_over = False
        if self._pipeline is not None:
            self._enqueue(b"COMMIT")
            self.flush()
        elif self.read_only and self.pgconn.transaction_status == TransactionStatus.INTRANS:
            self.pgconn.send_query(b"COMMIT")
            self.pgconn.flush()
            self._is_leaving = True
        else:
            super().commit()

    def rollback(self) -> None:
        """Roll back; kept statements are forgotten."""
        self.is_last = self._is_over = False
        if self._pipeline is not None:
            self._leave()
            # Some may have been about to be prepared: none is known as prepared, and the server forgets them all.
            self._prepared.clear()
            if self.pgconn.transaction_status == TransactionStatus.IDLE:
                with self.lock:
                    self.wait(self._prepared.maintain_gen(self))
        if not self._is_leaving:
            super().rollback()

    def settle(self) -> None:
        """Read the answer to the end of a transaction that was not waited for.

        Raises:
            psycopg.OperationalError: the connection was lost meanwhile.
        """
        if self._is_leaving:
            self._is_leaving = False
            self.wait(generators.fetch_many(self.pgconn))

    def _check_intrans_gen(self, attribute: str) -> PQGen[None]:
        """Refuse to change an attribute within a transaction, as psycopg does, except while the connection leaves one."""
        if self._is_leaving:  # what is set now is for the next transaction
            return
        yield from super()._check_intrans_gen(attribute)

    def wait(self, gen: PQGen[T], *args: Any, **kwargs: Any) -> T:
        """Wait for the server as psycopg does, but for a limited time."""
        return super().wait(self._with_timeout(gen), *args, **kwargs)

    def _with_timeout(self, gen: PQGen[T]) -> PQGen[T]:
        """Wait for an answer of the server, for a limited time."""
        own = patience.of_thread() or patience.Patience(self.patience_s)
        try:
            wants = next(gen)
            while True:
                ready = yield wants
                if ready:
                    own.silent_since_s = None
                elif own.silent_since_s is None:
                    own.silent_since_s = self._clock.elapsed_s()
                elif own.silent_s() >= own.patience_s:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(f"no answer for {own.patience_s:g} s, so the connection was closed")
                wants = gen.send(ready)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # what the generator returns is what is waited for
        finally:
            own.silent_since_s = None
