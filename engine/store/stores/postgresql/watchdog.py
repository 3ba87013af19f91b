"""A psycopg connection that is closed if the server does not answer in time."""

from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen

from lodger.engine.core.clock import SystemClock
from lodger.engine.store.stores import patience

T = TypeVar("T")


class WatchedConnection(psycopg.Connection[Any]):
    """A connection with a time limit on every wait; psycopg calls :meth:`wait`, which checks the clock ten times a second.

    Attributes:
        patience_s: maximum time to wait for an answer; a thread's own limit
            (:class:`lodger.engine.store.stores.patience.Patience`) takes precedence.
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
        own, heard_s = patience.of_thread(), self._clock.elapsed_s()
        try:
            wants = next(gen)
            while True:
                ready = yield wants
                if ready:
                    heard_s = self._clock.elapsed_s()
                else:
                    self._raise_if_late(heard_s, self.patience_s if own is None else own.patience_s)
                wants = gen.send(ready)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # what the generator returns is what is waited for

    def _raise_if_late(self, heard_s: float, patience_s: float) -> None:
        if self._clock.elapsed_s() - heard_s >= patience_s:
            self.pgconn.finish()
            raise psycopg.OperationalError(f"no answer for {patience_s:g} s, so the connection was closed")
