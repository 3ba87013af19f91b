"""A psycopg connection that is closed if the server does not answer in time."""

from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen

from lodger.engine.core.clock import SystemClock
from lodger.engine.store.drivers import patience

T = TypeVar("T")


class Cursor(psycopg.Cursor[Any]):
    """A cursor on which ``fetchall`` may follow any statement: to ask its ``description`` makes an object for each column."""

    def fetchall(self) -> list[Any]:
        """Return the rows, none of a statement that returns none."""
        return super().fetchall() if self.pgresult is not None and self.pgresult.nfields else []


class WatchedConnection(psycopg.Connection[Any]):
    """A connection with a time limit on every wait; psycopg calls :meth:`wait`, which checks the clock ten times a second.

    Attributes:
        patience_s: maximum time to wait for an answer; a thread's own limit
            (:class:`lodger.engine.store.drivers.patience.Patience`) takes precedence.
        pooled: each transaction may be given another session of the server.
    """

    patience_s = patience.PATIENCE_S
    pooled = True
    _clock = SystemClock()

    def wait(self, gen: PQGen[T], *args: Any, **kwargs: Any) -> T:
        """Wait as psycopg does.

        Raises:
            psycopg.OperationalError: the server did not answer in time; the connection is closed.
        """
        return super().wait(self._with_timeout(gen), *args, **kwargs)

    def _with_timeout(self, gen: PQGen[T]) -> PQGen[T]:
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
