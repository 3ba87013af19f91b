"""Cache of the contents of script versions, and of parsed limits, budgets and grants. Their sources never change."""

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, select

from lodger.engine.core.access import grants
from lodger.engine.core.access.grants import Grants
from lodger.engine.core.ids import PLATFORM, PLATFORM_PREFIX
from lodger.engine.core.params import Field, read_fields
from lodger.engine.core.settings import Settings
from lodger.engine.policy import budget_table
from lodger.engine.policy.budget_table import Allowance
from lodger.engine.store.bulk import ManyRows
from lodger.engine.store.records import AnyRow
from lodger.engine.store.schema.scheduling import script_versions, scripts
from lodger.engine.store.stored_modules import runnable
from lodger.sandbox.limits import LIMITS, Limits

#: Maximum number of cached versions, and of cached limits.
KEPT = 2_000
#: Maximum total size of the cached versions; a single WebAssembly module may have megabytes.
KEPT_BYTES = 64 * 1024 * 1024
PROCESS_LIMITS = frozenset(spec.name for spec in LIMITS)

#: (tenant, script, version)
VersionKey = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class VersionContent:
    """The executable content of a script version.

    Attributes:
        name: name of the script, with @ before it if the script is the platform's and the claim another tenant's.
        modules, wasm: the content; one of the two is set.
        grants: grants that the version needs, as JSON text.
        kind: script, ping or host.
        fields: typed params, None for any JSON value.
    """

    name: str
    modules: dict[str, str]
    wasm: bytes | None
    size: int
    grants: str | None = None
    kind: str = "script"
    fields: tuple[Field, ...] | None = None


_wanted = select(
    scripts.c.name, scripts.c.tenant_id, scripts.c.kind, script_versions.c.modules, script_versions.c.wasm,
    script_versions.c.grants, script_versions.c.fields,
).join_from(script_versions, scripts)  # fmt: skip
_versions = ManyRows(
    {"tenant": scripts.c.tenant_id, "script": scripts.c.id, "number": scripts.c.version},
    lambda given, driver: driver.look_up(
        given,
        _wanted,
        # Platform scripts have their versions under the platform; access was checked when the script was bound.
        script_versions.c.tenant_id.in_((given.c.tenant, PLATFORM)),
        script_versions.c.script_id == given.c.script,
        script_versions.c.version == given.c.number,
    ),
)


#: Settings whose names differ from those of the limits that they are the defaults of.
_SETTINGS = {
    "scripts": "scripts_per_tenant", "versions": "versions_per_script", "schedules": "schedules_per_tenant",
}  # fmt: skip


class ContentCache:
    """A bounded cache of :class:`VersionContent`, limits, budgets, grants and allowances."""

    def __init__(self, settings: Settings) -> None:
        default = Allowance(**{
            name: getattr(settings, _SETTINGS.get(name, name)) for name in budget_table.ALLOWANCE_NAMES
        })  # fmt: skip
        #: Returns the allowance of a tenant with these limits (JSON text); raises InputError (limit_out_of_range).
        self.allowance: Callable[[str], Allowance] = lru_cache(KEPT)(lambda limits: default.instead(combined(limits)))
        self._granted = grants.parse(settings.grants.split())
        self._versions: OrderedDict[VersionKey, VersionContent] = OrderedDict()
        self._versions_bytes = 0

    def versions(self, connection: Connection, wanted: Iterable[VersionKey]) -> dict[VersionKey, VersionContent]:
        """Return the content of each version."""
        found, absent = {}, []
        for key in sorted(set(wanted)):
            kept = self._versions.get(key)
            if kept is None:
                absent.append(key)
            else:
                self._versions.move_to_end(key)
                found[key] = kept
        if absent:
            for key, source in _read(connection, absent).items():
                found[key] = self._keep(key, source)
        return found

    def forget(self, tenant: str) -> None:
        """Drop the cached versions of a tenant: a restored archive may have brought other contents under the same numbers."""
        for key in [each for each in list(self._versions) if each[0] == tenant]:
            self._versions_bytes -= self._versions.pop(key).size

    def _keep(self, key: VersionKey, source: VersionContent) -> VersionContent:
        """Cache a version and return it; the oldest versions leave the cache when there are too many or too large ones."""
        self._versions[key] = source
        self._versions_bytes += source.size
        while len(self._versions) > 1 and (len(self._versions) > KEPT or self._versions_bytes > KEPT_BYTES):
            self._versions_bytes -= self._versions.popitem(last=False)[1].size
        return source

    @staticmethod
    @lru_cache(KEPT)
    def limits(tenant_limits: str, wishes: str | None) -> Limits:
        """Return the tenant's process limits, lowered by those of the schedule; both arguments are JSON text."""
        given = {name: value for name, value in combined(tenant_limits).items() if name in PROCESS_LIMITS}
        wished = json.loads(wishes) if wishes else {}
        budget_table.given(wished)
        return Limits(**given).lowered(
            {name: value for name, value in wished.items() if name not in budget_table.OF_ATTEMPT}
        )

    @staticmethod
    @lru_cache(KEPT)
    def budgets(tenant_limits: str, wishes: str | None) -> dict[str, int]:
        """Return every budget of an attempt: the tenant's, lowered by those of the schedule; both arguments are JSON text."""
        allowed, wished = (budget_table.given(combined(text)) if text else {} for text in (tenant_limits, wishes))
        return budget_table.lowered(allowed, wished)

    def grants(self, tenant_grants: str | None, *narrower: str | None) -> Grants:
        """Return the grants of an attempt: those of its tenant, narrowed by its version's and its schedule's (JSON texts).

        A tenant without grants of its own has those of the setting ``grants``; None elsewhere narrows nothing.
        """
        return _grants(self._granted, tenant_grants, narrower)


def combined(limits: str) -> dict[str, Any]:
    """Return the limits of a tenant as ``scheduling.limits_in_effect`` has them: its own, and its plan's for the rest."""
    read = json.loads(limits)
    return read[0] | read[1] if isinstance(read, list) else dict(read)


@lru_cache(KEPT)
def _grants(granted: Grants, tenant_grants: str | None, narrower: tuple[str | None, ...]) -> Grants:
    """Return grants narrowed by version and schedule."""
    found = granted if tenant_grants is None else grants.parse(json.loads(tenant_grants))
    for text in narrower:
        found = found.narrowed(None if text is None else grants.parse(json.loads(text)))
    return found


def _read(connection: Connection, keys: list[VersionKey]) -> dict[VersionKey, VersionContent]:
    """Read the contents of script versions from the ledger, by key."""
    given = [{"tenant": tenant, "script": script, "number": number} for tenant, script, number in keys]
    rows = _versions.rows(connection, given)
    return {(key := (row.tenant, row.script, row.number)): _source(key, row) for row in rows}


def _source(key: VersionKey, row: AnyRow) -> VersionContent:
    """Return the content of a version from its row."""
    module = None if row.wasm is None else bytes(row.wasm)
    name = row.name if row.tenant_id == key[0] else PLATFORM_PREFIX + row.name
    fields = read_fields(json.loads(row.fields)) if row.fields else None
    size = len(row.modules) + len(module or b"") + len(row.fields or "")
    return VersionContent(name, runnable(json.loads(row.modules)), module, size, row.grants, row.kind, fields)
