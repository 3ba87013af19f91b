"""Comparison of the ledger and the traces of scripts with the planned slots after a chaos run: nothing lost, nothing repeated.

The slots are computed here independently; the table of traces has no unique key, so that a repeated effect is visible.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from sqlalchemy import Connection, text
from tests.chaos.exposed_lamps import SCRIPTS

from lodger.engine.sync import Engine

OPEN = "('ready', 'running', 'sealed', 'waiting_retry')"


@dataclass(frozen=True, slots=True)
class Planned:
    """A planned schedule: slots at ``first_us`` and every ``period_us`` after it, before ``end_us``."""

    tenant: str
    id: str
    scripts: tuple[str, ...]
    first_us: int
    period_us: int
    end_us: int

    def slots(self) -> range:
        """Return its slots."""
        return range(self.first_us, self.end_us, self.period_us)


@dataclass(slots=True)
class Comparison:
    """Result of the comparison.

    Attributes:
        lost: slots without a row, and successful steps without traces.
        doubled: slots with two rows, and traces that are repeated or belong to no successful step.
    """

    slots: int = 0
    run: int = 0
    in_gaps: int = 0
    traces: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    states: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    #: Attempts that ended by an engine fault, with their messages.
    faults: list[str] = field(default_factory=list)
    late_ms: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        late = sorted(self.late_ms) or [0.0]
        spread = ", ".join(f"p{at} {late[min(len(late) - 1, len(late) * at // 100)]:.0f}" for at in (50, 90, 99))
        return (
            f"{self.slots} slots: {self.run} with actions of their own, {self.in_gaps} in gap rows; {len(self.lost)} lost, "
            f"{len(self.doubled)} doubled; {self.traces} traces of effects; actions {dict(self.states)}; attempts "
            f"{dict(self.outcomes)}; first start after the slot, ms: {spread}, most {late[-1]:.0f}"
        )


def left_open(engine: Engine) -> int:
    """Return the number of unfinished actions and of schedules with future slots."""
    with engine.context.database.read() as connection:
        waits = connection.scalar(text(f"SELECT count(*) FROM lodger_actions WHERE state IN {OPEN}")) or 0
        armed = connection.scalar(text("SELECT count(*) FROM lodger_schedule_clock WHERE state = 'armed'")) or 0
    return int(waits + armed)


def alive_since(engine: Engine, since_us: int) -> int:
    """Return the number of nodes that have renewed their lease since an instant."""
    with engine.context.database.read() as connection:
        ask = text("SELECT count(DISTINCT name) FROM lodger_nodes WHERE state = 'alive' AND seen_us > :since")
        return connection.scalar(ask, {"since": since_us}) or 0


def compare(engine: Engine, planned: list[Planned]) -> Comparison:
    """Return the comparison; to be called when all actions are finished."""
    found = Comparison()
    with engine.context.database.read() as connection:
        _compare_slots(connection, planned, found)
        _compare_traces(connection, {each.id: each for each in planned}, found)
        _compare_counters(connection, found)
        compare_bills(connection, found)
        found.states.update(_counted(connection, "SELECT state, count(*) FROM lodger_actions GROUP BY state"))
        found.outcomes.update(_counted(connection, "SELECT outcome, count(*) FROM lodger_attempts GROUP BY outcome"))
        first = "SELECT min(t.started_us) - a.slot AS late FROM lodger_actions a JOIN lodger_attempts t ON t.action_id = a.id"
        rows = connection.execute(text(f"{first} WHERE a.step = 0 GROUP BY a.id, a.slot"))
        faulty = "SELECT action_id, n, node_id, error FROM lodger_attempts WHERE outcome = 'engine_fault' ORDER BY finished_us"
        found.faults = [
            f"action {action} attempt {number} on {node}: {error}"
            for action, number, node, error in connection.execute(text(faulty))
        ]
        found.late_ms = [float(late) / 1000 for (late,) in rows]
    return found


def _counted(connection: Connection, statement: str) -> dict[str, int]:
    """Return the rows of a query of names and numbers as a dictionary."""
    return {str(name): int(number) for name, number in connection.execute(text(statement))}


def _compare_slots(connection: Connection, planned: list[Planned], found: Comparison) -> None:
    """Compare the stored slots of each schedule with the planned ones."""
    rows: dict[str, list[tuple[int, int | None]]] = defaultdict(list)
    statement = "SELECT schedule_id, slot, slot_to FROM lodger_actions WHERE origin = 'slot' ORDER BY slot"
    for schedule, slot, slot_to in connection.execute(text(statement)):
        rows[str(schedule)].append((slot, slot_to))
    for each in planned:
        slots, times = each.slots(), Counter[int]()
        found.slots += len(slots)
        for slot, slot_to in rows.pop(each.id, []):
            last = slot if slot_to is None else slot_to
            if slot not in slots or last not in slots:
                found.doubled.append(f"{each.id}: a row of {slot} to {last}, which are no slots")
                continue
            covered = range(slot, last + 1, each.period_us)
            times.update(covered)
            found.run += slot_to is None
            found.in_gaps += 0 if slot_to is None else len(covered)
        found.lost += [f"{each.id}: slot {slot} has no row" for slot in slots if not times[slot]]
        found.doubled += [f"{each.id}: slot {slot} has {number} rows" for slot, number in times.items() if number > 1]
    found.doubled += [f"rows of {schedule}, which nobody made" for schedule in rows]


def _compare_traces(connection: Connection, planned: dict[str, Planned], found: Comparison) -> None:
    """Compare the traces of scripts with the successful steps."""
    due: Counter[tuple[str, str]] = Counter()
    statement = """
        SELECT a.id, a.schedule_id, a.state, t.step FROM lodger_attempts t JOIN lodger_actions a ON a.id = t.action_id
        WHERE t.outcome = 'ok'
    """
    steps: dict[str, int] = Counter()
    for action, schedule, _state, step in connection.execute(text(statement)):
        steps[str(action)] += 1
        script = planned[str(schedule)].scripts[step]
        due.update((str(action), mark) for mark in SCRIPTS[script][1])
    for action, schedule, state in connection.execute(text("SELECT id, schedule_id, state FROM lodger_actions")):
        wanted = len(planned[str(schedule)].scripts)
        if state == "done" and steps[str(action)] != wanted:
            kind = found.lost if steps[str(action)] < wanted else found.doubled
            kind.append(f"{action} is done with {steps[str(action)]} of {wanted} steps")
    seen = Counter[tuple[str, str]](
        (str(action), mark) for action, mark in connection.execute(text("SELECT action, mark FROM traces"))
    )
    found.traces = seen.total()
    found.lost += [f"no trace {each}, {number} times" for each, number in (due - seen).items()]
    found.doubled += [f"trace {each}, {number} times too often" for each, number in (seen - due).items()]


def _compare_counters(connection: Connection, found: Comparison) -> None:
    """Compare each tenant's counter with the traces of its runs."""
    kept = {
        str(tenant): int(value) for tenant, value in connection.execute(text("SELECT tenant_id, value FROM lodger_kv"))
    }
    statement = "SELECT house, count(*) FROM traces WHERE mark = 'counts' GROUP BY house"
    ran = {str(house): int(number) for house, number in connection.execute(text(statement))}
    for tenant in kept.keys() | ran.keys():
        if kept.get(tenant, 0) != ran.get(tenant, 0):
            kind = found.lost if kept.get(tenant, 0) < ran.get(tenant, 0) else found.doubled
            kind.append(f"{tenant} counted {kept.get(tenant, 0)} and ran {ran.get(tenant, 0)} times")


#: Tables and columns with the stored bytes of a tenant.
STORED = (
    ("lodger_kv", "key", "value"), ("lodger_documents", "id", "body"), ("lodger_sealed", "docket", "own"), ("lodger_outbox", "payload"),
    ("lodger_actions", "result", "params"), ("lodger_attempts", "error", "effects"), ("lodger_attempt_logs", "lines"),
    ("lodger_attempt_records", "body"),
    ("lodger_script_versions", "modules", "wasm", "fields", "why"),
    ("lodger_schedule_revisions", "rules", "sentence", "steps", "limits", "params", "why"),
)  # fmt: skip


def compare_bills(connection: Connection, found: Comparison) -> None:
    """Compare charged usage with actual usage: runs, queries, rows, stored bytes, and reservations."""
    ran = """
        SELECT tenant_id, count(*) FROM lodger_attempts WHERE outcome NOT IN ('worker_lost', 'engine_fault', 'protocol_error')
        GROUP BY tenant_id
    """
    asked = "SELECT house, count(*) FROM traces WHERE mark = 'counts' GROUP BY house"
    wrote = "SELECT house, sum(CASE mark WHEN 'counts' THEN 2 ELSE 1 END) FROM traces GROUP BY house"
    for name, statement in (("runs", ran), ("queries", asked), ("rows_written", wrote)):
        charged = _counted(connection, f"SELECT tenant_id, sum({name}) FROM lodger_usage_days GROUP BY tenant_id")
        _compare_charges(found, name, charged, _counted(connection, statement))
    sizes = " UNION ALL ".join(
        f"SELECT tenant_id, {' + '.join(f'coalesce(octet_length({column}), 0)' for column in columns)} AS bytes FROM {table}"
        for table, *columns in STORED
    )
    there = _counted(connection, f"SELECT tenant_id, sum(bytes) FROM ({sizes}) AS parts GROUP BY tenant_id")
    counted = _counted(connection, "SELECT tenant_id, kept_bytes + history_bytes FROM lodger_storage")
    _compare_charges(found, "stored bytes", counted, there)
    found.doubled += [
        f"{number} shares of {tenant}'s day are held by nobody"
        for tenant, number in _counted(
            connection, "SELECT tenant_id, count(*) FROM lodger_lots GROUP BY tenant_id"
        ).items()
    ]


def _compare_charges(found: Comparison, what: str, charged: dict[str, int], done: dict[str, int]) -> None:
    """Add the tenants to ``found`` for which charged numbers differ from those of what was done."""
    for tenant in sorted(charged.keys() | done.keys()):
        if charged.get(tenant, 0) != done.get(tenant, 0):
            kind = found.lost if charged.get(tenant, 0) < done.get(tenant, 0) else found.doubled
            kind.append(f"{tenant}: {charged.get(tenant, 0)} {what} were counted, {done.get(tenant, 0)} were there")
