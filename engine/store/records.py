"""Results of the ledger's queries: frozen dataclasses with aware UTC datetimes."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Generic, Literal, TypeVar

from lodger.engine.core.states import ActionState, Origin, OverlapPolicy, RoleName, ScheduleState, TenantState
from lodger.engine.recurrence.rule import ScheduleRules
from lodger.sandbox.job import LogLine, ScriptError, Usage
from lodger.sandbox.outcome import Outcome

#: Any JSON value.
Json = Any
#: A row of a query; the query names its columns.
AnyRow = Any


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PageOrder:
    """The order of a page's list, by which pages of several ledgers are merged.

    Attributes:
        of: the list with all its filters.
        places: the place of each entry.
        falls: whether the places fall.
        end: place up to which the page has looked; None: that of its last entry.
    """

    of: str
    places: list[Json]
    falls: bool
    end: Json = None


class Page(list[T], Generic[T]):
    """A list with ``next``, the cursor of the following page, or None on the last page; ``order`` is for engines only."""

    __slots__ = ("next", "order")

    def __init__(
        self,
        items: Iterable[T] = (),
        next: str | None = None,  # noqa: A002 - the word of the field
        order: PageOrder | None = None,
    ) -> None:
        super().__init__(items)
        self.next = next
        self.order = order


@dataclass(frozen=True, slots=True)
class Tenant:
    """A customer of the platform.

    Attributes:
        state: active, suspended or deleted.
        grants: its grants as written; None for those of the setting ``grants``.
        people: addresses and ``*@domain`` patterns that it may mail without further grants.
        labels: labels that a node must carry to run its scripts.
        limits: its own limits, which come before those of its plan.
        plan: name of the set of limits that it refers to.
        tz: zone of its schedules that name none; None: UTC.
        limits_in_effect: its own limits and those of its plan.
    """

    ETAG: ClassVar = ("id", "generation", "name", "state", "limits", "grants", "people", "labels", "plan", "tz")
    LOCATION: ClassVar = "/tenants/{id}"

    id: str
    name: str
    state: TenantState
    generation: int
    limits: dict[str, Any]
    created_at: datetime
    grants: tuple[str, ...] | None = None
    people: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    plan: str | None = None
    tz: str | None = None
    limits_in_effect: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Script:
    """A script with its latest version.

    Attributes:
        kind: script, library (imported by others, never run), ping (one HTTP request), host (a handler of the platform).
        fields: typed params as declared; None for any JSON value.
        offered: whether every tenant may bind it by its name with @ before it; platform scripts only.
        state: active, or suspended: none of its actions starts.
    """

    ETAG: ClassVar = ("id", "version", "state")

    tenant_id: str
    id: str
    name: str
    version: int
    created_at: datetime
    kind: str = "script"
    fields: dict[str, Any] | None = None
    offered: bool = False
    state: str = "active"


@dataclass(frozen=True, slots=True)
class ScriptVersion:
    """One version of a script; immutable, except for the script's state.

    Attributes:
        modules: the author's files by name, with ``main.js`` or ``main.ts`` as the entry; empty for a WebAssembly module.
        digest: SHA-256 of the content.
        wasm_bytes: size of the WebAssembly module, None for JavaScript.
        grants: the grants it needs; None for all grants of its tenant.
        created_by: actor of the change; ``why`` is the reason given for it.
        kind, fields, state: as of :class:`Script`. The request of a ping is in ``modules`` under ``ping.json``.
        uses: versions of other scripts that it imports, by the start of the import: lib:NAME@VERSION or ../SCRIPT.
        unchecked: why the source was stored without a syntax check; set in the answer of the storing call only.
    """

    ETAG: ClassVar = ("script_id", "version", "state")

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
    state: str = "active"
    uses: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Schedule:
    """A script bound to rules.

    Attributes:
        state: armed, paused, suspended (with its tenant), ended (no slot left) or deleted.
        next_at: next slot; None unless armed.
        searched_to: instant up to which no slot was found, if the search for the next slot is not finished.
        wake_at: end of a pause that ends by itself.
        text: the rules as one English sentence.
        script: script of the first step.
        steps: {"script": name} of each step in order, with "limits" if the step has its own.
        conduct: jitter_s, expires_s, priority, pause_after, labels, placement.
        failures: number of consecutive failed actions.
        grants: the grants that its scripts may use; None for all of theirs.
    """

    ETAG: ClassVar = ("id", "revision", "state", "note", "wake_at")
    LOCATION: ClassVar = "/tenants/{tenant_id}/schedules/{name}"

    id: str
    tenant_id: str
    name: str
    state: ScheduleState
    next_at: datetime | None
    text: str
    revision: int
    script: str
    steps: tuple[dict[str, Any], ...]
    missed: str
    overlap: OverlapPolicy
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
        slot, slot_to: the slot; a row with ``slot_to`` covers every slot in [slot, slot_to].
        reason: why it was skipped, or why it did not run on time.
        script: script of the current or last step.
        step: 0-based number of the current or last step.
        replay_of: the action that this one repeats.
        requested_by: ``action ID`` if the run of a script requested it, ``url NAME`` if a request to a URL of its script did.
        node_key: name of the only node that may run it, for a schedule placed on every node; else ''.
        requires: labels that a node must carry to run it.
        lateness_ms: start minus ``due_at``; None before the first start and while a retry is due.
    """

    LOCATION: ClassVar = "/tenants/{tenant_id}/actions/{id}"
    id: str
    tenant_id: str
    schedule_id: str | None
    schedule: str | None
    script: str | None
    script_version: int | None
    origin: Origin
    state: ActionState
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
    requested_by: str | None = None
    node_key: str = ""
    requires: tuple[str, ...] = ()

    @property
    def lateness_ms(self) -> float | None:
        """Milliseconds from ``due_at`` to the last start; None if that start lies before ``due_at``, as with a retry."""
        if self.started_at is None or self.started_at < self.due_at:
            return None
        return (self.started_at - self.due_at).total_seconds() * 1000


@dataclass(frozen=True, slots=True)
class Attempt:
    """One execution of one step.

    Attributes:
        outcome: None while it runs.
        node: name of its node; None once the node is forgotten.
    """

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
    node: str | None = None


@dataclass(frozen=True, slots=True)
class LastRun:
    """The latest run of a schedule: when it was due, when it started, its state, and its node.

    Attributes:
        slot: None for a run by request.
        started_at: start of its latest attempt, on ``node``.
    """

    action_id: str
    slot: datetime | None
    due_at: datetime
    started_at: datetime
    finished_at: datetime | None
    state: ActionState
    outcome: Outcome | None
    node: str


@dataclass(frozen=True, slots=True)
class Preview:
    """The slots of rules that are not stored.

    Attributes:
        shifted: slots that DST moved from their local time.
        searched_to: instant at which the search stopped before it found all slots; later slots may exist.
        days: number of slots of each day that was asked for, by its date.
        never: why the rules never have a slot; None if they have some, or if it is not known.
        excluded: the exclusion that removes the most slots, with their number, if the search found no slot.
    """

    text: str
    slots: tuple[datetime, ...]
    shifted: tuple[datetime, ...]
    ends: bool
    searched_to: datetime | None = None
    never: str | None = None
    excluded: str | None = None
    days: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One change: actor, interface, time and reason, with the state before and after.

    Attributes:
        tenant_id: None for a change of the platform.
        via: python, cli, http, or node for changes by the engine itself.
        verb: noun and verb, such as ``schedules.pause``.
        target: id of the changed object; ``named`` is its name.
        before, after: JSON shape of the object, None if it does not exist; long values are ``{"bytes", "sha256"}``.
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
        role: of the platform, or of one tenant.
        prefix: the public first characters of its text.
        used_at: time of the last use, to the minute.
    """

    ETAG: ClassVar = ("id", "revoked_at")

    id: str
    name: str
    role: RoleName
    tenant_id: str | None
    prefix: str
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None
    used_at: datetime | None


@dataclass(frozen=True, slots=True)
class SignInLink:
    """A link that signs a user of a tenant in once. ``path`` stands below the dashboard's address; ``&next=`` names a page of it."""

    path: str = field(repr=False)
    name: str
    role: RoleName
    tenant_id: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class CreatedToken:
    """A token just created. ``text`` is the value for ``Authorization: Bearer``; it is shown only once."""

    LOCATION: ClassVar = "/tokens/{id}"

    token: Token
    text: str = field(repr=False)

    @property
    def id(self) -> str:
        """Id of the token."""
        return self.token.id


@dataclass(frozen=True, slots=True)
class FileDiff:
    """One file that differs: added, removed or changed, with a unified diff of its lines."""

    file: str
    state: Literal["added", "removed", "changed"]
    text: str


@dataclass(frozen=True, slots=True)
class ScriptDiff:
    """Differences between two versions of a script."""

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
    """Differences between two revisions of a schedule."""

    schedule_id: str
    older: int
    newer: int
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class ScheduleRevision:
    """The content of a schedule between two edits; immutable.

    Attributes:
        steps: {"script": name} of each step, with "version" if pinned and "limits" if the step has its own.
        created_by: actor of the change; ``why`` is the reason given for it.
    """

    tenant_id: str
    schedule_id: str
    revision: int
    text: str
    rules: ScheduleRules
    steps: tuple[dict[str, Any], ...]
    missed: str
    overlap: OverlapPolicy
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
    """Numbers of a schedule's actions, as far as its history is kept.

    Attributes:
        actions: rows by state; a gap of many slots is one row.
        skipped: skipped rows by reason.
        failures: number of consecutive failed actions.
        since: due instant of the oldest counted action; None if there is none.
        complete: False if a state has more actions than were counted.
    """

    schedule_id: str
    actions: dict[str, int]
    skipped: dict[str, int]
    failures: int
    since: datetime | None
    complete: bool


@dataclass(frozen=True, slots=True)
class DryRun:
    """Result of a dry run.

    Attributes:
        effects: the effects that the run would have had, in the order of its calls.
        diff: the effects as lines of text (:mod:`lodger.engine.service.effect_diff`).
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
    """Whether a source is a script that could run, its problems if not, and names in it that nothing declares."""

    ok: bool
    problems: tuple[ScriptError, ...]
    hints: tuple[ScriptError, ...] = ()
