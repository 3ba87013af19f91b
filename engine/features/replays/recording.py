"""Keeps an attempt's calls with their answers while it runs, for a record of it; costs two list entries a call."""

import asyncio
import base64
import logging
from dataclasses import asdict, dataclass, replace

from lodger.engine.core.execution import Claim
from lodger.engine.core.refusal import CallRefused
from lodger.engine.core.version import VERSION
from lodger.engine.effects.finished import Finished
from lodger.engine.features.replays import attempt_record as record
from lodger.engine.features.replays.attempt_record import AttemptRecord, Ended, RecordedCall
from lodger.engine.vault.redaction import Redactor
from lodger.sandbox.job import Job, Reply, Report, ScriptError
from lodger.sandbox.outcome import Outcome

#: Maximum number of characters of calls and answers that an attempt keeps in memory.
MAX_KEPT = 4 << 20
#: Fewer characters of calls, input, log and result are compressed at once.
_SMALL = 1 << 16
_journal = logging.getLogger("lodger.node")


@dataclass(slots=True)
class _Call:
    name: str
    arguments: str
    order: int | None = None
    reply: Reply | None = None
    outcome: Outcome | None = None


class Recording:
    """The calls of one attempt, then its record.

    Args:
        always: whether a successful attempt is recorded too.
        shadow: id of the shadow that is compared with the attempt; None for none.
    """

    def __init__(self, *, always: bool = False, shadow: str | None = None) -> None:
        self.always = always
        self.shadow = shadow
        self._calls: list[_Call] = []
        self._kept = self._answers = self._size = 0
        self._full = False
        self._of: tuple[Claim, Job, Report, Ended, Redactor, str] | None = None
        self._packed: bytes | None = None

    def called(self, name: str, arguments: str) -> int:
        """Keep a call as it arrives; return its number for :meth:`answered`."""
        self._kept += len(arguments)
        if self._full or self._kept > MAX_KEPT:
            self._full = True
            return -1
        self._calls.append(_Call(name, arguments))
        return len(self._calls) - 1

    def answered(self, number: int, reply: Reply | None, refused: CallRefused | None) -> None:
        """Keep the answer of a call, None if the service behind it was gone."""
        if number < 0:
            return
        call = self._calls[number]
        self._kept += 0 if reply is None else len(reply.json)
        if self._kept > MAX_KEPT:
            # A call without its answer cannot be repeated, nor can later ones.
            self._full = True
            del self._calls[number:]
            return
        if number < len(self._calls):
            call.order, call.reply = self._answers, reply
            self._answers += 1
            if reply is not None and not reply.ok and refused is not None:
                call.outcome = refused.outcome

    async def close(
        self, claim: Claim, job: Job, report: Report, finished: Finished, redactor: Redactor, runtime: str
    ) -> None:
        """End the recording; the record itself is made when it is asked for.

        The form in which it is stored is made here, a large one in a thread: a commit must not wait for it.
        """
        self._size = self._kept + len(job.bundle.context) + len(finished.result or "")
        self._size += sum(len(line.text) for line in report.logs)
        # Not the end itself, which has this recording: what refers to itself is left to the collector, with the job and all it holds.
        ended = Ended(finished.outcome, finished.error, finished.result, usage=report.usage)
        self._of = claim, job, report, ended, redactor, runtime
        if self.always or finished.outcome is not Outcome.OK:
            self._packed = self._pack() if self._size < _SMALL else await asyncio.to_thread(self._pack)

    def record(self) -> AttemptRecord:
        """Return the record of the attempt, from its claim, its job and its end, once the recording is closed."""
        assert self._of is not None
        claim, job, report, ended, redactor, runtime = self._of
        calls = tuple(_recorded(each, redactor) for each in self._calls)
        secrets = {
            record.secret_of(each.arguments)
            for each in self._calls
            if each.name == "secrets.read" and each.reply is not None and each.reply.ok
        }
        lines = tuple((level, redactor.text(text)) for level, text in record.lines_of(report.logs))
        return AttemptRecord(
            format=record.FORMAT,
            lodger=VERSION,
            runtime=runtime,
            action=claim.action_id,
            step=claim.step,
            attempt=claim.attempt,
            script=claim.script_name,
            version=claim.script_version,
            now_us=job.now_us,
            seed=job.seed.hex(),
            clock=base64.b64encode(report.trace).decode(),
            limits=asdict(claim.limits),
            context=redactor.json(job.bundle.context) or "null",
            calls=record.in_order(calls) if self._full else calls,
            ended=replace(ended, logs=lines),
            complete=not self._full,
            secrets=tuple(sorted(secrets)),
        )

    def _pack(self, committed: Ended | None = None) -> bytes | None:
        """Return the packed record; None if it cannot be made."""
        try:
            return record.pack(replace(self.record(), committed=committed))
        except Exception:  # noqa: BLE001 - an attempt keeps its end, with or without a record
            _journal.exception("an attempt is not recorded")
            return None

    def packed(self, outcome: Outcome, error: ScriptError | None) -> bytes | None:
        """Return the record in the form in which it is stored; None if there is none, or a successful attempt is not recorded.

        A large record is not made anew inside the commit: where the commit changed the outcome, it has the one of before.

        Args:
            outcome, error: outcome and error of the attempt in the ledger.
        """
        if outcome is Outcome.OK and not self.always:
            return None
        if (self._of and outcome is self._of[3].outcome) or self._size >= _SMALL:
            return self._packed
        return self._pack(Ended(outcome, error))


def _recorded(call: _Call, redactor: Redactor) -> RecordedCall:
    """Return a host call for a record, without secrets."""
    arguments = record.one_form(call.name, redactor.json(call.arguments) or "null")
    if call.reply is None:
        return RecordedCall(call.name, arguments, call.order)
    answer = record.answer_of(call.name, call.arguments, call.reply.json)
    return RecordedCall(call.name, arguments, call.order, call.reply.ok, redactor.json(answer) or "null", call.outcome)
