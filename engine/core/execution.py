"""The seam between the ledger's claims and whatever runs them: real workers, a host handler, or nothing at all in a benchmark."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from lodger.engine.core.access.grants import DEFAULT, Grants, parse
from lodger.engine.core.params import Field
from lodger.sandbox.job import LogLine, ScriptError, Usage
from lodger.sandbox.limits import Limits
from lodger.sandbox.outcome import Outcome

_DEFAULT = parse(DEFAULT.split())


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, decoded.

    Attributes:
        url: of the request that was answered, after redirects.
        sent_bytes, received_bytes: heads and encoded bodies of all hops; TLS comes on top.
    """

    status: int
    reason: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = field(repr=False)
    redirected: bool
    sent_bytes: int
    received_bytes: int


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer as it is kept for a run that is repeated: ``key`` names the request among those of its step."""

    key: str
    answer: Answer


@dataclass(frozen=True, slots=True)
class Claim:
    """One attempt that this node holds the lease for.

    Attributes:
        action_id: UUIDv7 text.
        lease_epoch: of this node when it claimed; a commit under another epoch changes nothing.
        modules: source by file name, ``main.js`` first; empty for a WebAssembly module.
        wasm: the module's bytes, None for JavaScript.
        slot_us: the slot, microseconds UTC; None for requests without one.
        due_us: when it should start, jitter included.
        params: the schedule's or request's input value (JSON-able).
        previous_slot_us, upcoming_us, last_result, last_start_us, last_node: the script's view of its schedule.
        attempt: number over all steps and tries of the action; part of the fence.
        grants: what the run holds.
        tries: which try of its step this is, from 1.
        dry_run: journal is shown, never applied.
        fetches: in a dry run every request leaves, not only those that change nothing.
        kind: what executes it: script, ping, host.
        fields: the typed params of its script, None for any JSON value.
        budgets: most of each budget of the attempt, by name; what is absent has its default.
        day: limit and use of each budget of the tenant's day that has a limit, as of the claim.
        storage: limit and use of what the tenant's bytes may be, as of the claim.
    """

    action_id: str
    tenant_id: str
    schedule_id: str | None
    script_name: str
    script_version: int
    modules: dict[str, str]
    attempt: int
    step: int
    lease_epoch: int
    origin: str
    slot_us: int | None
    due_us: int
    started_us: int
    tz: str = "UTC"
    params: Any = None
    previous_slot_us: int | None = None
    upcoming_us: tuple[int, ...] = ()
    last_result: Any = None
    grants: Grants = _DEFAULT
    limits: Limits = field(default_factory=Limits)
    dry_run: bool = False
    tries: int = 1
    last_start_us: int | None = None
    last_node: str | None = None
    wasm: bytes | None = field(default=None, repr=False)
    fetches: bool = False
    kind: str = "script"
    fields: tuple[Field, ...] | None = None
    budgets: Mapping[str, int] = field(default_factory=dict)
    day: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    storage: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Finished:
    """How an attempt ended, before anything of it is stored.

    Attributes:
        journal: the attempt's effects (:class:`lodger.engine.effects.journal.Journal`), None when it has none to apply.
        effects: JSON-able description of the journal for people, in call order; then of the requests that were made.
        fetched: what its requests were answered, for a run that repeats it.
        spent: what it used of its budgets, by name.
        has_reservation: it holds a share of its tenant's day.
        nearly: budgets of the attempt of which it used four fifths or more: name, limit, use.
    """

    outcome: Outcome
    result: str | None = None
    error: ScriptError | None = None
    logs: tuple[LogLine, ...] = ()
    usage: Usage = field(default_factory=Usage)
    journal: Any = None
    effects: tuple[dict[str, Any], ...] = ()
    fetched: tuple[Fetched, ...] = ()
    spent: Mapping[str, int] = field(default_factory=dict)
    has_reservation: bool = False
    nearly: tuple[tuple[str, int, int], ...] = ()


class Stopped(asyncio.CancelledError):
    """The attempt was killed by the cancellation of its task; ``finished`` is what it had logged and used until then."""

    def __init__(self, finished: Finished) -> None:
        super().__init__()
        self.finished = finished


class Executor(Protocol):
    """Runs claims. It must answer for every claim; an exception is an engine fault."""

    async def start(self) -> None:
        """Make ready; safe to call twice."""
        ...

    async def stop(self) -> None:
        """End what runs and let go of everything; safe to call twice."""
        ...

    async def execute(self, claim: Claim) -> Finished:
        """Run one attempt to its end; cancelling the awaiting task kills the worker. May then raise :class:`Stopped`."""
        ...
