"""What the ledger answers with: plain frozen values, instants as aware UTC datetimes."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lodger.engine.recurrence.rule import ScheduleRules
from lodger.sandbox.job import LogLine, ScriptError, Usage
from lodger.sandbox.outcome import Outcome

#: Any JSON value.
Json = Any
#: A row of some query; its columns are named where the query stands.
AnyRow = Any


@dataclass(frozen=True, slots=True)
class Tenant:
    """A customer of the platform. ``state`` is active, suspended or deleted; ``labels`` bind it to nodes that carry them."""

    id: str
    name: str
    state: str
    generation: int
    limits: dict[str, Any]
    created_at: datetime
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Script:
    """A script by its latest version.

    Attributes:
        kind: script, ping (one HTTP request), host (a handler of the platform's).
        fields: its typed params as they were declared; None: any JSON value.
        offered: whether every tenant may bind it, by its name with @ before it; of the platform's own only.
    """

    tenant_id: str
    id: str
    name: str
    version: int
    created_at: datetime
    kind: str = "script"
    fields: dict[str, Any] | None = None
    offered: bool = False


@dataclass(frozen=True, slots=True)
class ScriptVersion:
    """One version of a script; never changes.

    Attributes:
        modules: source by file name, ``main.js`` the entry; empty when it is a WebAssembly module.
        digest: SHA-256 of the content.
        wasm_bytes: size of the WebAssembly module, None for JavaScript.
        kind, fields: as of :class:`Script`. A ping's request is in ``modules`` under ``ping.json``.
    """

    tenant_id: str
    script_id: str
    name: str
    version: int
    modules: dict[str, str]
    digest: str
    created_at: datetime
    wasm_bytes: int | None = None
    kind: str = "script"
    fields: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Schedule:
    """A script bound to rules.

    Attributes:
        state: armed, paused, suspended (with its tenant), ended (no slot left) or deleted.
        next_at: next slot; None unless armed.
        wake_at: when a pause ends by itself.
        text: the rules as one English sentence.
        script: the first step's script.
        steps: {"script": name} of each step in order, with its own "limits" where it has some.
        conduct: jitter_s, expires_s, priority, pause_after, labels, placement.
        failures: failed actions in a row.
    """

    id: str
    tenant_id: str
    name: str
    state: str
    next_at: datetime | None
    text: str
    revision: int
    script: str
    steps: tuple[dict[str, Any], ...]
    missed: str
    overlap: str
    rules: ScheduleRules
    tz: str
    retry: dict[str, Any]
    limits: dict[str, Any]
    params: Json
    conduct: dict[str, Any]
    failures: int
    note: str | None
    wake_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Action:
    """One slot, one gap of slots, or one request.

    Attributes:
        slot, slot_to: the slot; with ``slot_to`` the row stands for every slot in [slot, slot_to].
        reason: why it was skipped, or why it ran other than on time.
        script: of the present or last step.
        step: 0-based number of the present or last step.
        replay_of: the action that this one repeats.
        node_key: the name of the node that alone may run it, of a schedule placed on every node; else ''.
        requires: labels that a node must carry to run it.
        lateness_ms: start minus ``due_at``; None before the first start.
    """

    id: str
    tenant_id: str
    schedule_id: str | None
    schedule: str | None
    script: str | None
    script_version: int | None
    origin: str
    state: str
    reason: str | None
    slot: datetime | None
    slot_to: datetime | None
    due_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    attempt: int
    outcome: Outcome | None
    result: Any
    error: ScriptError | None
    params: Json = None
    request_key: str | None = None
    step: int = 0
    replay_of: str | None = None
    node_key: str = ""
    requires: tuple[str, ...] = ()

    @property
    def lateness_ms(self) -> float | None:
        """Milliseconds from ``due_at`` to the last start."""
        return (self.started_at - self.due_at).total_seconds() * 1000 if self.started_at else None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try. ``outcome`` is None while it runs."""

    action_id: str
    step: int
    n: int
    node_id: str
    started_at: datetime
    finished_at: datetime | None
    outcome: Outcome | None
    error: ScriptError | None
    usage: Usage
    effects: tuple[dict[str, Any], ...] = ()
    logs: tuple[LogLine, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class LastRun:
    """The latest run of a schedule, whatever became of it: when it was to start, when it did, and on which node.

    Attributes:
        slot: None for a run that was asked for.
        started_at: of its latest attempt; ``node`` ran that one.
    """

    action_id: str
    slot: datetime | None
    due_at: datetime
    started_at: datetime
    finished_at: datetime | None
    state: str
    outcome: Outcome | None
    node: str


@dataclass(frozen=True, slots=True)
class Preview:
    """What a rule says before anything is stored. ``shifted`` are the slots that DST moved from their written time."""

    text: str
    slots: tuple[datetime, ...]
    shifted: tuple[datetime, ...]
    ends: bool
