"""Names and modules of script versions, the limits of attempts, what tenants are allowed: read once, because none ever changes."""

import json
from collections import OrderedDict
from collections.abc import Iterable

from sqlalchemy import Connection, bindparam, select

from lodger.engine.ledger.schema.scheduling import script_versions, scripts
from lodger.engine.policy.allowance import Allowance
from lodger.engine.settings import Settings
from lodger.sandbox.limits import LIMITS, Limits

#: Versions and limits kept.
KEPT = 2_000
PROCESS_LIMITS = frozenset(spec.name for spec in LIMITS)

#: (tenant, script, version)
VersionKey = tuple[str, str, int]


_version = (
    select(scripts.c.name, script_versions.c.modules)
    .join_from(
        script_versions,
        scripts,
        (scripts.c.tenant_id == script_versions.c.tenant_id) & (scripts.c.id == script_versions.c.script_id),
    )
    .where(
        script_versions.c.tenant_id == bindparam("tenant"),
        script_versions.c.script_id == bindparam("script"),
        script_versions.c.version == bindparam("number"),
    )
)


class Sources:
    """A bounded cache."""

    def __init__(self, settings: Settings) -> None:
        self._default = Allowance(
            settings.concurrent_runs,
            settings.schedules_per_tenant,
            settings.min_interval_s,
            settings.runs_per_day,
            settings.cpu_s_per_day,
            settings.mails_per_day,
            settings.retention_days,
            settings.retention_runs,
        )
        self._allowances: OrderedDict[str, Allowance] = OrderedDict()
        self._versions: OrderedDict[VersionKey, tuple[str, dict[str, str]]] = OrderedDict()
        self._limits: OrderedDict[tuple[str, str | None], Limits] = OrderedDict()

    def versions(
        self, connection: Connection, wanted: Iterable[VersionKey]
    ) -> dict[VersionKey, tuple[str, dict[str, str]]]:
        """Give (name of the script, source by file name) of each version."""
        wanted = set(wanted)
        found = {key: self._versions[key] for key in wanted if key in self._versions}
        for key in sorted(wanted - set(found)):
            name, modules = connection.execute(
                _version, dict(zip(("tenant", "script", "number"), key, strict=True))
            ).one()
            found[key] = self._versions[key] = (name, json.loads(modules))
        while len(self._versions) > KEPT:
            self._versions.popitem(last=False)
        return found

    def limits(self, tenant_limits: str, wishes: str | None) -> Limits:
        """Give what the operator allows the tenant, lowered by what the schedule wishes; both are JSON text."""
        key = (tenant_limits, wishes)
        kept = self._limits.get(key)
        if kept is None:
            given = {name: value for name, value in json.loads(tenant_limits).items() if name in PROCESS_LIMITS}
            kept = self._limits[key] = Limits(**given).lowered(json.loads(wishes) if wishes else {})
            while len(self._limits) > KEPT:
                self._limits.popitem(last=False)
        return kept

    def allowance(self, tenant_limits: str) -> Allowance:
        """Give what a tenant with these limits (JSON text) is allowed.

        Raises:
            InputError: limit_out_of_range.
        """
        kept = self._allowances.get(tenant_limits)
        if kept is None:
            kept = self._allowances[tenant_limits] = self._default.instead(json.loads(tenant_limits))
            while len(self._allowances) > KEPT:
                self._allowances.popitem(last=False)
        return kept
