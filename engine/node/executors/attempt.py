"""One attempt's host side: answers a script's calls, keeps its journal, counts its budgets. It never holds a transaction.

Calls are answered one after another in the order of their arrival, so the journal's order is the script's. Requests of
``fetch`` alone are answered beside them.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from lodger.engine.capabilities.arguments import read_arguments
from lodger.engine.capabilities.attempt_budgets import Counters, DayRoom, Share
from lodger.engine.capabilities.call_handlers import HANDLERS
from lodger.engine.capabilities.fetch import fetch_limits
from lodger.engine.capabilities.permits import require
from lodger.engine.capabilities.session import Session
from lodger.engine.core import strict_json
from lodger.engine.core.access.grants import FETCH_DEFAULT
from lodger.engine.core.errors import Unavailable
from lodger.engine.core.execution import Claim
from lodger.engine.core.refusal import CallRefused
from lodger.engine.effects.finished import Recording
from lodger.engine.node.executors.script_context import context_json
from lodger.engine.policy.budget_table import BY_NAME
from lodger.engine.store.usage.budget_reservations import ReservationRequest
from lodger.engine.store.usage.usage import DAY_US
from lodger.sandbox import frames
from lodger.sandbox.job import CallHandlerGone, LogLine, Reply, ScriptError
from lodger.sandbox.outcome import Outcome
from lodger.stdlib.calls import CALLS

#: Error of an attempt whose wall ended while a database did not answer.
UNANSWERED = ScriptError("EngineFault", "the database did not answer a call of this run in time")


@dataclass(eq=False)
class Attempt(Session):
    """Answers the host calls of one claim. Satisfies :class:`lodger.sandbox.job.CallHandler`.

    Attributes:
        on_log: called with each log line as it arrives.
        draws: reserves shares of the tenant's daily budgets; None if these are not counted.
        clock_us: time of log lines about budgets.
        span: records the span of a call by its name; None while tracing is off.
        recording: keeps its calls for a record; None to keep none.
        counters: all budgets of the attempt.
        warnings: lines about budgets that are nearly used up, among the script's own; ``nearly`` names these budgets.
        refused: the last refusal.
    """

    on_log: Callable[[Claim, LogLine], None] | None = None
    draws: Callable[[ReservationRequest], Awaitable[int]] | None = None
    clock_us: Callable[[], int] | None = None
    span: Callable[[str], AbstractContextManager[object]] | None = None
    recording: Recording | None = None
    counters: Counters = field(init=False)
    seed: bytes = field(init=False, default_factory=lambda: os.urandom(frames.SEED.size))
    has_reservation: bool = field(init=False, default=False)
    warnings: list[LogLine] = field(init=False, default_factory=list)
    nearly: list[tuple[str, int, int]] = field(init=False, default_factory=list)
    refused: CallRefused | None = field(init=False, default=None)
    _over: bool = field(init=False, default=False)
    _turn: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)
    _drawing: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        super().__post_init__()
        claim, draws, now_us = self.claim, self.draws, self.now_us
        # A trial draws nothing of the day, and is held to the rest of it.
        rooms = claim.day if draws is not None or claim.trial else {}
        self.budgets = self.counters = Counters(
            dict(claim.budgets),
            {
                name: DayRoom(limit, used, limit - used if BY_NAME[name].effect or draws is None else 0)
                for name, (limit, used) in rooms.items()
            },
            partial(_nearly, claim, self.nearly, self.warnings, self.on_log, self.clock_us or (lambda: now_us)),
            host_calls=claim.limits.host_calls,
        )
        self.draws = draws and self.waits.timed(draws)
        self.fetch_state.on_lost = partial(self.counters.note, "fetch_bytes")

    def context(self) -> str:
        """Return the JSON text that the script gets as its context."""
        return context_json(self.claim, self.datasets, self.now_us)

    async def call(self, name: str, arguments: str) -> Reply:
        """Answer one call; a Reply says why something cannot be done. Exceptions are faults of ours, but for CallHandlerGone."""
        recording = self.recording
        if recording is None:
            return await self._traced(name, arguments)
        number = recording.called(name, arguments)
        try:
            reply = await self._traced(name, arguments)
        except CallHandlerGone:
            recording.answered(number, None, None)
            raise
        # Nothing was awaited since the refusal: it is this call's.
        recording.answered(number, reply, None if reply.ok else self.refused)
        return reply

    async def _traced(self, name: str, arguments: str) -> Reply:
        """Answer a call within a span, if attempts are traced."""
        with nullcontext() if self.span is None else self.span(name):
            return await self._in_turn(name, arguments)

    async def _in_turn(self, name: str, arguments: str) -> Reply:
        """Answer a call after the earlier ones have been answered, or at once if calls of its name need no order."""
        call = CALLS.get(name)
        if call is not None and call.apart:
            return await self._reply(name, arguments)
        async with self._turn:
            return await self._reply(name, arguments)

    async def _reply(self, name: str, arguments: str) -> Reply:
        """Answer a call as JSON; a refusal becomes a reply with its code and message."""
        try:
            return Reply(ok=True, json=strict_json.dump(await self._answer(name, arguments)))
        except CallRefused as refusal:
            self.refused = refusal
            answer: dict[str, Any] = {"code": refusal.code, "message": refusal.message}
            if refusal.details is not None:
                answer["details"] = dict(refusal.details)
            return Reply(ok=False, json=strict_json.dump(answer))
        except Unavailable as gone:
            raise CallHandlerGone(f"{gone.code}: {gone}; {gone.fix}") from gone

    async def _answer(self, name: str, arguments: str) -> Any:
        """Check arguments, grants and budgets of a call, and return the answer of its handler."""
        if self._over:
            raise CallRefused("over", "the run has already ended")
        call = CALLS.get(name)
        if call is None:
            raise CallRefused("unknown_method", "this host call does not exist")
        if not (call.effect or call.computes):
            self.counters.ask()
        async with self._share("calls") as session:
            session.budgets.spend("calls")
        if call.effect:
            self.counters.spend("bytes_written", len(arguments))
        given = read_arguments(call, arguments)
        require(self.claim.grants, call, given, self.datasets)
        # Related rows may use as much again for each relation, and so may an answer with a higher limit than others.
        times = 1 + len(given.get("include") or ())
        if name == "http.fetch":
            times = -(-fetch_limits(self.claim.grants, given["url"]).body_bytes // FETCH_DEFAULT.body_bytes)
        async with self._share(*call.counts, times=times) as session:
            return await HANDLERS[name](session, given)

    @asynccontextmanager
    async def _share(self, *names: str, times: int = 1) -> AsyncIterator[Session]:
        """Hold the amounts of the tenant's day that a call may use, for the block; yield the session with only these."""
        counted = [name for name in names if name in self.counters.day and not BY_NAME[name].effect]
        if not counted:
            yield self
            return
        share = Share(self.counters, {name: BY_NAME[name].need * times for name in counted})
        share.take()
        try:
            for name in counted:
                if self.counters.lacking(name):
                    async with self._drawing:
                        await self._draw(name)
            shared = copy(self)
            shared.budgets = share
            yield shared
        finally:
            share.leave()

    async def _draw(self, name: str) -> None:
        """Reserve a share of a budget of the tenant's day if the calls under way need more than the attempt has."""
        lacking = self.counters.lacking(name)
        if lacking and self.draws is not None:
            claim, day = self.claim, self.claim.started_us // DAY_US
            self.has_reservation = True
            lot = BY_NAME[name].lot
            share = await self.draws(
                ReservationRequest(claim.tenant_id, claim.action_id, claim.attempt, day, name, lacking, lot)
            )
            self.counters.grant(name, lacking, share)

    def log(self, line: LogLine) -> None:
        """See a line as it arrives; it is stored with the report."""
        if self.on_log is not None:
            self.on_log(self.claim, replace(line, text=self.redactor.text(line.text)))

    def close(self) -> None:
        """End the attempt: host calls that come later change nothing."""
        self._over = True

    def verdict(self, outcome: Outcome, error: ScriptError | None) -> Outcome:
        """Return the outcome: that of a refusal which the script did not catch, or a fault of the engine if the wall time was spent
        waiting for it."""
        if outcome is Outcome.WALL_LIMIT and self.waits.are_too_long(self.claim.limits.wall_ms / 1000):
            return Outcome.ENGINE_FAULT
        return sharpened(self.refused, outcome, error)

    def effects(self) -> tuple[dict[str, Any], ...]:
        """Describe the journal, JSON-able, in call order; then the requests."""
        return (*self.journal.describe(whole=self.claim.trial), *self.fetch_state.shown)


def _nearly(
    claim: Claim,
    nearly: list[tuple[str, int, int]],
    warnings: list[LogLine],
    on_log: Callable[[Claim, LogLine], None] | None,
    clock_us: Callable[[], int],
    name: str,
    limit: int,
    used: int,
) -> None:
    """Log that four fifths of a budget are used; no method, because an attempt in a cycle is left to the collector with all it holds."""
    nearly.append((name, limit, used))
    line = LogLine("warn", f"budget {name}: {used} of {limit} per attempt used", clock_us())
    warnings.append(line)
    if on_log is not None:
        on_log(claim, line)


def sharpened(refused: CallRefused | None, outcome: Outcome, error: ScriptError | None) -> Outcome:
    """Return the outcome of the last refused call if the script ended by its error, else the given one."""
    if outcome is not Outcome.SCRIPT_ERROR or refused is None or refused.outcome is None or error is None:
        return outcome
    return refused.outcome if error.message == refused.message else outcome
