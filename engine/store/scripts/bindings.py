"""Resolution of script names: a tenant's own script, or with @ before it one that the platform offers."""

import json
from dataclasses import dataclass

from sqlalchemy import Connection, Integer, bindparam, func, select

from lodger.engine.core.access import names
from lodger.engine.core.access.labels import HOST
from lodger.engine.core.errors import InputError, NotFound
from lodger.engine.core.ids import PLATFORM, PLATFORM_PREFIX
from lodger.engine.core.params import Field, read_fields
from lodger.engine.store.bulk import insert_many
from lodger.engine.store.drivers.prepared import Prepared
from lodger.engine.store.records import AnyRow
from lodger.engine.store.schema.scheduling import script_versions, scripts
from lodger.engine.store.stored_modules import LIBRARY, LIBRARY_START, kind_of

_s = scripts.c
_v = script_versions.c
_found = Prepared(
    lambda _driver: (
        select(
            _s.id, _v.version, _s.version.label("newest"), _s.kind, _s.name, _s.offered, _s.created_us, _v.fields,
            func.substr(_v.modules, 1, len(LIBRARY_START)).label("start"),
        )
        .join_from(scripts, script_versions)
        .where(
            _s.tenant_id == bindparam("tenant"), _s.name == bindparam("called"), _s.kind != "bound",
            _v.version == func.coalesce(bindparam("number", type_=Integer), _s.version),
        )
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class BoundScript:
    """A version of a script as bound by a schedule or a request."""

    script_id: str
    version: int
    kind: str
    name: str
    fields: tuple[Field, ...] | None

    @property
    def requires(self) -> str:
        """Label that a node must carry to run the script; '' for any node."""
        return HOST + self.name if self.kind == "host" else ""


def bind(connection: Connection, tenant_id: str, name: str, version: int | None = None) -> BoundScript:
    """Return the script with this name for a tenant, and record the binding of a platform script; see :func:`find`."""
    found, row = _find(connection, tenant_id, name, version)
    if name.startswith(PLATFORM_PREFIX) and tenant_id != PLATFORM:
        bound = {"tenant_id": tenant_id, "id": row.id, "name": name, "version": row.newest, "kind": "bound"}
        insert_many(connection, scripts, [bound | {"created_us": row.created_us}], absent=True)
    return found


def find(connection: Connection, tenant_id: str, name: str, version: int | None = None) -> BoundScript:
    """Return the script with this name for a tenant.

    Args:
        version: version number; None for the newest.

    Raises:
        NotFound: script_unknown.
        InputError: library_not_run.
    """
    return _find(connection, tenant_id, name, version)[0]


def _find(connection: Connection, tenant_id: str, name: str, version: int | None) -> tuple[BoundScript, AnyRow]:
    """Return a script of a tenant or of the platform, with its row."""
    owned = name.startswith(PLATFORM_PREFIX)
    owner = PLATFORM if owned else tenant_id
    number = None if version is None else names.ordinal(version)
    row = _found.first(connection, {"tenant": owner, "called": name.removeprefix(PLATFORM_PREFIX), "number": number})
    if row is None or (
        owned and tenant_id != PLATFORM and not row.offered and not _is_bound(connection, tenant_id, row.id)
    ):
        if version is not None:
            raise NotFound("script_unknown.version", tenant=owner, script=name, version=version)
        if owned:
            raise NotFound("script_unknown.offered", script=name)
        raise NotFound("script_unknown", tenant=tenant_id, script=name)
    found = _bound(row)
    if found.kind == LIBRARY:
        raise InputError("library_not_run", name=name)
    return found, row


def _bound(row: AnyRow) -> BoundScript:
    """Return the script of a row."""
    fields = read_fields(json.loads(row.fields)) if row.fields else None
    return BoundScript(row.id, row.version, kind_of(row.kind, row.start), row.name, fields)


def _is_bound(connection: Connection, tenant_id: str, script_id: str) -> bool:
    """Whether the tenant has bound the script before; a binding outlives the offer."""
    held = select(_s.id).where(_s.tenant_id == tenant_id, _s.id == script_id, _s.kind == "bound")
    return connection.scalar(held) is not None
