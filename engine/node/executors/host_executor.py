"""Runs claims of kind ``host``: functions of the platform's own, asynchronous ones on the node's loop, others in threads.

A thread cannot be killed: a synchronous handler that was cancelled, or is past its deadline, is told so and not waited for. The
row says how it ended at once; further work of the handler has no effect on it.
"""

import asyncio
import json
import logging
import threading
import time
import traceback
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

from lodger.engine.capabilities.session import is_too_long
from lodger.engine.core.clock import Clock, from_us, from_us_or_none
from lodger.engine.core.errors import Unavailable
from lodger.engine.core.execution import Claim
from lodger.engine.core.handlers import Call, Cancelled, Handler, Handlers
from lodger.engine.effects.finished import Finished, Stopped
from lodger.engine.node.executors.attempt import UNANSWERED
from lodger.engine.store.drivers import patience
from lodger.engine.store.drivers.patience import Patience
from lodger.sandbox.frames import LEVELS
from lodger.sandbox.job import CallHandlerGone, LogLine, ScriptError, Usage
from lodger.sandbox.limits import Limits
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.workers import verdict
from lodger.sandbox.workers.codec import LogBuffer

#: How long a cancelled coroutine may take to end before it is left to itself, seconds.
GRACE_S = 1.0
#: Letters of a traceback that are kept.
MAX_TRACE = 8000
_INFO = LEVELS.index("info")
_log = logging.getLogger("lodger.node")


class HostExecutor:
    """Satisfies :class:`lodger.engine.effects.finished.Executor`.

    Args:
        node: name of the node, for the handler.
    """

    def __init__(self, handlers: Handlers, clock: Clock, node: str) -> None:
        self._handlers = handlers
        self._clock = clock
        self._node = node

    async def start(self) -> None:
        """Do nothing: handlers need no preparation."""

    async def stop(self) -> None:
        """Do nothing: a handler runs in this process."""

    async def execute(self, claim: Claim) -> Finished:
        """Call the handler; see it through to its end, its deadline or its cancellation."""
        handler = self._handlers.get(claim.script_name.removeprefix("@"))
        if handler is None:
            said = f"no handler {claim.script_name!r} is registered in this process"
            return Finished(Outcome.ENGINE_FAULT, error=ScriptError("NoHandler", said))
        return await _Run(handler, claim, self._clock, self._node).run()


class _Run:
    """One call of a handler."""

    def __init__(self, handler: Handler, claim: Claim, clock: Clock, node: str) -> None:
        self._handler, self._claim, self._clock = handler, claim, clock
        self._log_buffer = LogBuffer(claim.limits)
        self._writing = threading.Lock()
        self._begun = clock.elapsed_s()
        self._cpu_s = 0.0
        #: Of the handler's thread: how long the ledger, which it asks by the engine's verbs, has been silent.
        self._ledger = Patience()
        self.call = Call(
            claim.tenant_id, claim.action_id, claim.schedule_id,
            from_us_or_none(claim.slot_us),
            from_us(claim.due_us), claim.tries, claim.params, node, self._log_line,
        )  # fmt: skip

    def _log_line(self, line: str) -> None:
        """Add a line that the handler wrote to the log of its attempt, with the present time."""
        with self._writing:
            self._log_buffer.add(_INFO, str(line).encode("utf-8", "replace"), self._clock.now_us())

    def _end(self, outcome: Outcome, result: str | None = None, error: ScriptError | None = None) -> Finished:
        """Return the end of the attempt with its log and usage."""
        with self._writing:
            logs: tuple[LogLine, ...] = self._log_buffer.lines(self._clock.now_us())
        wall_ms = (self._clock.elapsed_s() - self._begun) * 1000
        return Finished(outcome, result, error, logs, Usage(round(self._cpu_s * 1000, 3), round(wall_ms, 3)))

    async def run(self) -> Finished:
        """Call the handler and return its end, at the deadline at the latest."""
        handler = self._handler
        running = asyncio.ensure_future(handler.function(self.call)) if handler.asynchronous else self._threaded()
        try:
            await asyncio.wait({running}, timeout=self._handler.deadline_s)
        except asyncio.CancelledError:
            await self._abandon(running)
            raise Stopped(self._end(Outcome.CANCELLED)) from None
        if not running.done():
            silent_s = self._ledger.silent_s()
            await self._abandon(running)
            if is_too_long(silent_s, self._handler.deadline_s):
                return self._end(Outcome.ENGINE_FAULT, error=UNANSWERED)
            said = f"the handler did not return within {self._handler.deadline_s:g} s"
            return self._end(Outcome.WALL_LIMIT, error=ScriptError("LimitExceeded", said))
        try:
            answer = running.result()
        except (asyncio.CancelledError, Cancelled):
            # The node has not cancelled it: the handler did.
            return self._end(Outcome.SCRIPT_ERROR, error=ScriptError("Cancelled", "the handler cancelled itself"))
        except Unavailable as error:
            _log.error("handler %s: %s: %s", self._handler.name, error.code, error)
            return self._end(Outcome.ENGINE_FAULT, error=verdict.of_host(CallHandlerGone()).error)
        except Exception as error:  # noqa: BLE001 - any exception of a handler is its end
            return self._end(Outcome.SCRIPT_ERROR, error=_described(error))
        return self._answered(answer)

    def _threaded(self) -> "asyncio.Future[Any]":
        """Start a synchronous handler in a thread of its own; return the future of its result."""
        done: Future[Any] = Future()

        def call_handler() -> None:
            """Call the handler, and hand over its result or error."""
            self._ledger = patience.adopt()
            before = time.thread_time()
            try:
                settle = partial(done.set_result, self._handler.function(self.call))
            except BaseException as error:  # noqa: BLE001 - SystemExit of a handler must not end a thread in silence
                settle = partial(
                    done.set_exception, error if isinstance(error, Exception) else RuntimeError(repr(error))
                )
            self._cpu_s = time.thread_time() - before
            settle()

        # Not of a pool: its threads are waited for when the process ends, however long a forsaken handler goes on.
        threading.Thread(target=call_handler, name=f"lodger-handler-{self._handler.name}", daemon=True).start()
        return asyncio.wrap_future(done)

    async def _abandon(self, running: "asyncio.Future[Any]") -> None:
        """Ask a handler to stop, and wait for it no longer than GRACE_S."""
        self.call.cancelled.set()
        if self._handler.asynchronous:
            running.cancel()
        await asyncio.wait({running}, timeout=GRACE_S)
        if not running.done():
            _log.warning("handler %s is still running after it was stopped", self._handler.name)
            running.add_done_callback(_consume_exception)
        else:
            _consume_exception(running)

    def _answered(self, answer: Any) -> Finished:
        """Return the end of a handler that returned a value: its JSON as the result, or a script error if it is not JSON or too large."""
        try:
            text = json.dumps(answer, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
            size = len(text.encode())
        except (TypeError, ValueError, RecursionError) as error:
            said = f"the return value of the handler is not JSON: {error}"
            return self._end(Outcome.SCRIPT_ERROR, error=ScriptError("TypeError", said))
        limits: Limits = self._claim.limits
        if size > limits.result_bytes:
            said = f"the result has {size} bytes of JSON, the maximum is {limits.result_bytes}"
            return self._end(Outcome.OUTPUT_LIMIT, error=ScriptError("LimitExceeded", said))
        return self._end(Outcome.OK, text)


def _consume_exception(running: "asyncio.Future[Any]") -> None:
    """Read the exception of an abandoned handler, which asyncio would otherwise report as never retrieved."""
    if not running.cancelled():
        running.exception()


def _described(error: Exception) -> ScriptError:
    """Return an exception of a handler as the error of its attempt."""
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1] if frames else None
    return ScriptError(
        type(error).__name__,
        str(error)[:2000],
        "".join(traceback.format_exception(error))[-MAX_TRACE:],
        None if last is None else Path(last.filename).name,
        None if last is None else last.lineno,
    )
