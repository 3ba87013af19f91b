"""The claim of a trial, which has no action; and which versions of a ledger can be tried."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sqlalchemy import Connection

from lodger.engine.core.access.grants import Grants
from lodger.engine.core.errors import InputError
from lodger.engine.core.execution import Claim
from lodger.engine.core.params import read_fields
from lodger.engine.store.connection.database import read_together
from lodger.engine.store.context import StoreContext
from lodger.engine.store.records import ScriptVersion, Tenant
from lodger.engine.store.scripts import scripts, source_maps
from lodger.engine.store.scripts.content import Content
from lodger.engine.store.stored_modules import MAP, entries_of, runnable
from lodger.engine.store.tenants import tenants
from lodger.engine.store.tenants.grants import encode
from lodger.engine.store.usage import storage_usage, usage
from lodger.sandbox.job import ScriptError
from lodger.sandbox.limits import Limits
from lodger.sandbox.nodejs import type_stripping

#: Runnable files by name, or the bytes of a WebAssembly module.
Source = dict[str, str] | bytes
#: Owner and action of a trial that no ledger knows.
TENANT, ACTION_ID = "dry-run", "00000000-0000-7000-8000-000000000000"


def runnable_files(files: dict[str, str]) -> dict[str, str] | ScriptError:
    """Return the runnable files of an author's files, the entry first: TypeScript as JavaScript, the source map unpacked; or an error."""
    entry = next(iter(entries_of(files, None)), None)
    files = files if entry is None else {entry: files[entry]} | files
    stripped = type_stripping.strip(TENANT, files)
    if stripped.error is not None:
        return stripped.error
    source_map = files.get(source_maps.FILE)
    made = files | stripped.files | ({} if source_map is None else {MAP: source_maps.unpacked(source_map)})
    made.pop(source_maps.FILE, None)
    return made


def claim(source: Source, params: Any, *, grants: Grants, limits: Limits, now_us: int, fetches: bool = False) -> Claim:
    """Return the claim of a trial that no ledger knows.

    Args:
        fetches: whether all requests are sent, not only those with GET and HEAD.
    """
    return Claim(
        action_id=ACTION_ID,
        tenant_id=TENANT,
        schedule_id=None,
        script_name="main",
        script_version=1,
        modules={} if isinstance(source, bytes) else source,
        wasm=source if isinstance(source, bytes) else None,
        attempt=1,
        step=0,
        lease_epoch=0,
        origin="run_now",
        slot_us=None,
        due_us=now_us,
        started_us=now_us,
        params=params,
        grants=grants,
        limits=limits,
        trial=True,
        fetches=fetches,
    )


@dataclass(frozen=True, slots=True)
class Terms:
    """Limits of a tenant's trials, beside the grants of a version.

    Attributes:
        day: limit and use of each budget of the day that has a limit.
        storage: limit and use of the storage in bytes.
    """

    tenant: Tenant
    day: Mapping[str, tuple[int, int]]
    storage: tuple[int, int]


def read_terms(store: StoreContext, connection: Connection, tenant_id: str) -> Terms:
    """Read the present terms of a tenant.

    Raises:
        NotFound: tenant_unknown.
    """
    tenant, used, stored = read_together(
        partial(tenants.get, connection, tenant_id),
        partial(usage.usages_of_day, store, connection, [tenant_id], store.clock.now_us() // usage.DAY_US),
        partial(storage_usage.of_tenant, connection, tenant_id),
        connection=connection,
    )
    today = used[tenant_id]
    return Terms(tenant, today.limited, (today.allowed.storage_bytes, stored.total))


def claim_in_ledger(
    store: StoreContext,
    terms: Terms,
    name: str,
    version: ScriptVersion | None,
    content: Content,
    params: Any,
    *,
    fetches: bool,
    offline: bool,
    pretended_us: int | None,
    edited: bool = False,
) -> Claim:
    """Return the claim of a trial under the terms of a tenant.

    Args:
        version: the stored version; None for a script that is not stored.
        offline: whether no request is sent, and no secret read.
        pretended_us: instant that the script sees as now and as its slot; None for the clock's time and no slot.
        edited: whether the content is an edit of that version, which has its grants and is not stored.
    """
    tenant, cached, now_us = terms.tenant, store.content_cache, store.clock.now_us()
    limits = json.dumps(tenant.limits_in_effect, sort_keys=True)
    stored = None if edited else version
    alone = claim(
        runnable(content.modules) if content.wasm is None else content.wasm,
        params,
        grants=cached.grants(encode(tenant.grants), encode(None if version is None else version.grants)),
        limits=cached.limits(limits, None),
        now_us=now_us,
        fetches=fetches,
    )
    return replace(
        alone,
        action_id=store.ids.new(),
        tenant_id=tenant.id,
        script_name=name,
        script_version=0 if stored is None else stored.version,
        fields=None if stored is None else read_fields(stored.fields),
        budgets=cached.budgets(limits, None),
        day=terms.day,
        storage=terms.storage,
        offline=offline,
        slot_us=pretended_us,
        due_us=now_us if pretended_us is None else pretended_us,
        pretended_us=pretended_us,
    )


def read_version(
    connection: Connection, tenant_id: str, script: str, version: int | None
) -> tuple[ScriptVersion, Content]:
    """Read a version that can be tried, the latest by default.

    Raises:
        NotFound: no such script or version.
        InputError: not_rehearsable, it is not code behind walls.
    """
    found = scripts.get(connection, tenant_id, script, version)
    if found.kind != "script":
        raise InputError("not_rehearsable", script=script, kind=found.kind)
    return found, scripts.content(connection, found)
