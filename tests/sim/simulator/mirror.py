"""The mirror: a copy of the ledger's rows in memory, updated from the recorded changes of each transaction."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.sim.simulator.oracle import Oracle
from tests.sim.simulator.recorder import Row

OPEN = frozenset({"ready", "running", "sealed", "waiting_retry"})
OVER = frozenset({"done", "failed", "cancelled", "skipped", "expired"})
STARTABLE = frozenset({"ready", "waiting_retry"})
#: (tenant, required labels): actions that share a turn.
Line = tuple[str, str]


@dataclass(slots=True)
class Action:
    """A row of ``lodger_actions``; the columns of :data:`tests.sim.simulator.recorder.SEEN` in their order."""

    tenant: str
    id: str
    schedule: str | None
    revision: int | None
    origin: str
    slot: int | None
    slot_to: int | None
    due: int
    state: str
    held: int
    reason: str | None
    node: str | None
    epoch: int | None
    step: int
    attempt: int
    started: int | None
    expires: int | None
    finished: int | None
    outcome: str | None
    version: int | None
    requires: str

    @property
    def startable(self) -> bool:
        """Whether it waits only for its turn and its time."""
        return not self.held and self.state in STARTABLE

    @property
    def line(self) -> Line:
        """The line in which it waits for its turn."""
        return (self.tenant, self.requires)


@dataclass(slots=True)
class ScheduleClock:
    """A row of ``lodger_schedule_clock``."""

    tenant: str
    schedule: str
    state: str
    next_at: int | None
    accounted: int
    revision: int
    wake_at: int | None


@dataclass(slots=True)
class Bound:
    """A row of ``lodger_schedules``."""

    tenant: str
    id: str
    revision: int
    deleted_us: int | None


@dataclass(slots=True)
class Turn:
    """A row of ``lodger_turns``: the order of tenants for actions that require these labels."""

    tenant: str
    requires: str
    bound: str
    served: int
    startable_at: int | None
    cap: int


@dataclass(slots=True)
class Tenant:
    """A row of ``lodger_tenants``."""

    id: str
    state: str
    generation: int


@dataclass(slots=True)
class NodeRow:
    """A row of ``lodger_nodes``."""

    id: str
    epoch: int
    state: str
    until: int
    labels: str


@dataclass(frozen=True, slots=True)
class ScheduleRevision:
    """A row of ``lodger_schedule_revisions``; ``oracle`` returns its slots."""

    oracle: Oracle
    overlap: str


@dataclass(slots=True)
class Transaction:
    """Changes of one transaction: by key, the row before and after, None if there was or is none.

    Attributes:
        process_name: of the process that wrote it.
        at_s: virtual time of the commit in seconds.
        now_us: wall clock at the commit; ``latest_us`` is the latest time it ever showed.
        slots: inserted rows of origin slot by schedule, in order.
        effects: (action, step, n, node, epoch) of applied journals.
        attempts: (action, step, n) and outcome of ended attempts, with their tenants.
        reported: tenants of cancelled attempts for which a node has reported the usage.
        runs: newly charged runs by tenant.
    """

    process_name: str
    at_s: float
    now_us: int
    latest_us: int
    actions: dict[str, tuple[Action | None, Action | None]] = field(default_factory=dict)
    clocks: dict[str, tuple[ScheduleClock | None, ScheduleClock | None]] = field(default_factory=dict)
    schedules: dict[str, tuple[Bound | None, Bound | None]] = field(default_factory=dict)
    turns: dict[Line, tuple[Turn | None, Turn | None]] = field(default_factory=dict)
    tenants: dict[str, tuple[Tenant | None, Tenant | None]] = field(default_factory=dict)
    nodes: dict[str, tuple[NodeRow | None, NodeRow | None]] = field(default_factory=dict)
    slots: dict[str, list[Action]] = field(default_factory=dict)
    effects: list[tuple[str, int, int, str, int]] = field(default_factory=list)
    reported: list[str] = field(default_factory=list)
    attempts: dict[tuple[str, int, int], tuple[str, str]] = field(default_factory=dict)
    runs: dict[str, int] = field(default_factory=dict)

    @property
    def is_notable(self) -> bool:
        """Whether it changed more than leases and turns."""
        moved = any(old is None or new is None or old.epoch != new.epoch for old, new in self.nodes.values())
        return moved or bool(self.actions or self.clocks or self.tenants or self.effects)


class Mirror:
    """All rows that the laws use.

    Args:
        understood: returns the oracle of stored rules.
    """

    def __init__(self, understood: Callable[[str], Oracle]) -> None:
        self._understood = understood
        self.actions: dict[str, Action] = {}
        self.clocks: dict[str, ScheduleClock] = {}
        self.schedules: dict[str, Bound] = {}
        self.turns: dict[Line, Turn] = {}
        self.lines_of: dict[str, set[Line]] = defaultdict(set)
        self.tenants: dict[str, Tenant] = {}
        self.nodes: dict[str, NodeRow] = {}
        self.terms: dict[tuple[str, int], ScheduleRevision] = {}
        self.usage: dict[tuple[str, int], int] = {}
        #: Unfinished actions by schedule; None for those without one.
        self.open: dict[str | None, dict[str, Action]] = defaultdict(dict)
        self.running_of: dict[str, set[str]] = defaultdict(set)
        self.running_on: dict[str, set[str]] = defaultdict(set)
        self.startable_of: dict[Line, dict[str, int]] = defaultdict(dict)
        self.effects: set[tuple[str, int]] = set()
        self.done: set[tuple[str, int]] = set()
        #: Number of the claim that served each tenant last, which determines its turn.
        self.served: dict[str, int] = defaultdict(int)
        self.services = 0
        self.passed_by: dict[str, int] = defaultdict(int)
        #: Attempts of a step (action, step) that the machine took away.
        self.losses: defaultdict[tuple[str, int], int] = defaultdict(int)
        self.served_s: dict[str, float] = defaultdict(float)

    def take(self, rows: Iterable[Row], transaction: Transaction) -> None:
        """Apply the rows of a transaction and record the changes in it."""
        for table, how, cells in rows:
            if table in _PLACES:
                self._row(transaction, table, how, cells)
            else:
                _TAKEN[table](self, transaction, how, cells)

    def _action(self, transaction: Transaction, how: str, cells: tuple[Any, ...]) -> None:
        """Apply a changed row of an action; ``how`` is i, u or d."""
        key = cells[1]
        old = self.actions.get(key)
        new = None if how == "d" else Action(*cells)
        before = transaction.actions.get(key)
        transaction.actions[key] = (old if before is None else before[0], new)
        if new is None:
            self.actions.pop(key, None)
        else:
            self.actions[key] = new
            if how == "i" and new.origin == "slot" and new.schedule is not None:
                transaction.slots.setdefault(new.schedule, []).append(new)
        self._index(old, new)

    def _index(self, old: Action | None, new: Action | None) -> None:
        """Keep the indexes of open and running actions."""
        if old is not None:
            self.open[old.schedule].pop(old.id, None)
            if old.state == "running":
                self.running_of[old.tenant].discard(old.id)
                self.running_on[old.node or ""].discard(old.id)
            elif old.startable:
                self.startable_of[old.line].pop(old.id, None)
        if new is not None and new.state in OPEN:
            self.open[new.schedule][new.id] = new
            if new.state == "running":
                self.running_of[new.tenant].add(new.id)
                self.running_on[new.node or ""].add(new.id)
            elif new.startable:
                self.startable_of[new.line][new.id] = new.due

    def _row(self, transaction: Transaction, table: str, how: str, cells: tuple[Any, ...]) -> None:
        """Apply a changed row of a table that has no rule of its own here."""
        place, made, key = _PLACES[table]
        rows, changed = getattr(self, place), getattr(transaction, place)
        name = cells[key]
        old = rows.get(name)
        new = None if how == "d" else made(*cells)
        changed[name] = (changed[name][0] if name in changed else old, new)
        if new is None:
            rows.pop(name, None)
        else:
            rows[name] = new

    def _turn(self, transaction: Transaction, how: str, cells: tuple[Any, ...]) -> None:
        """Apply a changed turn."""
        line = (cells[0], cells[1])
        old = self.turns.get(line)
        new = None if how == "d" else Turn(*cells)
        transaction.turns[line] = (transaction.turns[line][0] if line in transaction.turns else old, new)
        if new is None:
            self.turns.pop(line, None)
            self.lines_of[line[0]].discard(line)
        else:
            self.turns[line] = new
            self.lines_of[line[0]].add(line)

    def _revision(self, _transaction: Transaction, how: str, cells: tuple[Any, ...]) -> None:
        if how == "d":
            self.terms.pop((cells[1], cells[2]), None)
        else:
            _tenant, schedule, number, rules, overlap = cells
            self.terms[schedule, number] = ScheduleRevision(self._understood(rules), overlap)

    def _attempt(self, transaction: Transaction, how: str, cells: tuple[Any, ...]) -> None:
        if how == "i":
            tenant, action, step, number, outcome, _node, _epoch = cells
            transaction.attempts[action, step, number] = (tenant, outcome)
        elif how == "u" and cells[4] == "cancelled":
            transaction.reported.append(cells[0])

    def _effect(self, transaction: Transaction, how: str, cells: tuple[Any, ...]) -> None:
        if how == "i":
            transaction.effects.append(cells)

    def _usage(self, transaction: Transaction, how: str, cells: tuple[Any, ...]) -> None:
        tenant, day = cells[0], cells[1]
        if how == "d":
            self.usage.pop((tenant, day), None)
            return
        more = cells[2] - self.usage.get((tenant, day), 0)
        self.usage[tenant, day] = cells[2]
        transaction.runs[tenant] = transaction.runs.get(tenant, 0) + more


#: Tables that are copied only: attribute, class of rows, index of the key.
_PLACES: dict[str, tuple[str, type, int]] = {
    "lodger_schedule_clock": ("clocks", ScheduleClock, 1),
    "lodger_schedules": ("schedules", Bound, 1),
    "lodger_tenants": ("tenants", Tenant, 0),
    "lodger_nodes": ("nodes", NodeRow, 0),
}
_TAKEN = {
    "lodger_actions": Mirror._action,
    "lodger_turns": Mirror._turn,
    "lodger_schedule_revisions": Mirror._revision,
    "lodger_attempts": Mirror._attempt,
    "lodger_usage_days": Mirror._usage,
    "effects_seen": Mirror._effect,
}
