"""A claim: one attempt as its node received it from the ledger."""

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from lodger.engine.core.access.grants import DEFAULT, Grants, parse
from lodger.engine.core.params import Field
from lodger.sandbox.job import Slot
from lodger.sandbox.limits import Limits

_DEFAULT = parse(DEFAULT.split())
#: Slot of the attempt that the current task executes; None where none is counted.
SLOT: ContextVar[Slot | None] = ContextVar("lodger-slot", default=None)


@dataclass(frozen=True, slots=True)
class Answer:
    """A decoded HTTP response.

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
    """A response that is kept for later attempts; ``key`` identifies the request within its step."""

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
        due_us: planned start, jitter included.
        params: the schedule's or request's input value (JSON-able).
        previous_slot_us, upcoming_us, last_result, last_start_us, last_node: the script's view of its schedule.
        attempt: number over all steps and tries of the action; part of the fence.
        grants: grants of the attempt.
        tries: number of this attempt among those of its step, from 1.
        trial: whether the effects are shown and not applied.
        fetches: whether a trial sends every request, not only those with GET and HEAD.
        offline: whether a trial sends no request at all and gets no secret.
        kind: kind of its script: script, ping or host.
        fields: the typed params of its script, None for any JSON value.
        budgets: maximum of each budget of the attempt, by name; absent ones have their defaults.
        day: limit and use of each budget of the tenant's day that has a limit, as of the claim.
        storage: limit and use of the tenant's storage in bytes, as of the claim.
        pretended_us: time that the script of a trial sees as now; None for the clock's.
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
    trial: bool = False
    tries: int = 1
    last_start_us: int | None = None
    last_node: str | None = None
    wasm: bytes | None = field(default=None, repr=False)
    fetches: bool = False
    offline: bool = False
    kind: str = "script"
    fields: tuple[Field, ...] | None = None
    budgets: Mapping[str, int] = field(default_factory=dict)
    day: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    storage: tuple[int, int] | None = None
    pretended_us: int | None = None


#: Name of the error of an attempt whose node lacks an exposed table; the first word of its message is the table's.
SET_ELSEWHERE = "SetElsewhere"
