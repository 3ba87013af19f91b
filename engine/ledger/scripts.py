"""Scripts and their versions. A version never changes; storing the same source again makes no new one."""

import hashlib
import json
from collections.abc import Mapping

from sqlalchemy import Connection, insert, select, update

from lodger.engine.clock import from_us
from lodger.engine.errors import InputError, NotFound
from lodger.engine.ledger import tenants, turns
from lodger.engine.ledger.books import Books
from lodger.engine.ledger.records import AnyRow, Script, ScriptVersion
from lodger.engine.ledger.schema.scheduling import script_versions, scripts

ENTRY = "main.js"
NAME_LENGTH = 200


def put(
    books: Books,
    connection: Connection,
    tenant_id: str,
    name: str,
    source: str | Mapping[str, str],
    now_us: int,
) -> ScriptVersion:
    """Store a version of a script, making the script when there is none of that name.

    Args:
        source: the text of ``main.js``, or source by file name with ``main.js`` among them.

    Raises:
        InputError: script_name_invalid, script_empty, entry_missing, source_not_text, source_too_large.
        NotFound: tenant_unknown.
    """
    turns.lock(connection, [tenant_id])
    tenant = tenants.get(connection, tenant_id)
    named(name, "script")
    limit = books.sources.limits(json.dumps(tenant.limits, sort_keys=True), None).source_bytes
    modules = _modules(source, limit)
    digest = hashlib.sha256(json.dumps(modules, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()
    row = connection.execute(
        select(scripts).where(scripts.c.tenant_id == tenant_id, scripts.c.name == name).with_for_update()
    ).first()
    if row is not None:
        latest = get(connection, tenant_id, name)
        if latest.digest == digest:
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
            tenant_id=tenant_id, script_id=script_id, version=version, digest=digest, created_us=now_us,
            modules=json.dumps(modules, ensure_ascii=False),
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


def _modules(source: str | Mapping[str, str], limit: int) -> dict[str, str]:
    modules = {ENTRY: source} if isinstance(source, str) else dict(source)
    if ENTRY not in modules:
        raise InputError(
            "entry_missing",
            f"no file is called {ENTRY}",
            why="a script begins there",
            fix=f"name one {ENTRY}",
        )
    size = 0
    for file, text in modules.items():
        try:
            size += len(text.encode())
        except UnicodeEncodeError as error:
            raise InputError(
                "source_not_text",
                f"{file} is not text",
                why="a source is UTF-8 without lone surrogates",
                fix="store the script as UTF-8",
                index=error.start,
            ) from error
        if "\0" in text:
            raise InputError(
                "source_not_text",
                f"{file} is not text",
                why="it holds a NUL character, as binary files do",
                fix="give JavaScript source",
                index=text.index("\0"),
            )
    if size > limit:
        raise InputError(
            "source_too_large",
            f"the script has {size} bytes",
            why=f"this tenant's scripts may have {limit} (limit source_bytes)",
            fix="make it smaller, or ask the operator to raise the limit",
        )
    if not modules[ENTRY].strip():
        raise InputError(
            "script_empty",
            f"{ENTRY} is empty",
            why="there is nothing to run",
            fix="export a default function",
        )
    return {ENTRY: modules.pop(ENTRY)} | dict(sorted(modules.items()))


_with_name = select(script_versions, scripts.c.name).join_from(
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


def versions(connection: Connection, tenant_id: str, name: str) -> list[ScriptVersion]:
    """Give every version, newest first."""
    get(connection, tenant_id, name)
    statement = _with_name.where(scripts.c.tenant_id == tenant_id, scripts.c.name == name)
    return [_version(row) for row in connection.execute(statement.order_by(script_versions.c.version.desc()))]


def list_all(connection: Connection, tenant_id: str) -> list[Script]:
    """Give the tenant's scripts by name."""
    rows = connection.execute(select(scripts).where(scripts.c.tenant_id == tenant_id).order_by(scripts.c.name))
    return [Script(row.tenant_id, row.id, row.name, row.version, from_us(row.created_us)) for row in rows]
