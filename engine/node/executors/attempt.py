"""One attempt's host side: answers a script's calls, keeps its journal, counts its budgets. It never holds a transaction.

Calls are answered one after another in the order of their arrival, so the journal's order is the script's. Requests of
``fetch`` alone are answered beside them.
"""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, ParamSpec, TypeVar

from sqlalchemy import Connection

from lodger.engine.capabilities.arguments import read_arguments
from lodger.engine.capabilities.call_handlers import HANDLERS
from lodger.engine.capabilities.fetch import fetch_limits
from lodger.engine.capabilities.fetch_state import FetchState
from lodger.engine.capabilities.permits import require
from lodger.engine.capabilities.secrets import no_secrets
from lodger.engine.capabilities.session import AddressLookup, QueryRunner, ScriptCheck, SecretLookup, Session, unchecked
from lodger.engine.core import strict_json
from lodger.engine.core.access.grants import FETCH_DEFAULT
from lodger.engine.core.errors import Unavailable
from lodger.engine.core.execution import Claim
from lodger.engine.core.ids import Identities
from lodger.engine.core.refusal import CallRefused
from lodger.engine.data.sets.dataset import Dataset, database_of
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.data.sets.guard import isolated_query
from lodger.engine.data.sets.numbers import Numbers
from lodger.engine.data.sets.reads import STATEMENT_S
from lodger.engine.data.sets.scope import Scope
from lodger.engine.effects.journal import Journal
from lodger.engine.node.executors.attempt_budgets import Counters, DayRoom, Share
from lodger.engine.node.executors.script_context import context_json
from lodger.engine.node.replay.recording import Recording
from lodger.engine.policy.budget_table import BY_NAME
from lodger.engine.store.usage.budget_reservations import ReservationRequest
from lodger.engine.store.usage.usage import DAY_US
from lodger.engine.vault.redaction import Redactor
from lodger.sandbox import frames
from lodger.sandbox.job import CallHandlerGone, LogLine, Reply, ScriptError
from lodger.sandbox.nodejs.intl_process import IntlProcesses
from lodger.sandbox.outcome import Outcome
from lodger.stdlib.calls import CALLS

T = TypeVar("T")
P = ParamSpec("P")
#: Error of an attempt whose wall ended while a database did not answer.
UNANSWERED = ScriptError("EngineFault", "the database did not answer a call of this run in time")


class DatabaseWaits:
    """How long an attempt has waited for answers of databases that have not come."""

    def __init__(self) -> None:
        self._begun: dict[object, float] = {}
        self._given_up_s = 0.0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the wait of a question."""
        key, loop = object(), asyncio.get_running_loop()
        self._begun[key] = loop.time()
        try:
            yield
        except asyncio.CancelledError:  # the attempt has ended before the answer
            self._given_up_s = max(self._given_up_s, loop.time() - self._begun[key])
            raise
        finally:
            del self._begun[key]

    def timed(self, ask: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        """Return the question with its wait counted."""

        async def timed(*args: P.args, **kwargs: P.kwargs) -> T:
            with self.waiting():
                return await ask(*args, **kwargs)

        return timed

    def are_too_long(self, wall_s: float) -> bool:
        """Whether a question has waited for as long as a statement may take, or for half of the wall."""
        now_s = asyncio.get_running_loop().time() if self._begun else 0.0
        waited_s = max([self._given_up_s, *(now_s - begun_s for begun_s in self._begun.values())])
        return is_too_long(waited_s, wall_s)


def is_too_long(waited_s: float, wall_s: float) -> bool:
    """Whether the engine is to blame for a wall that ended after so long a wait for a database."""
    return waited_s >= min(STATEMENT_S, wall_s / 2)


async def no_addresses(_tenant_id: str, _addresses: Collection[str]) -> Collection[str]:
    """Return none of the addresses: no tenant has people of its own."""
    return ()


class Attempt:
    """Satisfies :class:`lodger.sandbox.job.CallHandler` for one claim.

    Args:
        claim: what runs; the tenant is taken from here and from nowhere else.
        read: runs a query on a read-only connection.
        datasets: the sets that ``db.NAME`` refers to.
        now_us: time that the script sees as now.
        budgets: maximum of each budget, by name; absent ones have their defaults.
        people: returns those of some addresses that belong to the tenant's own people.
        on_log: called with each log line as it arrives.
        fetch_state: state of its requests; None if requests are not allowed.
        read_secrets: returns the tenant's secrets with their values.
        check_script: checks scripts that are to run later.
        draws: reserves shares of the tenant's daily budgets; None if these are not counted.
        clock_us: time of log lines about budgets.
        new_id: returns the key of a new row.
        numbers: reserves keys that a database generates; None, and in a trial, tokens stand for them.
        span: records the span of a call by its name; None while tracing is off.
        recording: keeps its calls for a record; None to keep none.
        intl: answers calls of Intl; None: they are refused.
    """

    def __init__(
        self,
        claim: Claim,
        read: QueryRunner,
        datasets: Datasets,
        *,
        now_us: int,
        budgets: dict[str, int] | None = None,
        people: AddressLookup = no_addresses,
        on_log: Callable[[Claim, LogLine], None] | None = None,
        fetch_state: FetchState | None = None,
        read_secrets: SecretLookup = no_secrets,
        check_script: ScriptCheck = unchecked,
        draws: Callable[[ReservationRequest], Awaitable[int]] | None = None,
        clock_us: Callable[[], int] | None = None,
        new_id: Callable[[], str] | None = None,
        numbers: Numbers | None = None,
        span: Callable[[str], AbstractContextManager[object]] | None = None,
        recording: Recording | None = None,
        intl: IntlProcesses | None = None,
    ) -> None:
        datasets = datasets.pinned()
        self.claim = claim
        self.datasets = datasets
        self.now_us = now_us
        self.recording = recording
        self._waits = DatabaseWaits()
        self.seed = os.urandom(frames.SEED.size)
        consumer = claim.schedule_id or str(uuid.uuid5(uuid.NAMESPACE_OID, claim.script_name))
        self.journal = Journal(claim.tenant_id, claim.action_id, claim.step, datasets, consumer)
        # A trial draws nothing of the day, and is held to the rest of it.
        rooms = claim.day if draws is not None or claim.trial else {}
        self.counters = Counters(
            {**claim.budgets, **(budgets or {})},
            {
                name: DayRoom(limit, used, limit - used if BY_NAME[name].effect or draws is None else 0)
                for name, (limit, used) in rooms.items()
            },
            self._nearly,
            host_calls=claim.limits.host_calls,
        )
        self.has_reservation = False
        #: Lines about budgets that are nearly used up, among the script's own; and which.
        self.warnings: list[LogLine] = []
        self.nearly: list[tuple[str, int, int]] = []
        self._draws = draws and self._waits.timed(draws)
        self._clock_us = clock_us or (lambda: now_us)
        self._drawing = asyncio.Lock()
        self.fetch_state = fetch_state or FetchState(claim.tenant_id, claim.action_id, claim.step, dry=claim.trial)
        self.fetch_state.on_lost = partial(self.counters.note, "fetch_bytes")
        self.redactor = Redactor()
        self.refused: CallRefused | None = None
        self._on_log = on_log
        self._span = span
        self._over = False
        self.fetch_state.earlier = self._waits.timed(self.fetch_state.earlier)
        self._turn = asyncio.Lock()
        self.session = Session(
            claim=claim,
            scope=Scope(claim.tenant_id),
            journal=self.journal,
            datasets=datasets,
            budgets=self.counters,
            read=partial(self._ask, read),
            now_us=now_us,
            new_id=new_id or Identities(lambda: now_us).new,
            own_addresses=self._waits.timed(people),
            fetch_state=self.fetch_state,
            read_secrets=self._waits.timed(read_secrets),
            redactor=self.redactor,
            check_script=self._waits.timed(check_script),
            consumer=consumer,
            numbers=None if claim.trial or numbers is None else self._waits.timed(numbers),
            intl=intl,
        )

    async def _ask(self, read: QueryRunner, work: Callable[[Connection], T], rows: Dataset | None = None) -> T:
        asked = isolated_query(work, self.claim.tenant_id, self.datasets, rows)
        database = None if rows is None else database_of(rows)
        with self._waits.waiting():
            return await (read(asked) if database is None else database.ask(asked))

    def context(self) -> str:
        """Return the context JSON of the bundle."""
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
        if self._span is None:
            return await self._in_turn(name, arguments)
        with self._span(name):
            return await self._in_turn(name, arguments)

    async def _in_turn(self, name: str, arguments: str) -> Reply:
        call = CALLS.get(name)
        if call is not None and call.apart:
            return await self._reply(name, arguments)
        async with self._turn:
            return await self._reply(name, arguments)

    async def _reply(self, name: str, arguments: str) -> Reply:
        try:
            return Reply(ok=True, json=strict_json.dump(await self._answer(name, arguments)))
        except CallRefused as refusal:
            self.refused = refusal
            answer: dict[str, Any] = {"code": refusal.code, "message": refusal.message}
            if refusal.details is not None:
                answer["details"] = dict(refusal.details)
            return Reply(ok=False, json=strict_json.dump(answer))
        except Unavailable as gone:
            raise CallHandlerGone(f"{gone.code}: {gone}") from gone

    async def _answer(self, name: str, arguments: str) -> Any:
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
        # What comes along with rows may use as much again for each relation, and so may an answer with a higher limit than others.
        times = 1 + len(given.get("include") or ())
        if name == "http.fetch":
            times = -(-fetch_limits(self.claim.grants, given["url"]).body_bytes // FETCH_DEFAULT.body_bytes)
        async with self._share(*call.counts, times=times) as session:
            return await HANDLERS[name](session, given)

    @asynccontextmanager
    async def _share(self, *names: str, times: int = 1) -> AsyncIterator[Session]:
        """Hold as much of the tenant's day as a call may use, before it uses it."""
        counted = [name for name in names if name in self.counters.day and not BY_NAME[name].effect]
        if not counted:
            yield self.session
            return
        share = Share(self.counters, {name: BY_NAME[name].need * times for name in counted})
        share.take()
        try:
            for name in counted:
                if self.counters.lacking(name):
                    async with self._drawing:
                        await self._draw(name)
            yield replace(self.session, budgets=share)
        finally:
            share.leave()

    async def _draw(self, name: str) -> None:
        lacking = self.counters.lacking(name)
        if lacking and self._draws is not None:
            claim, day = self.claim, self.claim.started_us // DAY_US
            self.has_reservation = True
            lot = BY_NAME[name].lot
            share = await self._draws(
                ReservationRequest(claim.tenant_id, claim.action_id, claim.attempt, day, name, lacking, lot)
            )
            self.counters.grant(name, lacking, share)

    def _nearly(self, name: str, limit: int, used: int) -> None:
        self.nearly.append((name, limit, used))
        line = LogLine("warn", f"budget {name}: {used} of {limit} per attempt used", self._clock_us())
        self.warnings.append(line)
        if self._on_log is not None:
            self._on_log(self.claim, line)

    def log(self, line: LogLine) -> None:
        """See a line as it arrives; it is stored with the report."""
        if self._on_log is not None:
            self._on_log(self.claim, replace(line, text=self.redactor.text(line.text)))

    def close(self) -> None:
        """End it: calls that come later change nothing."""
        self._over = True

    def verdict(self, outcome: Outcome, error: ScriptError | None) -> Outcome:
        """Sharpen a script error that is a refused call which the script let pass: denied, a budget, an effect.

        A wall that ends while the database does not answer is the engine's fault.

        A script can throw a look-alike of a refusal it was really given; either way the blame is its own.
        """
        if outcome is Outcome.WALL_LIMIT and self._waits.are_too_long(self.claim.limits.wall_ms / 1000):
            return Outcome.ENGINE_FAULT
        return sharpened(self.refused, outcome, error)

    def effects(self) -> tuple[dict[str, Any], ...]:
        """Describe the journal, JSON-able, in call order; then the requests."""
        return (*self.journal.describe(whole=self.claim.trial), *self.fetch_state.shown)


def sharpened(refused: CallRefused | None, outcome: Outcome, error: ScriptError | None) -> Outcome:
    """Return the outcome of the last refused call if the script ended by its error, else the given one."""
    if outcome is not Outcome.SCRIPT_ERROR or refused is None or refused.outcome is None or error is None:
        return outcome
    return refused.outcome if error.message == refused.message else outcome
