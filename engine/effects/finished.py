"""How an attempt ended, before anything of it is stored; and the seam between claims and executors."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from lodger.engine.core.execution import Claim, Fetched
from lodger.engine.core.refusal import CallRefused
from lodger.engine.effects.journal import Journal
from lodger.engine.store.lifecycle.endings import End
from lodger.engine.vault.redaction import Redactor
from lodger.sandbox.job import Job, Reply, Report, ScriptError
from lodger.sandbox.outcome import Outcome


class Recording(Protocol):
    """The host calls of one attempt as a wing keeps them; stored beside the attempt."""

    def called(self, name: str, arguments: str) -> int:
        """Keep a call as it arrives; return its number for :meth:`answered`."""

    def answered(self, number: int, reply: Reply | None, refused: CallRefused | None) -> None:
        """Keep the answer of a call, None if the service behind it was gone."""

    async def close(
        self, claim: Claim, job: Job, report: Report, finished: "Finished", redactor: Redactor, runtime: str
    ) -> None:
        """End the recording with the end of its attempt."""

    def packed(self, outcome: Outcome, error: ScriptError | None) -> bytes | None:
        """Return the bytes to store beside an attempt that ends so in the ledger; None if nothing is stored."""


@dataclass(frozen=True, slots=True)
class Finished(End):
    """How an attempt ended, before anything of it is stored.

    Attributes:
        effects: description of the journal, in call order; then of the requests that were made.
        journal: the attempt's effects, None when it has none to apply.
        fetched: responses to its requests, for a later attempt of the step.
        nearly: budgets of the attempt of which it used four fifths or more: name, limit, use.
        recording: its calls, closed; None if none are kept.
    """

    journal: Journal | None = None
    fetched: tuple[Fetched, ...] = ()
    nearly: tuple[tuple[str, int, int], ...] = ()
    recording: Recording | None = None


class Stopped(asyncio.CancelledError):
    """The attempt was stopped by the cancellation of its task; ``finished`` has its logs and usage until then."""

    def __init__(self, finished: Finished) -> None:
        super().__init__()
        self.finished = finished


#: Runs one attempt, see :meth:`Executor.execute`.
Execute = Callable[[Claim], Awaitable["Finished"]]


class Executor(Protocol):
    """Runs claims. It must answer for every claim; an exception is an engine fault."""

    async def start(self) -> None:
        """Start workers and threads; safe to call twice."""

    async def stop(self) -> None:
        """Stop running attempts and release all resources; safe to call twice."""

    async def execute(self, claim: Claim) -> Finished:
        """Run one attempt to its end; cancelling the awaiting task kills the worker. May then raise :class:`Stopped`."""
