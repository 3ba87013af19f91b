"""Scripts and their versions. A version never changes; storing the same source again makes no new one."""

import json
from collections.abc import Callable

from sqlalchemy import Connection, func, insert, select, update

from lodger.engine.clock import from_us
from lodger.engine.errors import InputError, NotFound
from lodger.engine.ledger import tenants, turns
from lodger.engine.ledger.books import Books, listed
from lodger.engine.ledger.grants import encoded
from lodger.engine.ledger.records import AnyRow, Script, ScriptVersion
from lodger.engine.ledger.schema.scheduling import script_versions, scripts
from lodger.engine.ledger.script_content import Content, Given, read
from lodger.sandbox.limits import Limits

NAME_LENGTH = 200


def limits_of(books: Books, connection: Connection, tenant_id: str) -> Limits:
    """Give what the tenant's scripts may have at most. Raises NotFound."""
    tenant = tenants.get(connection, tenant_id)
    return books.sources.limits(json.dumps(tenant.limits, sort_keys=True), None)


def put(
    books: Books,
    connection: Connection,
    tenant_id: str,
    name: str,
    source: Given | Content,
    now_us: int,
    *,
    needs: Callable[[tuple[str, ...] | None], str | None] = encoded,
) -> ScriptVersion:
    """Store a version of a script, making the script when there is none of that name. A module is not compiled here.

    Args:
        source: the text of ``main.js``, source by file name with ``main.js`` among them, the bytes of a WebAssembly module;
            or what was read of it under this tenant's limits.
        needs: given the grants of the version before, answers this version's as JSON text; unless told they stay.

    Raises:
        InputError: script_name_invalid, grant_unknown, and those of :func:`lodger.engine.ledger.script_content.read`.
        NotFound: tenant_unknown.
    """
    turns.lock(connection, [tenant_id])
    limits = limits_of(books, connection, tenant_id)
    named(name, "script")
    content = source if isinstance(source, Content) else read(source, limits)
    row = connection.execute(
        select(scripts).where(scripts.c.tenant_id == tenant_id, scripts.c.name == name).with_for_update()
    ).first()
    latest = None if row is None else get(connection, tenant_id, name)
    held = needs(latest.grants if latest else None)
    if latest is not None and latest.digest == content.digest and encoded(latest.grants) == held:
        return latest
    script_id, version = (row.id, row.version + 1) if row is not None else (books.ids.new(), 1)
    if row is None:
        values = {"tenant_id": tenant_id, "id": script_id, "name": name, "version": 1, "created_us": now_us}
        connection.execute(insert(scripts).values(values))
    else:
        connection.execute(
            update(scripts).where(scripts.c.tenant_id == tenant_id, scripts.c.id == script_id).values(version=version)
        )
    connection.execute(
        insert(script_versions).values(
            tenant_id=tenant_id, script_id=script_id, version=version, digest=content.digest, created_us=now_us,
            modules=json.dumps(content.modules, ensure_ascii=False), wasm=content.wasm, grants=held,
        )
    )  # fmt: skip
    return get(connection, tenant_id, name, version)


def named(name: str, what: str) -> None:
    """Check the name of a script or schedule.

    Raises:
        InputError: script_name_invalid, schedule_name_invalid.
    """
    if not 1 <= len(name) <= NAME_LENGTH or not name.isprintable() or name != name.strip():
        raise InputError(
            f"{what}_name_invalid",
            f"{name!r} cannot name a {what}",
            why=f"a name has 1 to {NAME_LENGTH} printable characters and no space around it",
            fix="shorten it",
        )


# Without the bytes of a module: lists of versions would carry megabytes that nobody looks at.
_with_name = select(
    *(column for column in script_versions.c if column.name != "wasm"),
    func.length(script_versions.c.wasm).label("wasm_bytes"),
    scripts.c.name,
).join_from(
    script_versions,
    scripts,
    (scripts.c.tenant_id == script_versions.c.tenant_id) & (scripts.c.id == script_versions.c.script_id),
)


def _version(row: AnyRow) -> ScriptVersion:
    return ScriptVersion(
        row.tenant_id,
        row.script_id,
        row.name,
        row.version,
        json.loads(row.modules),
        row.digest,
        from_us(row.created_us),
        row.wasm_bytes,
        listed(row.grants),
    )


def get(connection: Connection, tenant_id: str, name: str, version: int | None = None) -> ScriptVersion:
    """Give a version of a script, the latest by default.

    Raises:
        NotFound: script_unknown.
    """
    statement = _with_name.where(
        scripts.c.tenant_id == tenant_id,
        scripts.c.name == name,
        script_versions.c.version == (scripts.c.version if version is None else version),
    )
    row = connection.execute(statement).first()
    if row is None:
        called = f"{name!r}" if version is None else f"{name!r} version {version}"
        raise NotFound("script_unknown", f"tenant {tenant_id!r} has no script {called}", fix="store it first")
    return _version(row)


def module(connection: Connection, tenant_id: str, name: str, version: int | None = None) -> bytes:
    """Give the bytes of a version that is a WebAssembly module, the latest by default.

    Raises:
        NotFound: script_unknown.
        InputError: no_module.
    """
    found = get(connection, tenant_id, name, version)
    wasm = connection.scalar(
        select(script_versions.c.wasm).where(
            script_versions.c.tenant_id == tenant_id,
            script_versions.c.script_id == found.script_id,
            script_versions.c.version == found.version,
        )
    )
    if wasm is None:
        raise InputError("no_module", f"{name!r} is JavaScript", fix="its text is in the version's modules")
    return bytes(wasm)


def versions(connection: Connection, tenant_id: str, name: str) -> list[ScriptVersion]:
    """Give every version, newest first."""
    get(connection, tenant_id, name)
    statement = _with_name.where(scripts.c.tenant_id == tenant_id, scripts.c.name == name)
    return [_version(row) for row in connection.execute(statement.order_by(script_versions.c.version.desc()))]


def list_all(connection: Connection, tenant_id: str) -> list[Script]:
    """Give the tenant's scripts by name."""
    rows = connection.execute(select(scripts).where(scripts.c.tenant_id == tenant_id).order_by(scripts.c.name))
    return [Script(row.tenant_id, row.id, row.name, row.version, from_us(row.created_us)) for row in rows]
