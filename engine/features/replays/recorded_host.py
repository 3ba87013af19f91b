"""Answers the host calls of a replay from a record, in the recorded order, and finds the first call that departs from it."""

import asyncio
import json
from collections import defaultdict, deque
from dataclasses import dataclass, replace

from lodger.engine.core.refusal import CallRefused
from lodger.engine.features.replays.attempt_record import AttemptRecord, Ended, RecordedCall, of_report, one_form
from lodger.engine.node.executors.attempt import sharpened
from lodger.engine.node.executors.sandbox_executor import script_bundle
from lodger.engine.trials.claims import Source
from lodger.sandbox.job import Bundle, CallHandlerGone, Job, LogLine, Reply, Runs
from lodger.sandbox.limits import LIMITS, Limits
from lodger.sandbox.outcome import Outcome


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A host call of a replay: its name, and its arguments in one form."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Departure:
    """The first call that is not the recorded one.

    Attributes:
        number: from 0.
        recorded: None if the recorded attempt made no further call.
        now: None if the replay made no further call.
    """

    number: int
    recorded: MadeCall | None
    now: MadeCall | None


class RecordedHost:
    """Satisfies :class:`lodger.sandbox.job.CallHandler` by a record.

    While the calls are those of the record, each is answered at its recorded place among the answers. After the first
    that is not, a call is answered as the same call was, wherever that stands in the record; others are refused.

    Attributes:
        stop: done once the replay makes a call that the recorded attempt was stopped before, or that was left out.
        refused: the last refusal.
        missing: places in ``made`` of calls that the record has no answer to.
        unanswered: whether a call waits for an answer that the recorded attempt did not live to see.
    """

    def __init__(self, record: AttemptRecord) -> None:
        self._record = record
        self._answers = 0
        self._turn = asyncio.Condition()
        self._unused: dict[MadeCall, deque[RecordedCall]] = defaultdict(deque)
        for each in record.calls:
            if each.order is not None:
                self._unused[MadeCall(each.name, each.arguments)].append(each)
        self.made: list[MadeCall] = []
        self.departure: Departure | None = None
        self.stop: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.refused: CallRefused | None = None
        self.missing: list[int] = []
        self.unanswered = False

    async def call(self, name: str, arguments: str) -> Reply:
        """Answer one call of the script."""
        now, number = MadeCall(name, one_form(name, arguments)), len(self.made)
        if self.departure is None and number >= len(self._record.calls) and self._cut_short():
            if not self.stop.done():
                self.stop.set_result(None)
            await asyncio.get_running_loop().create_future()
        self.made.append(now)
        if self.departure is None:
            recorded = self._record.calls[number] if number < len(self._record.calls) else None
            expected = None if recorded is None else MadeCall(recorded.name, recorded.arguments)
            if recorded is not None and expected == now:
                return await self._in_order(recorded)
            self.departure = Departure(number, expected, now)
            async with self._turn:  # from now on answers have no order
                self._turn.notify_all()
        same = self._unused.get(now)
        if same:
            return self._answer(same.popleft())
        self.missing.append(number)
        said = "the recorded run did not make this call, so there is no answer to it"
        self.refused = CallRefused("not_recorded", said)
        return Reply(False, json.dumps({"code": "not_recorded", "message": said}))

    def _cut_short(self) -> bool:
        """Whether the record ends before the attempt did."""
        return not self._record.complete or self._record.ended.outcome in STOPPED

    async def _in_order(self, recorded: RecordedCall) -> Reply:
        """Answer a recorded call at its place among the answers."""
        if recorded.order is None:  # the attempt ended before the answer
            self.unanswered = True
            await asyncio.get_running_loop().create_future()
            raise AssertionError
        order = recorded.order
        self._unused[MadeCall(recorded.name, recorded.arguments)].popleft()
        async with self._turn:
            await self._turn.wait_for(lambda: order <= self._answers or self.departure is not None)
            self._answers += 1
            self._turn.notify_all()
        return self._answer(recorded)

    def _answer(self, recorded: RecordedCall) -> Reply:
        """Return the recorded answer of a call."""
        if recorded.ok is None:
            raise CallHandlerGone("the service behind this call was gone when it was recorded")
        if not recorded.ok:
            refusal = json.loads(recorded.answer)
            self.refused = CallRefused(refusal["code"], refusal["message"], outcome=recorded.outcome)
        return Reply(recorded.ok, recorded.answer)

    def log(self, line: LogLine) -> None:
        """Do nothing: the lines are in the report."""


#: Outcomes of attempts that were stopped, by a limit of time or from outside, wherever they were.
STOPPED = frozenset({
    Outcome.CPU_LIMIT, Outcome.WALL_LIMIT, Outcome.CANCELLED, Outcome.WORKER_LOST, Outcome.ENGINE_FAULT,
})  # fmt: skip
_MAXIMUM_CPU_MS = next(spec.maximum for spec in LIMITS if spec.name == "cpu_ms")


async def run_again(
    pool: Runs, record: AttemptRecord, source: Source, *, edited: bool, tenant: str = "replay"
) -> tuple[RecordedHost, Ended]:
    """Run a source with the input and the answers of a record; return the host with the calls that it made, and its end.

    Args:
        edited: whether it is another source than the recorded one.
        tenant: owner of the compiled WebAssembly modules that are used.
    """
    host = RecordedHost(record)
    if isinstance(source, bytes):
        bundle = Bundle({}, record.context, wasm=source)
    else:
        bundle = script_bundle(source, record.context)
    job = Job(
        bundle,
        limits=_limits(record, edited=edited),
        tag=f"replay {record.script}#{record.attempt}",
        now_us=record.now_us,
        tenant=tenant,
        seed=bytes.fromhex(record.seed),
        trace=record.trace,
        stop=host.stop,
    )
    report = await pool.run(job, host)
    outcome, error = sharpened(host.refused, report.outcome, report.error), report.error
    if error is not None and outcome is not report.outcome:
        error = replace(error, name="CallRefused")
    return host, of_report(outcome, error, report)


def _limits(record: AttemptRecord, *, edited: bool) -> Limits:
    """Return the limits of a replay: a slower host gets more time for a run that was not stopped by the limit of time."""
    limits, outcome = record.process_limits, record.ended.outcome
    if edited or outcome in STOPPED:
        return limits
    return replace(limits, cpu_ms=_MAXIMUM_CPU_MS)
