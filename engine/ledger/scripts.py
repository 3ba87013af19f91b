"""Scripts and their versions. A version never changes; storing the same source again makes no new one."""

import hashlib
import json
from typing import Any

from sqlalchemy import Connection, Select, func, insert, select, text, update

from lodger.engine.clock import from_us
from lodger.engine.errors import InputError, NotFound
from lodger.engine.handlers import Handler
from lodger.engine.identity import OWNED, PLATFORM
from lodger.engine.ledger import tenants, turns
from lodger.engine.ledger.books import Books
from lodger.engine.ledger.records import AnyRow, Script, ScriptVersion
from lodger.engine.ledger.schema.scheduling import script_versions, scripts
from lodger.engine.ledger.script_content import Content, Given, read
from lodger.engine.typed_params import Field, dumped_fields
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
    fields: tuple[Field, ...] | None = None,
    offered: bool = False,
) -> ScriptVersion:
    """Store a version of a script, making the script when there is none of that name. A module is not compiled here.

    Args:
        source: the text of ``main.js``, source by file name with ``main.js`` among them, the bytes of a WebAssembly module;
            or what was read of it under this tenant's limits.
        fields: its typed params.
        offered: every tenant may bind it; for the platform's own.

    Raises:
        InputError: script_name_invalid, kind_fixed, not_offerable, and those of
            :func:`lodger.engine.ledger.script_content.read`.
        NotFound: tenant_unknown.
    """
    turns.lock(connection, [tenant_id])
    limits = limits_of(books, connection, tenant_id)
    named(name, "script")
    if name.startswith(OWNED) or (offered and tenant_id != PLATFORM):
        _refuse_owned(name, offered=offered)
    content = source if isinstance(source, Content) else read(source, limits)
    typed = None if fields is None else json.dumps(dumped_fields(fields))
    row = connection.execute(
        select(scripts).where(scripts.c.tenant_id == tenant_id, scripts.c.name == name).with_for_update()
    ).first()
    if row is not None:
        latest = get(connection, tenant_id, name)
        if row.kind != content.kind:
            raise InputError(
                "kind_fixed", f"{name!r} is a {row.kind}", why="a script stays what it is", fix="choose a name"
            )
        if latest.digest == content.digest and latest.fields == (None if typed is None else json.loads(typed)):
            connection.execute(update(scripts).where(scripts.c.id == row.id, _own).values(offered=int(offered)))
            return latest
    script_id, version = (row.id, row.version + 1) if row is not None else (books.ids.new(), 1)
    if row is None:
        values = {"tenant_id": tenant_id, "id": script_id, "name": name, "version": 1, "created_us": now_us,
                  "kind": content.kind, "offered": int(offered)}  # fmt: skip
        connection.execute(insert(scripts).values(values))
    else:
        # Whoever has bound it runs the newest version too.
        connection.execute(update(scripts).where(scripts.c.id == script_id, _foreign).values(version=version))
        mine = (scripts.c.tenant_id == tenant_id, scripts.c.id == script_id)
        connection.execute(update(scripts).where(*mine).values(version=version, offered=int(offered)))
    connection.execute(
        insert(script_versions).values(
            tenant_id=tenant_id, script_id=script_id, version=version, digest=content.digest, created_us=now_us,
            modules=json.dumps(content.modules, ensure_ascii=False), wasm=content.wasm, fields=typed,
        )
    )  # fmt: skip
    return get(connection, tenant_id, name, version)


def put_handler(books: Books, connection: Connection, handler: Handler, now_us: int) -> ScriptVersion:
    """Store a handler as a script of the platform's, so that it can be bound; the same again makes no new version."""
    body = json.dumps({"deadline_s": handler.deadline_s})
    content = Content({"host.json": body}, None, hashlib.sha256(b"host\0" + body.encode()).hexdigest(), "host")
    return put(
        books, connection, PLATFORM, handler.name, content, now_us, fields=handler.fields, offered=handler.offered
    )


#: Literal words, as in the condition of the index.
_own, _foreign = text("kind <> 'bound'"), text("kind = 'bound'")


def _refuse_owned(name: str, *, offered: bool) -> None:
    if offered:
        raise InputError(
            "not_offerable",
            f"{name!r} cannot be offered to other tenants",
            why=f"only the platform's own scripts can be bound by everybody: those of tenant {PLATFORM}",
            fix=f"store it under {PLATFORM}",
        )
    raise InputError(
        "script_name_invalid",
        f"{name!r} cannot name a script",
        why=f"{OWNED} stands before the platform's",
        fix="leave it out",
    )


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
    scripts.c.kind,
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
        row.kind,
        None if row.fields is None else json.loads(row.fields),
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


_latest = select(
    scripts.c.tenant_id,
    scripts.c.id,
    scripts.c.name,
    scripts.c.version,
    scripts.c.created_us,
    scripts.c.kind,
    scripts.c.offered,
    script_versions.c.fields,
).join_from(
    scripts,
    script_versions,
    (script_versions.c.tenant_id == scripts.c.tenant_id)
    & (script_versions.c.script_id == scripts.c.id)
    & (script_versions.c.version == scripts.c.version),
)


def list_all(connection: Connection, tenant_id: str) -> list[Script]:
    """Give the tenant's own scripts by name."""
    return _listed(connection, _latest.where(scripts.c.tenant_id == tenant_id))


def offered(connection: Connection) -> list[Script]:
    """Give the platform's scripts that every tenant may bind, by name."""
    return _listed(connection, _latest.where(scripts.c.tenant_id == PLATFORM, scripts.c.offered == 1))


def _listed(connection: Connection, statement: Select[Any]) -> list[Script]:
    return [
        Script(row.tenant_id, row.id, row.name, row.version, from_us(row.created_us), row.kind,
               None if row.fields is None else json.loads(row.fields), bool(row.offered))
        for row in connection.execute(statement.order_by(scripts.c.name))
    ]  # fmt: skip
