"""Readers of one snapshot whose statements are sent together: each goes on until it waits for the server, then the next one does."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from typing import Any

from greenlet import getcurrent, greenlet


class JointReads:
    """Functions that read by one connection, each in a greenlet of its own.

    A statement that one of them waits for is kept (:meth:`WatchedConnection.flush`) until all of them wait or have ended.
    """

    def __init__(self) -> None:
        self._hub = getcurrent()
        self._readers: list[greenlet] = []

    def wait(self) -> bool:
        """Let the other readers go on until the kept statements were sent; return False if the caller is no reader."""
        if getcurrent() is self._hub:
            return False
        self._hub.switch()
        return True

    def run(self, flush: Callable[[], None], works: Sequence[Callable[[], Any]]) -> list[Callable[[], Any]]:
        """Run the functions to their end; return a function for each that returns its result or raises its error.

        Args:
            flush: sends the kept statements and waits for their results.
        """
        answers: list[Future[Any]] = [Future() for _ in works]

        def run_reader(answer: Future[Any], work: Callable[[], Any]) -> None:
            """Run one of the readers; keep its result or its error."""
            try:
                answer.set_result(work())
            except Exception as error:  # noqa: BLE001 - the caller's
                answer.set_exception(error)

        for answer, work in zip(answers, works, strict=True):
            self._readers.append(greenlet(partial(copy_context().run, run_reader, answer, work), self._hub))
        if getcurrent() is self._hub:
            self._go_on(flush)
        while not all(answer.done() for answer in answers):  # one of the readers has readers of its own
            self._hub.switch()
        return [answer.result for answer in answers]

    def _go_on(self, flush: Callable[[], None]) -> None:
        """Switch between the readers until all have ended."""
        failed: Exception | None = None
        while self._readers:
            for each in self._readers:  # it grows meanwhile
                each.switch() if failed is None else each.throw(failed)
            self._readers = [each for each in self._readers if not each.dead]
            failed = None
            try:
                flush()
            except Exception as error:  # noqa: BLE001 - raised where each of them waits
                failed = error
