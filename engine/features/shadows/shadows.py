"""Shadows: a further version of a script that runs dry beside the live one for some runs, is compared with it, and promoted or dropped."""

import json
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

import sqlalchemy as sa

from lodger.engine.core.access.audit_context import AuditContext
from lodger.engine.core.clock import from_us
from lodger.engine.core.errors import Conflict, InputError, NotFound
from lodger.engine.core.params import read_fields
from lodger.engine.core.serialization import from_jsonable, to_jsonable
from lodger.engine.features.replays import recorded
from lodger.engine.features.replays.agreement import AGREES, DIFFERS, UNDECIDED, ShadowRun
from lodger.engine.store import audit
from lodger.engine.store.connection.savepoint import savepoint
from lodger.engine.store.context import StoreContext
from lodger.engine.store.drivers import prepared
from lodger.engine.store.drivers.expressions import Id, partial
from lodger.engine.store.drivers.guards import Stored, guards
from lodger.engine.store.queue import events, ready_queue
from lodger.engine.store.records import AnyRow, ScriptVersion
from lodger.engine.store.rows import record
from lodger.engine.store.schema.metadata import table_of_tenants
from lodger.engine.store.schema.scheduling import Name, Us
from lodger.engine.store.schema.scheduling import scripts as scripts_table
from lodger.engine.store.scripts import scripts
from lodger.engine.store.scripts.content import Content
from lodger.engine.store.stored_modules import authored, runnable, used
from lodger.engine.store.tenants.grants import encode
from lodger.engine.store.usage import storage_usage, usage

script_shadows = table_of_tenants(
    "lodger_script_shadows",
    sa.Column("script_id", Id, primary_key=True),
    # Of this shadow: a later one of the same script has another.
    sa.Column("id", Id, nullable=False),
    # The version that was live when it began; it is compared with this one alone.
    sa.Column("live_version", sa.Integer, nullable=False),
    sa.Column("modules", sa.Text, nullable=False),
    sa.Column("wasm", sa.LargeBinary),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("state", sa.String(10), nullable=False),
    sa.Column("wanted", sa.SmallInteger, nullable=False),
    # 1 if it is promoted as soon as all wanted runs agree.
    sa.Column("automatic", sa.SmallInteger, nullable=False),
    # Runs that were not compared: the node was busy, or the tenant's CPU time of the day was used up.
    sa.Column("missed", sa.Integer, nullable=False, server_default="0"),
    # JSON list of its runs, at most `wanted`.
    sa.Column("runs", sa.Text, nullable=False, server_default="[]"),
    sa.Column("created_us", Us, nullable=False),
    sa.Column("created_by", Name),
    sa.Column("why", sa.Text),
    sa.ForeignKeyConstraint(["tenant_id", "script_id"], ["lodger_scripts.tenant_id", "lodger_scripts.id"]),
    sa.CheckConstraint("state IN ('running', 'finished', 'promoted')", name="state"),
    sa.Index("ix_lodger_script_shadows_running", "tenant_id", "script_id", **partial("state = 'running'")),
    info=guards(stored=Stored("kept_bytes", ("modules", "wasm", "why"))),
)


#: Maximum number of runs that a shadow is compared in.
MAX_RUNS = 500
RUNNING, FINISHED, PROMOTED = "running", "finished", "promoted"
#: State of a shadow after another version became live; derived, not stored.
OUTDATED = "outdated"
#: The webhook event of its end, and the effect number of the message, below those of slow-downs.
EVENT, PLACE = events.ENGINE_PREFIX + "script.shadow", -(1 << 30) - 1
_t = script_shadows.c


@dataclass(frozen=True, slots=True)
class Shadow:
    """A version of a script that runs dry beside the live one, with its comparisons.

    Attributes:
        version: number that it gets when it is promoted.
        live_version: the version that it is compared with.
        state: running, finished (all wanted runs were compared), promoted, or outdated: another version is live by now.
        wanted: number of runs to compare.
        agreed, differed, undecided: number of runs by verdict.
        missed: runs that were not compared, because the node was busy or the tenant's CPU time of the day was used up.
        promote_when_agreed: whether it is promoted by itself when all wanted runs agree.
        created_by: actor of the change; ``why`` is the reason given for it.
        runs: the compared runs, oldest first.
    """

    tenant_id: str
    name: str
    version: int
    live_version: int
    state: str
    wanted: int
    agreed: int
    differed: int
    undecided: int
    missed: int
    promote_when_agreed: bool
    created_at: datetime
    created_by: str | None = None
    why: str | None = None
    runs: tuple[ShadowRun, ...] = ()

    def summary(self) -> dict[str, str | int]:
        """Return the details by which its end is reported."""
        return {
            "script": self.name, "version": self.version, "live_version": self.live_version, "state": self.state,
            "agreed": self.agreed, "differed": self.differed, "undecided": self.undecided, "missed": self.missed,
        }  # fmt: skip


def put(
    context: StoreContext,
    connection: sa.Connection,
    live: ScriptVersion,
    content: Content,
    wanted: int,
    now_us: int,
    audit_context: AuditContext,
    automatic: bool,
) -> ScriptVersion:
    """Begin a shadow of a script; the script's earlier one, if any, is replaced. Return the version that it may become.

    Args:
        wanted: number of runs to compare.
        automatic: whether it is promoted as soon as all of them agree.

    Raises:
        InputError: shadow_invalid.
    """
    _check(connection, live, content, wanted)
    _delete(connection, live)
    prepared.write(connection, sa.insert(script_shadows).values(
            tenant_id=live.tenant_id, script_id=live.script_id, id=context.ids.new(), live_version=live.version,
            modules=json.dumps(content.modules, ensure_ascii=False), wasm=content.wasm, digest=content.digest,
            state=RUNNING, wanted=wanted, automatic=int(automatic), created_us=now_us,
            created_by=audit_context.actor, why=audit_context.why,
        ))  # fmt: skip
    return replace(
        live, version=live.version + 1, modules=authored(content.modules), digest=content.digest, state="shadow",
        created_at=from_us(now_us), wasm_bytes=None if content.wasm is None else len(content.wasm),
        created_by=audit_context.actor, why=audit_context.why, uses=used(content.modules),
    )  # fmt: skip


def _check(connection: sa.Connection, live: ScriptVersion, content: Content, wanted: int) -> None:
    """Raise InputError (shadow_invalid) if a version cannot be a shadow of the live one."""
    if not 1 <= wanted <= MAX_RUNS:
        raise InputError("shadow_invalid.runs", wanted=wanted, maximum=MAX_RUNS)
    if (live.kind, content.kind) != ("script", "script"):
        raise InputError("shadow_invalid.kind", kind=live.kind)
    if (content.wasm is None) != (live.wasm_bytes is None):
        raise InputError("shadow_invalid.input")
    if content.digest == live.digest:
        raise InputError("shadow_invalid.same")
    if recorded.choice(connection, live) == "none":
        raise InputError("shadow_invalid.unrecorded")


def get(connection: sa.Connection, live: ScriptVersion) -> Shadow:
    """Return the shadow of a script, with its comparisons.

    Raises:
        NotFound: shadow_unknown.
    """
    row = _require(connection, live)
    runs: tuple[ShadowRun, ...] = from_jsonable(tuple[ShadowRun, ...], json.loads(row.runs))
    verdicts = Counter(each.verdict for each in runs)
    outdated = row.state != PROMOTED and row.live_version != live.version
    return record(
        Shadow,
        row,
        name=live.name,
        version=row.live_version + 1,
        state=OUTDATED if outdated else row.state,
        agreed=verdicts[AGREES],
        differed=verdicts[DIFFERS],
        undecided=verdicts[UNDECIDED],
        promote_when_agreed=bool(row.automatic),
        runs=runs,
    )


def drop(connection: sa.Connection, live: ScriptVersion) -> Shadow:
    """Delete the shadow of a script with its comparisons; return it.

    Raises:
        NotFound: shadow_unknown.
    """
    found = get(connection, live)
    _delete(connection, live)
    return found


def promote(
    context: StoreContext, connection: sa.Connection, live: ScriptVersion, now_us: int, audit_context: AuditContext
) -> ScriptVersion:
    """Store a shadow's source as the script's next version, with the grants and typed params of the live one.

    Raises:
        NotFound: shadow_unknown, if it has none, or it was promoted.
        Conflict: shadow_outdated, versions_full.
    """
    row = _require(connection, live)
    if row.state == PROMOTED:
        raise _unknown(live)
    if row.live_version != live.version:
        raise Conflict("shadow_outdated", version=live.version, script=live.name, live_version=row.live_version)
    made = scripts.put(
        context, connection, live.tenant_id, live.name,
        Content(json.loads(row.modules), None if row.wasm is None else bytes(row.wasm), row.digest, "script"),
        now_us, audit_context, needs=lambda _before: encode(live.grants), fields=read_fields(live.fields),
        offered=scripts.is_offered(connection, live.script_id),
    )  # fmt: skip
    prepared.write(connection, sa.update(script_shadows).where(*_of(live)).values(state=PROMOTED))
    return made


#: Running shadows; a literal, see ready_queue.
any_running = sa.select(_t.id).where(_t.state == sa.literal_column(f"'{RUNNING}'"))
_running = (
    sa.select(_t.tenant_id, scripts_table.c.name, _t.id, _t.live_version)
    .join(scripts_table, (scripts_table.c.tenant_id == _t.tenant_id) & (scripts_table.c.id == _t.script_id))
    .where(_t.state == RUNNING, scripts_table.c.version == _t.live_version)
)


def running(connection: sa.Connection, tenant_ids: Collection[str]) -> dict[tuple[str, str], tuple[str, int]]:
    """Return the id and live version of each running shadow of these tenants, by tenant and script."""
    mine = _running.where(_t.tenant_id.in_(tenant_ids))
    return {(row.tenant_id, row.name): (row.id, row.live_version) for row in connection.execute(mine)}


def load(connection: sa.Connection, tenant_id: str, shadow_id: str) -> dict[str, str] | bytes | None:
    """Return the source of a shadow, as files or a module; None if it does not run (any more), or its script is suspended."""
    mine = _running.where(_t.tenant_id == tenant_id, _t.id == shadow_id, scripts_table.c.suspended_us.is_(None))
    row = connection.execute(mine.add_columns(_t.modules, _t.wasm)).first()
    if row is None:
        return None
    return runnable(json.loads(row.modules)) if row.wasm is None else bytes(row.wasm)


def add(
    context: StoreContext, connection: sa.Connection, tenant_id: str, shadow_id: str, run: ShadowRun, cpu_ms: float
) -> Shadow | None:
    """Store a comparison, charge its CPU time to the tenant, and promote the shadow if that is due.

    The comparison that ends it enqueues the event for webhooks.

    Returns:
        The shadow; None if it does not run any more, or the run was compared before.
    """
    ready_queue.lock(connection, [tenant_id])
    usage.charge_trial(context, connection, tenant_id, cpu_ms)
    row = connection.execute(_running.where(_t.tenant_id == tenant_id, _t.id == shadow_id).add_columns(
        _t.script_id, _t.runs, _t.wanted, _t.automatic)).first()  # fmt: skip
    if row is None:
        return None
    runs = json.loads(row.runs)
    if any((each["action_id"], each["step"]) == (run.action_id, run.step) for each in runs):
        return None
    runs.append(to_jsonable(run))
    state = FINISHED if len(runs) >= row.wanted else RUNNING
    mine = (_t.tenant_id == tenant_id, _t.id == shadow_id)
    prepared.write(connection, sa.update(script_shadows).where(*mine).values(runs=json.dumps(runs), state=state))
    if state == FINISHED and row.automatic and all(each["verdict"] == AGREES for each in runs):
        _promote_agreed(context, connection, tenant_id, row.name, len(runs))
    found = get(connection, scripts.get(connection, tenant_id, row.name, row.live_version))
    if found.state != RUNNING:
        place = (run.action_id, run.step, PLACE)
        events.enqueue(
            connection, tenant_id, EVENT, {"tenant": tenant_id, **found.summary()}, place, context.clock.now_us()
        )
    return found


def _promote_agreed(context: StoreContext, connection: sa.Connection, tenant_id: str, name: str, agreed: int) -> None:
    """Promote a shadow without a person; one that cannot be stays finished."""
    if storage_usage.excess(context, connection, tenant_id).kept:
        return
    now_us, why = context.clock.now_us(), f"all {agreed} runs of the shadow agreed"
    by, live = AuditContext("engine", "node", why), scripts.get(connection, tenant_id, name)
    try:
        with savepoint(connection):
            made = promote(context, connection, live, now_us, by)
    except (Conflict, InputError):
        return
    before, after = ({"version": each.version, "digest": each.digest} for each in (live, made))
    doing = audit.AuditSubject("scripts.promote", tenant_id, live.script_id, name)
    audit.write(connection, [audit.row(context, by, doing, before, after, now_us)])


def miss(connection: sa.Connection, missed: Iterable[tuple[str, str, int]]) -> None:
    """Count runs (tenant, shadow, number) that were not compared."""
    for tenant_id, shadow_id, number in missed:
        mine = (_t.tenant_id == tenant_id, _t.id == shadow_id, _t.state == RUNNING)
        prepared.write(connection, sa.update(script_shadows).where(*mine).values(missed=_t.missed + number))


def _of(live: ScriptVersion) -> tuple[sa.ColumnElement[bool], ...]:
    """Return the SQL conditions that a row is the shadow of a script."""
    return _t.tenant_id == live.tenant_id, _t.script_id == live.script_id


def _delete(connection: sa.Connection, live: ScriptVersion) -> None:
    """Delete the shadow of a script."""
    prepared.write(connection, sa.delete(script_shadows).where(*_of(live)))


def _require(connection: sa.Connection, live: ScriptVersion) -> AnyRow:
    """Return the row of a script's shadow; raises NotFound (shadow_unknown) without one."""
    row = connection.execute(sa.select(script_shadows).where(*_of(live))).first()
    if row is None:
        raise _unknown(live)
    return row


def _unknown(live: ScriptVersion) -> NotFound:
    """Return the error of a script without a shadow."""
    return NotFound("shadow_unknown", name=live.name, tenant=live.tenant_id)
