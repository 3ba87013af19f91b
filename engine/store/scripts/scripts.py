"""Scripts and their versions. A version never changes; storing the same source again creates none."""

import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Any

from sqlalchemy import Connection, Integer, Select, bindparam, case, func, select, text, update

from lodger.engine.core.access import names
from lodger.engine.core.access.audit_context import AuditContext
from lodger.engine.core.errors import Conflict, InputError, NotFound
from lodger.engine.core.handlers import Handler
from lodger.engine.core.ids import PLATFORM, PLATFORM_PREFIX
from lodger.engine.core.params import Field, dump_fields
from lodger.engine.policy.budget_table import Allowance
from lodger.engine.store import list_filter, pages
from lodger.engine.store.bulk import insert_many, update_row
from lodger.engine.store.context import StoreContext, dump_params
from lodger.engine.store.drivers import prepared
from lodger.engine.store.drivers.prepared import Prepared
from lodger.engine.store.queue import ready_queue
from lodger.engine.store.queue.stops import hand_back
from lodger.engine.store.records import AnyRow, Json, Page, Script, ScriptVersion
from lodger.engine.store.rows import record
from lodger.engine.store.schema.scheduling import actions, script_versions, scripts
from lodger.engine.store.scripts.content import Content, ScriptInput, read
from lodger.engine.store.stored_modules import LIBRARY, LIBRARY_START, authored, kind_of, used
from lodger.engine.store.tenants import tenants
from lodger.engine.store.tenants.grants import encode
from lodger.sandbox.limits import Limits
from lodger.sandbox.prescan import JsonRefused, require

#: Levels of the script's input around its params.
CONTEXT_DEPTH = 2


def limits_of(context: StoreContext, connection: Connection, tenant_id: str, wishes: str | None = None) -> Limits:
    """Return the limits of a tenant's scripts, lowered by those of a schedule (JSON text).

    Raises:
        NotFound: tenant_unknown.
    """
    tenant = tenants.get(connection, tenant_id)
    return context.content_cache.limits(json.dumps(tenant.limits_in_effect, sort_keys=True), wishes)


def params_text(
    context: StoreContext, connection: Connection, tenant_id: str, params: Json, wishes: str | None = None
) -> str | None:
    """Return params as JSON text, None for None.

    Args:
        wishes: limits of the schedule, as JSON text.

    Raises:
        InputError: params_invalid, params_too_large, params_too_deep.
    """
    text = dump_params(params)
    check_params(context, connection, tenant_id, text, wishes)
    return text


def check_params(
    context: StoreContext, connection: Connection, tenant_id: str, text: str | None, wishes: str | None = None
) -> None:
    """Refuse params that exceed the tenant's limits, lowered by the schedule's.

    Raises:
        InputError: params_too_large, params_too_deep.
    """
    if text is not None:
        require_fitting(text, limits_of(context, connection, tenant_id, wishes))


def require_fitting(text: str, limits: Limits) -> None:
    """Refuse params that exceed limits.

    Raises:
        InputError: params_too_large, params_too_deep.
    """
    body = text.encode()
    if len(body) > limits.input_bytes:
        raise InputError(
            "params_too_large", count=len(body), input_bytes=limits.input_bytes, details={"limit": limits.input_bytes}
        )
    try:
        require(body, max_depth=limits.json_depth - CONTEXT_DEPTH)
    except JsonRefused:
        raise InputError(
            "params_too_deep",
            depth=limits.json_depth - CONTEXT_DEPTH,
            limit=limits.json_depth,
            context=CONTEXT_DEPTH,
            details={"limit": limits.json_depth - CONTEXT_DEPTH},
        ) from None


def put(
    context: StoreContext,
    connection: Connection,
    tenant_id: str,
    name: str,
    source: ScriptInput | Content,
    now_us: int,
    audit_context: AuditContext,
    *,
    needs: Callable[[tuple[str, ...] | None], str | None] = encode,
    fields: tuple[Field, ...] | None = None,
    offered: bool = False,
) -> ScriptVersion:
    """Store a version of a script, and create the script if there is none. Modules are not compiled here.

    Args:
        source: the text of ``main.js``, source by file name including ``main.js``, the bytes of a WebAssembly module,
            or content read under this tenant's limits.
        audit_context: actor and reason.
        needs: returns this version's grants as JSON text, given those of the previous version; by default they stay.
        fields: typed params.
        offered: whether every tenant may bind it; platform scripts only.

    Raises:
        InputError: script_name_invalid, grant_unknown, kind_fixed, not_offerable; those of
            :func:`lodger.engine.store.scripts.content.read`.
        NotFound: tenant_unknown.
        Conflict: scripts_full, versions_full.
    """
    ready_queue.lock(connection, [tenant_id])
    asked, counted = tenants.ask(connection, tenant_id), _number.ask(connection, {"tenant": tenant_id})
    before = find_latest(connection, tenant_id, name)
    granted = json.dumps(asked().limits_in_effect, sort_keys=True)
    check_name(tenant_id, name, offered=offered)
    content = source if isinstance(source, Content) else read(source, context.content_cache.limits(granted, None), name)
    held = needs(before.grants if before else None)
    typed = None if fields is None else json.dumps(dump_fields(fields))
    if before is not None and before.kind != content.kind:
        raise InputError("kind_fixed", name=name, kind=before.kind)
    if before is not None and (before.digest, encode(before.grants), before.fields) == (
        content.digest, held, None if typed is None else json.loads(typed),
    ):  # fmt: skip
        kept = (scripts.c.id == before.script_id, _not_bound)
        prepared.write(connection, update(scripts).where(*kept).values(offered=int(offered)))
        return before
    _check_counts(tenant_id, before, counted()[0].number, context.content_cache.allowance(granted))
    script_id, version = (context.ids.new(), 1) if before is None else (before.script_id, before.version + 1)
    if before is None:
        kind = "script" if content.kind == LIBRARY else content.kind
        insert_many(connection, scripts, [{
            "tenant_id": tenant_id, "id": script_id, "name": name, "version": 1, "created_us": now_us, "kind": kind,
            "offered": int(offered),
        }])  # fmt: skip
    else:
        # Tenants that have bound it run the newest version too.
        prepared.write(connection, update(scripts).where(scripts.c.id == script_id, _is_bound).values(version=version))
        update_row(connection, scripts, tenant_id, script_id, version=version, offered=int(offered))
    insert_many(connection, script_versions, [{
        "tenant_id": tenant_id, "script_id": script_id, "version": version, "digest": content.digest, "created_us": now_us,
        "modules": json.dumps(content.modules, ensure_ascii=False), "wasm": content.wasm,
        "grants": held, "created_by": audit_context.actor, "why": audit_context.why, "fields": typed,
    }])  # fmt: skip
    return get(connection, tenant_id, name, version)


def put_handler(
    context: StoreContext, connection: Connection, handler: Handler, now_us: int, audit_context: AuditContext
) -> ScriptVersion:
    """Store a handler as a platform script that schedules can bind; an unchanged one creates no new version."""
    body = json.dumps({"deadline_s": handler.deadline_s})
    content = Content({"host.json": body}, None, hashlib.sha256(b"host\0" + body.encode()).hexdigest(), "host")
    return put(
        context,
        connection,
        PLATFORM,
        handler.name,
        content,
        now_us,
        audit_context,
        fields=handler.fields,
        offered=handler.offered,
    )


#: Literals, as in the condition of the index.
_not_bound, _is_bound = text("kind <> 'bound'"), text("kind = 'bound'")


def check_name(tenant_id: str, name: str, *, offered: bool = False) -> None:
    """Check the name of a script of a tenant, and whether it may be offered.

    Raises:
        InputError: script_name_invalid, not_offerable.
    """
    names.check_path_part(name, "script_name_invalid")
    if offered and tenant_id != PLATFORM:
        raise InputError("not_offerable", name=name, platform=PLATFORM)
    if name.startswith(PLATFORM_PREFIX):
        raise InputError("script_name_invalid.reserved", name=name, prefix=PLATFORM_PREFIX)


def _check_counts(tenant_id: str, before: ScriptVersion | None, number: int, allowed: Allowance) -> None:
    """Refuse a further version of a script, or a further script, beyond the tenant's allowance."""
    if before is not None and before.version >= allowed.versions:
        raise Conflict("versions_full", name=before.name, maximum=allowed.versions)
    if before is None and number >= allowed.scripts:
        raise Conflict("scripts_full", tenant=tenant_id, maximum=allowed.scripts)


_number = Prepared(
    lambda _driver: select(func.count(scripts.c.id).label("number")).where(scripts.c.tenant_id == bindparam("tenant"))
)
_names = Prepared(
    lambda driver: select(scripts.c.tenant_id, scripts.c.name).where(driver.among(scripts.c.tenant_id, "tenants"))
)
# Without the bytes of modules: a list of versions would load megabytes.
_with_name = select(
    *(column for column in script_versions.c if column.name != "wasm"),
    func.length(script_versions.c.wasm).label("wasm_bytes"),
    scripts.c.name,
    scripts.c.kind,
    scripts.c.suspended_us,
).join_from(script_versions, scripts)


_one = Prepared(
    lambda _driver: _with_name.where(
        scripts.c.tenant_id == bindparam("tenant"),
        scripts.c.name == bindparam("called"),
        script_versions.c.version == func.coalesce(bindparam("number", type_=Integer), scripts.c.version),
    )
)


def _version(row: AnyRow) -> ScriptVersion:
    """Return the script version of a row."""
    stored = json.loads(row.modules)
    return record(
        ScriptVersion,
        row,
        modules=authored(stored),
        kind=kind_of(row.kind, row.modules),
        state=_state(row),
        uses=used(stored),
    )


def _state(row: AnyRow) -> str:
    """Return the state of a script: active or suspended."""
    return "active" if row.suspended_us is None else "suspended"


def get(connection: Connection, tenant_id: str, name: str, version: int | None = None) -> ScriptVersion:
    """Return a version of a script, the latest by default.

    Raises:
        NotFound: script_unknown.
    """
    number = None if version is None else names.ordinal(version)
    row = _one.first(connection, {"tenant": tenant_id, "called": name, "number": number})
    if row is None:
        if version is None:
            raise NotFound("script_unknown", tenant=tenant_id, script=name)
        raise NotFound("script_unknown.version", tenant=tenant_id, script=name, version=version)
    return _version(row)


def content(connection: Connection, version: ScriptVersion) -> Content:
    """Return the content of a version, in a form that can be stored again."""
    v = script_versions.c
    mine = (v.tenant_id == version.tenant_id, v.script_id == version.script_id, v.version == version.version)
    row = connection.execute(select(v.modules, v.wasm).where(*mine)).one()
    wasm = None if row.wasm is None else bytes(row.wasm)
    return Content(json.loads(row.modules), wasm, version.digest, version.kind)


def module(connection: Connection, tenant_id: str, name: str, version: int | None = None) -> bytes:
    """Return the bytes of a version that is a WebAssembly module, the latest by default.

    Raises:
        NotFound: script_unknown.
        InputError: no_module.
    """
    wasm = content(connection, get(connection, tenant_id, name, version)).wasm
    if wasm is None:
        raise InputError("no_module", name=name)
    return wasm


def names_of(connection: Connection, tenant_ids: Iterable[str]) -> set[tuple[str, str]]:
    """Return tenant and name of each script of these tenants."""
    return {(row.tenant_id, row.name) for row in _names.rows(connection, {"tenants": sorted(tenant_ids)})}


def find_latest(connection: Connection, tenant_id: str, name: str) -> ScriptVersion | None:
    """Return the latest version, None if the script does not exist."""
    try:
        return get(connection, tenant_id, name)
    except NotFound:
        return None


def versions(
    connection: Connection, tenant_id: str, name: str, limit: int | None, cursor: str | None
) -> Page[ScriptVersion]:
    """Return a page of the versions of a script, newest first."""
    get(connection, tenant_id, name)
    of, newest = f"versions:{tenant_id}:{name}", list_filter.Filter((script_versions.c.version,))
    mine = _with_name.where(scripts.c.tenant_id == tenant_id, scripts.c.name == name)
    return pages.read(connection, of, newest, mine, lambda rows: [_version(row) for row in rows], limit, cursor)


def language() -> list_filter.Language:
    """Return the filter language of lists of scripts."""
    return list_filter.Language(
        fields={
            "tenant": list_filter.named(scripts.c.tenant_id),
            "name": list_filter.named(scripts.c.name),
            "kind": list_filter.named(scripts.c.kind),
            "state": list_filter.one_of(
                case((scripts.c.suspended_us.is_(None), "active"), else_="suspended"),
                ("active", "suspended"),
                "state_unknown",
            ),
            "since": list_filter.since(scripts.c.created_us),
            "until": list_filter.until(scripts.c.created_us),
        },
        words=list_filter.contains(scripts.c.name),
        sorts={
            "tenant": scripts.c.tenant_id,
            "name": scripts.c.name,
            "created": scripts.c.created_us,
            "version": scripts.c.version,
        },
        tie=(scripts.c.tenant_id, scripts.c.name),
    )


def own(tenant_id: str | None) -> Select[Any]:
    """Return the statement of the own scripts of a tenant, or of all."""
    return _latest.where(scripts.c.tenant_id != PLATFORM if tenant_id is None else scripts.c.tenant_id == tenant_id)


def list_page(
    connection: Connection,
    tenant_id: str | None,
    found: list_filter.Filter,
    limit: int | None,
    cursor: str | None,
) -> Page[Script]:
    """Return a page of the own scripts of a tenant, or of all, that match a filter."""
    return pages.read(connection, f"scripts:{tenant_id}:{found.text}", found, own(tenant_id), _scripts, limit, cursor)


def list_offered(connection: Connection) -> list[Script]:
    """Return the platform's scripts that every tenant may bind, by name."""
    theirs = _latest.where(scripts.c.tenant_id == PLATFORM, scripts.c.offered == 1)
    return _scripts(connection.execute(theirs.order_by(scripts.c.name)))


def is_offered(connection: Connection, script_id: str) -> bool:
    """Whether every tenant may bind this script."""
    return bool(connection.scalar(select(scripts.c.offered).where(scripts.c.id == script_id, _not_bound)))


_latest = select(
    scripts.c.tenant_id, scripts.c.id, scripts.c.name, scripts.c.version, scripts.c.created_us, scripts.c.kind,
    scripts.c.offered, scripts.c.suspended_us, script_versions.c.fields,
    func.substr(script_versions.c.modules, 1, len(LIBRARY_START)).label("start"),
).join_from(
    scripts,
    script_versions,
    (script_versions.c.tenant_id == scripts.c.tenant_id)
    & (script_versions.c.script_id == scripts.c.id)
    & (script_versions.c.version == scripts.c.version),
)  # fmt: skip


def _scripts(rows: Iterable[AnyRow]) -> list[Script]:
    """Return the scripts of rows."""
    return [record(Script, row, kind=kind_of(row.kind, row.start), state=_state(row)) for row in rows]


def suspend(connection: Connection, tenant_id: str, name: str, now_us: int) -> ScriptVersion:
    """Suspend a script; one of the platform's is suspended for every tenant that has bound it.

    Raises:
        NotFound: script_unknown.
    """
    found = get(connection, tenant_id, name)
    if found.state != "active":
        return found
    tenants = _lock_users(connection, tenant_id, found.script_id)
    update_row(connection, scripts, tenant_id, found.script_id, suspended_us=now_us)
    mine = actions.c.tenant_id.in_(tenants) & (actions.c.script_id == found.script_id)
    hand_back(connection, mine, now_us)
    ready_queue.refresh(connection, tenants)
    return get(connection, tenant_id, name)


def resume(connection: Connection, tenant_id: str, name: str) -> ScriptVersion:
    """Resume a script; its waiting actions may start.

    Raises:
        NotFound: script_unknown.
    """
    found = get(connection, tenant_id, name)
    tenants = _lock_users(connection, tenant_id, found.script_id)
    update_row(connection, scripts, tenant_id, found.script_id, suspended_us=None)
    ready_queue.refresh(connection, tenants)
    return get(connection, tenant_id, name)


def _lock_users(connection: Connection, tenant_id: str, script_id: str) -> list[str]:
    """Lock and return the tenants with actions of a script."""
    if tenant_id != PLATFORM:
        tenants = [tenant_id]
    else:
        tenants = sorted(connection.scalars(select(scripts.c.tenant_id).where(scripts.c.id == script_id)))
    ready_queue.lock(connection, tenants)
    return tenants
