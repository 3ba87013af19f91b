"""What a name means where a script is bound: the tenant's own, or with @ before it one that the platform offers."""

import json
from dataclasses import dataclass

from sqlalchemy import Connection, select

from lodger.engine.errors import NotFound
from lodger.engine.identity import OWNED, PLATFORM
from lodger.engine.ledger.insertion import dialect_insert
from lodger.engine.ledger.schema.scheduling import script_versions, scripts
from lodger.engine.policy.labels import HOST
from lodger.engine.typed_params import Field, read_fields

_s = scripts.c
_found = select(
    _s.id, _s.version, _s.kind, _s.name, _s.offered, _s.created_us, script_versions.c.fields
).join_from(
    scripts,
    script_versions,
    (script_versions.c.tenant_id == _s.tenant_id) & (script_versions.c.script_id == _s.id)
    & (script_versions.c.version == _s.version),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bound:
    """A script as a schedule or request binds it: its newest version."""

    script_id: str
    version: int
    kind: str
    name: str
    fields: tuple[Field, ...] | None

    @property
    def requires(self) -> str:
        """What a node must carry to run it, as a label; '' when any can."""
        return HOST + self.name if self.kind == "host" else ""


def bind(connection: Connection, tenant_id: str, name: str) -> Bound:
    """Give the script that this name means for a tenant, noting that a script of the platform's is bound.

    Raises:
        NotFound: script_unknown.
    """
    owned = name.startswith(OWNED)
    owner = PLATFORM if owned else tenant_id
    row = connection.execute(_found.where(_s.tenant_id == owner, _s.name == name.removeprefix(OWNED))).first()
    if row is None or (
        owned and tenant_id != PLATFORM and not row.offered and not _held(connection, tenant_id, row.id)
    ):
        fix = "lodger script offered lists them" if owned else "store it first"
        whose = "the platform offers" if owned else f"tenant {tenant_id!r} has"
        raise NotFound("script_unknown", f"{whose} no script {name!r}", fix=fix)
    if owned and tenant_id != PLATFORM:
        values = {"tenant_id": tenant_id, "id": row.id, "name": name, "version": row.version, "kind": "bound"}
        made = dialect_insert(connection, scripts).values(values | {"created_us": row.created_us})
        connection.execute(made.on_conflict_do_nothing())
    fields = read_fields(json.loads(row.fields)) if row.fields else None
    return Bound(row.id, row.version, row.kind, row.name, fields)


def _held(connection: Connection, tenant_id: str, script_id: str) -> bool:
    """Whether the tenant has bound it before: what is offered no more goes on where it was bound."""
    held = select(_s.id).where(_s.tenant_id == tenant_id, _s.id == script_id, _s.kind == "bound")
    return connection.scalar(held) is not None
