"""Tables of tenants, scripts, schedules, their clocks, actions and attempts.

Conventions: instants are integer microseconds UTC and end in ``_us`` or ``_at``; the tenant is first in every key and
no foreign key crosses tenants; JSON is text. Every table is named ``lodger_…``, because on SQLite the platform's own
tables may live in the same file.
"""

from collections.abc import Iterable
from typing import get_args

import sqlalchemy as sa

from lodger.engine.core.ids import PLATFORM
from lodger.engine.core.states import ActionState, Origin, ScheduleState, TenantState
from lodger.engine.policy.budget_table import NAMES
from lodger.engine.store.drivers.expressions import Id, of_any_tenant, partial
from lodger.engine.store.drivers.guards import Churn, Stored, guards
from lodger.engine.store.schema.metadata import metadata, table_of_tenants

Us = sa.BigInteger
Name = sa.String(200)
#: Labels in order, separated by one space.
Labels = sa.String(1000)

#: States of an unfinished action.
OPEN = ("ready", "running", "sealed", "waiting_retry")
#: States from which an action may start.
STARTABLE = ("ready", "waiting_retry")
#: States of an action that did not succeed.
FAILED = ("failed", "expired")
#: States of the clock of a schedule that is stopped until it is armed again.
STOPPED = ("paused", "suspended")


_STARTING = "startable_at IS NOT NULL"


def _listed(words: tuple[str, ...]) -> str:
    """Return words as a list of SQL literals."""
    return ", ".join(f"'{word}'" for word in words)


#: Named sets of limits that tenants refer to.
plans = sa.Table(
    "lodger_plans",
    metadata,
    sa.Column("name", Name, primary_key=True),
    sa.Column("limits", sa.Text, nullable=False),
    sa.Column("created_us", Us, nullable=False),
    sa.Column("updated_us", Us, nullable=False),
)

tenants = sa.Table(
    "lodger_tenants",
    metadata,
    sa.Column("id", Name, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    # Incremented at every suspension, deletion and re-creation, so that old work never meets the new tenant.
    sa.Column("generation", sa.Integer, nullable=False),
    sa.Column("limits", sa.Text, nullable=False),
    # JSON list of grants; None: those of the setting at the time of each run.
    sa.Column("grants", sa.Text),
    # JSON list of addresses and *@domain patterns that the tenant may mail without further grants.
    sa.Column("people", sa.Text),
    # Labels that a node must carry to run any action of this tenant, in the format of policy.labels.
    sa.Column("labels", Labels, nullable=False, server_default=""),
    sa.Column("plan", Name, sa.ForeignKey(plans.c.name)),
    # Zone of its schedules that name none; None: UTC.
    sa.Column("tz", sa.String(64)),
    sa.Column("created_us", Us, nullable=False),
    sa.CheckConstraint(f"state IN {get_args(TenantState)}", name="state"),
    sa.Index("ix_lodger_tenants_plan", "plan", **partial("plan IS NOT NULL")),
)
#: A tenant's limits as the content cache reads them: its own, or a list of its plan's and its own, which come before.
limits_in_effect = sa.case(
    (tenants.c.plan.is_(None), tenants.c.limits),
    else_=sa.literal_column("'['", sa.Text)
    + sa.select(plans.c.limits).where(plans.c.name == tenants.c.plan).correlate(tenants).scalar_subquery()
    + sa.literal_column("','", sa.Text)
    + tenants.c.limits
    + sa.literal_column("']'", sa.Text),
).label("limits")

#: The ready queue, hot and narrow: when each tenant was served last, and when its next action may start. A tenant has
#: one row for actions that any node may run (requires ''), which is its lock too, and one for each set of labels that
#: its actions have required.
turns = table_of_tenants(
    "lodger_turns",
    sa.Column("requires", Labels, primary_key=True, server_default=""),
    # The tenant's own labels, so that a claim needs no join.
    sa.Column("bound", Labels, nullable=False, server_default=""),
    sa.Column("served_us", Us, nullable=False),
    # None: nothing may start now (no work, at its cap, suspended). Derived; written by ready_queue.refresh only.
    sa.Column("startable_at", Us),
    sa.Column("cap", sa.Integer, nullable=False),
    sa.Index("ix_lodger_turns_startable", "requires", "startable_at", **partial(_STARTING)),
    # In the order of service: a claim reads as many rows as it takes, however many tenants wait.
    sa.Index("ix_lodger_turns_line", "requires", "served_us", "tenant_id", **partial(_STARTING)),
    # The few distinct sets of labels that tenants are bound to are read by index skips.
    sa.Index("ix_lodger_turns_bound", "bound", **partial("bound <> ''")),
    info=guards(churn=Churn.HOT),
)

scripts = table_of_tenants(
    "lodger_scripts",
    sa.Column("id", Id, primary_key=True),
    sa.Column("name", Name, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    # 'bound' marks a script of the platform (of the same id) that this tenant has bound.
    sa.Column("kind", sa.String(10), nullable=False, server_default="script"),
    # Platform scripts only: 1 if any tenant may bind it.
    sa.Column("offered", sa.SmallInteger, nullable=False, server_default="0"),
    sa.Column("created_us", Us, nullable=False),
    # None: its actions may start.
    sa.Column("suspended_us", Us),
    # Which attempts are recorded: all or none; None: those that fail.
    sa.Column("record", sa.String(8)),
    sa.UniqueConstraint("tenant_id", "name"),
    sa.CheckConstraint("kind IN ('script', 'ping', 'host', 'bound')", name="kind"),
    sa.Index("ix_lodger_scripts_bound", "id", **partial("kind = 'bound'")),
    sa.Index("ix_lodger_scripts_suspended", "id", "tenant_id", **partial("suspended_us IS NOT NULL")),
    sa.Index("ix_lodger_scripts_record", "tenant_id", "name", **partial("record IS NOT NULL")),
)

script_versions = table_of_tenants(
    "lodger_script_versions",
    sa.Column("script_id", Id, primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True),
    # Source by file name, JSON; empty for a WebAssembly module.
    sa.Column("modules", sa.Text, nullable=False),
    sa.Column("wasm", sa.LargeBinary),
    sa.Column("digest", sa.String(64), nullable=False),
    # JSON list of the tenant's grants that this version needs; None: all of them.
    sa.Column("grants", sa.Text),
    # Typed fields of its params, JSON; None: any JSON value.
    sa.Column("fields", sa.Text),
    sa.Column("created_us", Us, nullable=False),
    sa.Column("created_by", Name),
    sa.Column("why", sa.Text),
    sa.ForeignKeyConstraint(["tenant_id", "script_id"], ["lodger_scripts.tenant_id", "lodger_scripts.id"]),
    info=guards(stored=Stored("kept_bytes", ("modules", "wasm", "fields", "why"))),
)

schedules = table_of_tenants(
    "lodger_schedules",
    sa.Column("id", Id, primary_key=True),
    sa.Column("name", Name, nullable=False),
    sa.Column("script_id", Id, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("note", sa.Text),
    sa.Column("created_us", Us, nullable=False),
    # Consecutive failed actions; not in the clock's row, so that a commit never waits for a tick.
    sa.Column("failures", sa.Integer, nullable=False, server_default="0"),
    # Retention may have deleted actions of slots up to this one.
    sa.Column("forgotten_us", Us),
    # Usual durations of each step, JSON: {step: [wall_ms, since_us]}, of the wing slow_runs.
    sa.Column("baselines", sa.Text),
    # A deleted schedule keeps its row, because its actions refer to it; its name is free again.
    sa.Column("deleted_us", Us),
    sa.ForeignKeyConstraint(["tenant_id", "script_id"], ["lodger_scripts.tenant_id", "lodger_scripts.id"]),
    sa.Index(
        "uq_lodger_schedules_name",
        "tenant_id",
        "name",
        unique=True,
        **partial("deleted_us IS NULL"),
    ),
)

schedule_revisions = table_of_tenants(
    "lodger_schedule_revisions",
    sa.Column("schedule_id", Id, primary_key=True),
    sa.Column("revision", sa.Integer, primary_key=True),
    sa.Column("rules", sa.Text, nullable=False),
    sa.Column("sentence", sa.Text, nullable=False),
    sa.Column("script_id", Id, nullable=False),
    sa.Column("missed", sa.String(40), nullable=False),
    sa.Column("overlap", sa.String(20), nullable=False),
    sa.Column("retry", sa.Text),
    sa.Column("conduct", sa.Text),
    # Steps in order, if a single script name does not suffice: JSON list of {"script_id", "limits", "version"}.
    sa.Column("steps", sa.Text),
    sa.Column("limits", sa.Text),
    sa.Column("params", sa.Text),
    # JSON list of the script's grants that this schedule passes on; None: all of them.
    sa.Column("grants", sa.Text),
    # Labels that a node must carry: the schedule's own, and the handlers among its steps.
    sa.Column("requires", Labels, nullable=False, server_default=""),
    # Start of rules without an anchor of their own (every 90s, in 5m).
    sa.Column("anchor_us", Us, nullable=False),
    sa.Column("created_us", Us, nullable=False),
    sa.Column("created_by", Name),
    sa.Column("why", sa.Text),
    sa.ForeignKeyConstraint(["tenant_id", "schedule_id"], ["lodger_schedules.tenant_id", "lodger_schedules.id"]),
    # SQLite executes "(tenant_id, schedule_id) IN (VALUES …)" as a scan; "schedule_id IN (…)" uses this index.
    sa.Index("ix_lodger_schedule_revisions_schedule", "schedule_id", "revision"),
    info=guards(stored=Stored("kept_bytes", ("rules", "sentence", "steps", "limits", "params", "why"))),
)

is_stopped = sa.text(f"state IN ({_listed(STOPPED)})")

#: Hot and narrow. The CHECK makes an armed schedule without a next slot impossible.
schedule_clock = table_of_tenants(
    "lodger_schedule_clock",
    sa.Column("schedule_id", Id, primary_key=True),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("next_at", Us),
    # Every slot up to and including this instant has its row; next_at is the first slot after it.
    sa.Column("accounted_us", Us, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("tzdata", sa.String(16), nullable=False),
    # End of a pause that ends by itself.
    sa.Column("wake_at", Us),
    # 1 while next_at is not a slot but the instant at which the search for the next one continues.
    sa.Column("searching", sa.Integer, nullable=False, server_default="0"),
    # The latest slot that became an action; the tenant's minimum distance of slots counts from it.
    sa.Column("last_slot_us", Us),
    sa.ForeignKeyConstraint(["tenant_id", "schedule_id"], ["lodger_schedules.tenant_id", "lodger_schedules.id"]),
    sa.Index("ix_lodger_schedule_clock_schedule", "schedule_id"),
    sa.CheckConstraint("(state = 'armed') = (next_at IS NOT NULL)", name="armed_has_next"),
    sa.CheckConstraint(f"state IN {get_args(ScheduleState)}", name="state"),
    sa.CheckConstraint("wake_at IS NULL OR state = 'paused'", name="wake_from_pause"),
    sa.Index(
        "ix_lodger_schedule_clock_next",
        "next_at",
        **partial("next_at IS NOT NULL"),
    ),
    sa.Index(
        "ix_lodger_schedule_clock_wake",
        "wake_at",
        **partial("wake_at IS NOT NULL"),
    ),
    sa.Index("ix_lodger_schedule_clock_stopped", "accounted_us", **partial(is_stopped)),
    info=guards(churn=Churn.HOT),
)

#: Conditions of the partial indexes, as literals: with bound values SQLite does not match a partial index.
is_slotted = sa.text("origin IN ('slot', 'backfill')")
is_startable = sa.text(f"held = 0 AND state IN ({_listed(STARTABLE)})")
is_running = sa.text("state = 'running'")
is_expiring = sa.text("expires_at IS NOT NULL AND state = 'ready' AND step = 0 AND attempt = 0")
is_open = sa.text(f"state IN ({_listed(OPEN)})")
is_held = sa.text("held = 1")
is_requested = sa.text("requested_by IS NOT NULL AND state = 'ready'")
is_failed = sa.text(f"state IN ({_listed(FAILED)})")

#: States of an action.
STATES = get_args(ActionState)

actions = table_of_tenants(
    "lodger_actions",
    sa.Column("id", Id, primary_key=True),
    sa.Column("schedule_id", Id),
    sa.Column("revision", sa.Integer),
    sa.Column("origin", sa.String(10), nullable=False),
    sa.Column("slot", Us),
    sa.Column("slot_to", Us),
    sa.Column("due_at", Us, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    # 1 while an earlier action of the same schedule is unfinished.
    sa.Column("held", sa.SmallInteger, nullable=False, server_default="0"),
    sa.Column("reason", sa.String(40)),
    sa.Column("script_id", Id),
    sa.Column("script_version", sa.Integer),
    sa.Column("params", sa.Text),
    sa.Column("request_key", sa.String(200)),
    sa.Column("replay_of", Id),
    # What requested it inside Lodger: "action ID" of the run of a script, "url NAME"; None: a slot, or a caller of the API.
    sa.Column("requested_by", sa.String(80)),
    # Name of the only node that may run it, for an action of a schedule placed on every node.
    sa.Column("node_key", sa.String(200), nullable=False, server_default=""),
    # Labels that a node must carry to run it (policy.labels), besides the tenant's own labels.
    sa.Column("requires", Labels, nullable=False, server_default=""),
    # The lease: the node, and the epoch under which it runs this attempt of this step.
    sa.Column("node_id", Id),
    sa.Column("lease_epoch", sa.Integer),
    sa.Column("step", sa.SmallInteger, nullable=False, server_default="0"),
    # Script and version of every step, JSON; None for a single one. script_id and script_version are those of the
    # present step.
    sa.Column("steps", sa.Text),
    # Result of the previous step, which is the input of the present one.
    sa.Column("handed", sa.Text),
    sa.Column("priority", sa.SmallInteger, nullable=False, server_default="0"),
    # Instant from which an action that has not started expires.
    sa.Column("expires_at", Us),
    sa.Column("attempt", sa.Integer, nullable=False, server_default="0"),
    sa.Column("tenant_faults", sa.SmallInteger, nullable=False, server_default="0"),
    sa.Column("engine_faults", sa.SmallInteger, nullable=False, server_default="0"),
    sa.Column("conflicts", sa.SmallInteger, nullable=False, server_default="0"),
    sa.Column("started_us", Us),
    sa.Column("deadline_us", Us),
    sa.Column("finished_us", Us),
    sa.Column("outcome", sa.String(20)),
    sa.Column("result", sa.Text),
    sa.Column("error", sa.Text),
    sa.CheckConstraint(
        f"state IN {STATES}",
        name="state",
    ),
    sa.CheckConstraint(f"origin IN {get_args(Origin)}", name="origin"),
    sa.CheckConstraint(
        "state <> 'running' OR (node_id IS NOT NULL AND lease_epoch IS NOT NULL)", name="running_is_leased"
    ),
    sa.CheckConstraint("state <> 'skipped' OR reason IS NOT NULL", name="skipped_has_reason"),
    sa.CheckConstraint("slot_to IS NULL OR (state = 'skipped' AND slot_to > slot)", name="gap_is_skipped"),
    sa.CheckConstraint("held = 0 OR state = 'ready'", name="held_is_ready"),
    # Two ticks of one slot: the second one finds the row and changes nothing.
    sa.Index(
        "uq_lodger_actions_slot",
        "schedule_id",
        "slot",
        "origin",
        "node_key",
        unique=True,
        **partial(is_slotted),
    ),
    sa.Index(
        "uq_lodger_actions_request",
        "tenant_id",
        "request_key",
        unique=True,
        **partial("request_key IS NOT NULL"),
    ),
    sa.Index(
        "ix_lodger_actions_startable",
        "tenant_id",
        "requires",
        "priority",
        "due_at",
        "id",
        **partial(is_startable),
    ),
    sa.Index("ix_lodger_actions_expiring", "expires_at", **partial(is_expiring)),
    sa.Index(
        "ix_lodger_actions_running",
        "tenant_id",
        "node_id",
        **partial(is_running),
    ),
    sa.Index("ix_lodger_actions_leased", "node_id", **partial(is_running)),
    sa.Index(
        "ix_lodger_actions_schedule",
        "schedule_id",
        "state",
        "slot",
        **partial("schedule_id IS NOT NULL"),
    ),
    # Lists of a schedule's actions, and the ones beside each.
    sa.Index("ix_lodger_actions_of_schedule", "schedule_id", "id", **partial("schedule_id IS NOT NULL")),
    # Lists of actions in any other state than that of most.
    sa.Index("ix_lodger_actions_undone", "tenant_id", "id", **partial("state <> 'done'")),
    sa.Index("ix_lodger_actions_undone_id", "id", **of_any_tenant("state <> 'done'")),
    # The last run of a schedule, also for scripts.
    sa.Index("ix_lodger_actions_started", "schedule_id", "started_us", **partial("started_us IS NOT NULL")),
    # Lists over all tenants; the overview of the last hours.
    sa.Index("ix_lodger_actions_id", "id", **of_any_tenant()),
    sa.Index("ix_lodger_actions_finished", "finished_us", "tenant_id", **partial("finished_us IS NOT NULL")),
    sa.Index("ix_lodger_actions_failed", "finished_us", "tenant_id", **partial(is_failed)),
    # The number of a tenant's requested runs that wait is bounded.
    sa.Index("ix_lodger_actions_requested", "tenant_id", **partial(is_requested)),
    sa.Index("ix_lodger_actions_held", "due_at", **partial(is_held)),
    info=guards(churn=Churn.HOT),
)


def is_one_of(column: sa.ColumnElement[str], words: Iterable[str]) -> sa.ColumnElement[bool]:
    """Return the condition of a partial index for statements that join several tables, in which its text is ambiguous."""
    return column.in_([sa.literal_column(f"'{word}'") for word in words])


_suspended = (
    sa.select(sa.literal_column("1"))
    .where(
        scripts.c.id == actions.c.script_id,
        # An expression, or SQLite would take the primary key instead of the index of suspended scripts.
        scripts.c.tenant_id.concat(sa.literal_column("''")).in_(
            (actions.c.tenant_id, sa.literal_column(f"'{PLATFORM}'"))
        ),
        scripts.c.suspended_us.is_not(None),
    )
    .limit(sa.literal_column("1"))
    .correlate(actions)
    .scalar_subquery()
)
#: Whether neither the tenant nor, for a script of its own, the platform has suspended an action's script. A scalar subquery, so that
#: it stays a lookup for each action in an index that is empty most of the time, whatever a planner's statistics are.
script_may_start = _suspended.is_(None)

attempts = table_of_tenants(
    "lodger_attempts",
    sa.Column("action_id", Id, primary_key=True),
    sa.Column("step", sa.SmallInteger, primary_key=True),
    sa.Column("n", sa.Integer, primary_key=True),
    sa.Column("node_id", Id, nullable=False),
    sa.Column("lease_epoch", sa.Integer, nullable=False),
    sa.Column("started_us", Us, nullable=False),
    sa.Column("finished_us", Us, nullable=False),
    sa.Column("outcome", sa.String(20), nullable=False),
    sa.Column("error", sa.Text),
    sa.Column("effects", sa.Text),
    sa.Column("cpu_us", sa.BigInteger, nullable=False),
    sa.Column("wall_us", sa.BigInteger, nullable=False),
    sa.Column("memory_peak_bytes", sa.BigInteger, nullable=False),
    sa.Column("host_calls", sa.Integer, nullable=False),
    sa.ForeignKeyConstraint(["tenant_id", "action_id"], ["lodger_actions.tenant_id", "lodger_actions.id"]),
    sqlite_with_rowid=False,
    info=guards(churn=Churn.GROWING),
)

#: One row per attempt with log lines: a JSON list of [level, text, us].
attempt_logs = table_of_tenants(
    "lodger_attempt_logs",
    sa.Column("action_id", Id, primary_key=True),
    sa.Column("step", sa.SmallInteger, primary_key=True),
    sa.Column("n", sa.Integer, primary_key=True),
    sa.Column("lines", sa.Text, nullable=False),
    sa.ForeignKeyConstraint(["tenant_id", "action_id"], ["lodger_actions.tenant_id", "lodger_actions.id"]),
    info=guards(churn=Churn.GROWING),
)

#: Maximum size of a record as it is stored.
MAX_PACKED_BYTES = 1 << 20
#: What attempts were told and how they ended, in a form that the wing of replays knows.
attempt_records = table_of_tenants(
    "lodger_attempt_records",
    sa.Column("action_id", Id, primary_key=True),
    sa.Column("step", sa.SmallInteger, primary_key=True),
    sa.Column("n", sa.Integer, primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.ForeignKeyConstraint(["tenant_id", "action_id"], ["lodger_actions.tenant_id", "lodger_actions.id"]),
)
#: A tenant's usage of one UTC day, without attempts that the engine is to blame for.
usage_days = table_of_tenants(
    "lodger_usage_days",
    sa.Column("day", sa.Integer, primary_key=True),
    sa.Column("runs", sa.Integer, nullable=False),
    sa.Column("cpu_us", sa.BigInteger, nullable=False),
    *(sa.Column(name, sa.BigInteger, nullable=False, server_default="0") for name in NAMES),
    info=guards(churn=Churn.HOT),
)
