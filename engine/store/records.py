"""What the ledger answers with: plain frozen values, instants as aware UTC datetimes."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from lodger.engine.recurrence.rule import ScheduleRules
from lodger.sandbox.job import LogLine, ScriptError, Usage
from lodger.sandbox.outcome import Outcome

#: Any JSON value.
Json = Any
#: A row of some query; its columns are named where the query stands.
AnyRow = Any


T = TypeVar("T")


class Page(list[T], Generic[T]):
    """A list that knows how it goes on: ``next`` is the cursor of the page after, None when there is none."""

    __slots__ = ("next",)

    def __init__(self, items: Iterable[T] = (), next: str | None = None) -> None:  # noqa: A002 - the word of the field
        super().__init__(items)
        self.next = next


@dataclass(frozen=True, slots=True)
class Tenant:
    """A customer of the platform.

    Attributes:
        state: active, suspended or deleted.
        grants: what it holds, as written; None: what the setting ``grants`` says.
        people: addresses and ``*@domain`` that it may mail without further grant.
        labels: what a node must carry to run anything of it.
    """

    id: str
    name: str
    state: str
    generation: int
    limits: dict[str, Any]
    created_at: datetime
    grants: tuple[str, ...] | None = None
    people: tuple[str, ...] = ()
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
        grants: of the tenant's grants those it needs; None: all of them.
        created_by: who stored it; ``why`` is the reason that was given.
        kind, fields: as of :class:`Script`. A ping's request is in ``modules`` under ``ping.json``.
        unchecked: said by what stores a source alone: why nobody has parsed it before, though somebody should have.
    """

    tenant_id: str
    script_id: str
    name: str
    version: int
    modules: dict[str, str]
    digest: str
    created_at: datetime
    wasm_bytes: int | None = None
    grants: tuple[str, ...] | None = None
    created_by: str | None = None
    why: str | None = None
    kind: str = "script"
    fields: dict[str, Any] | None = None
    unchecked: str | None = None


@dataclass(frozen=True, slots=True)
class Schedule:
    """A script bound to rules.

    Attributes:
        state: armed, paused, suspended (with its tenant), ended (no slot left) or deleted.
        next_at: next slot; None unless armed.
        searched_to: set when the next slot is not known yet: none lies before it, and the search goes on then.
        wake_at: when a pause ends by itself.
        text: the rules as one English sentence.
        script: the first step's script.
        steps: {"script": name} of each step in order, with its own "limits" where it has some.
        conduct: jitter_s, expires_s, priority, pause_after, labels, placement.
        failures: failed actions in a row.
        grants: of its scripts' grants those it gives them; None: all of them.
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
    grants: tuple[str, ...] | None = None
    searched_to: datetime | None = None


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
        lateness_ms: start minus ``due_at``; None before the first start, and while it is due again.
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
        """Milliseconds from ``due_at`` to the last start; None when it is due only after that, to be tried again."""
        if self.started_at is None or self.started_at < self.due_at:
            return None
        return (self.started_at - self.due_at).total_seconds() * 1000


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
    """What a rule says before anything is stored.

    Attributes:
        shifted: the slots that DST moved from their written time.
        searched_to: set when more slots were wanted and none was found before it; later ones are not excluded.
    """

    text: str
    slots: tuple[datetime, ...]
    shifted: tuple[datetime, ...]
    ends: bool
    searched_to: datetime | None = None


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One change: who made it, by which way, when and why, with what was before and after it.

    Attributes:
        tenant_id: whose; None for the platform's own.
        via: python, cli, http, or node for what the engine does by itself.
        verb: noun and verb, as ``schedules.pause``.
        target: id of what was changed; ``named`` is what people call it.
        before, after: its JSON shape; long values are ``{"bytes", "sha256"}``. None where there was nothing.
    """

    id: str
    at: datetime
    tenant_id: str | None
    actor: str
    via: str
    verb: str
    target: str
    named: str | None
    before: Json
    after: Json
    why: str | None
    request_id: str | None


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token, without its secret.

    Attributes:
        role: admin or operator of the platform; editor or viewer of one tenant.
        prefix: the public beginning of its text, by which people recognise it.
        used_at: the last use, to the minute.
    """

    id: str
    name: str
    role: str
    tenant_id: str | None
    prefix: str
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None
    used_at: datetime | None


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token just made. ``text`` is what is sent as ``Authorization: Bearer``; it is shown here and never again."""

    token: Token
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class FileDiff:
    """One file that differs: added, removed or changed, with a unified diff of its lines."""

    file: str
    state: str
    text: str


@dataclass(frozen=True, slots=True)
class ScriptDiff:
    """What differs between two versions of a script."""

    name: str
    older: int
    newer: int
    files: tuple[FileDiff, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """One field that differs."""

    field: str
    before: Json
    after: Json


@dataclass(frozen=True, slots=True)
class ScheduleDiff:
    """What differs between two revisions of a schedule."""

    schedule_id: str
    older: int
    newer: int
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class ScheduleRevision:
    """A schedule as it was from one edit to the next; never changes.

    Attributes:
        steps: {"script": name} of each step, with its "version" where it names one and its "limits" where it has some.
        created_by: who made it; ``why`` is the reason that was given.
    """

    tenant_id: str
    schedule_id: str
    revision: int
    text: str
    rules: ScheduleRules
    steps: tuple[dict[str, Any], ...]
    missed: str
    overlap: str
    retry: dict[str, Any]
    limits: dict[str, Any]
    params: Json
    conduct: dict[str, Any]
    grants: tuple[str, ...] | None
    created_at: datetime
    created_by: str | None
    why: str | None


@dataclass(frozen=True, slots=True)
class Counters:
    """What became of a schedule's actions, of those whose history is kept.

    Attributes:
        actions: rows by state; a gap of many slots is one row.
        skipped: skipped rows by reason.
        failures: failed actions in a row, up to now.
        since: due instant of the oldest that is counted; None when there is none.
    """

    schedule_id: str
    actions: dict[str, int]
    skipped: dict[str, int]
    failures: int
    since: datetime | None


@dataclass(frozen=True, slots=True)
class DryRun:
    """How a run ended that left nothing behind.

    Attributes:
        effects: what it would have changed and sent, in the order of its calls.
        diff: the same for people, line by line (:mod:`lodger.engine.service.effect_diff`).
    """

    outcome: Outcome
    result: Json
    error: ScriptError | None
    logs: tuple[LogLine, ...]
    usage: Usage
    effects: tuple[dict[str, Any], ...]
    diff: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """Whether a source is a script that could run, and if not, where not."""

    ok: bool
    problems: tuple[ScriptError, ...]
