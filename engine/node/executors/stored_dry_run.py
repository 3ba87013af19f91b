"""One attempt of a stored script that leaves nothing behind: real walls, the data of now, the effects shown."""

import json

from sqlalchemy import Connection

from lodger.engine.core.errors import InputError
from lodger.engine.core.execution import Claim, Finished
from lodger.engine.node.executors.sandbox_executor import SandboxExecutor
from lodger.engine.node.host import Host
from lodger.engine.store.context import StoreContext
from lodger.engine.store.records import Json, ScriptVersion, Tenant
from lodger.engine.store.scripts import scripts
from lodger.engine.store.scripts.content import Content
from lodger.engine.store.stored_modules import runnable
from lodger.engine.store.tenants.grants import encode


def read_version(
    connection: Connection, tenant_id: str, script: str, version: int | None
) -> tuple[ScriptVersion, Content]:
    """Read a version that can run dry, the latest by default.

    Raises:
        NotFound: no such script or version.
        InputError: not_rehearsable, it is not code behind walls.
    """
    found = scripts.get(connection, tenant_id, script, version)
    if found.kind != "script":
        raise InputError(
            "not_rehearsable",
            f"{script!r} is a {found.kind}, which cannot be run as a dry run",
            why="it does not run in the sandbox, so its effects cannot be held back",
            fix="run it on a test installation",
        )
    return found, scripts.content(connection, found)


def claim(
    store: StoreContext,
    tenant: Tenant,
    name: str,
    version: int,
    content: Content,
    params: Json,
    grants: tuple[str, ...] | None,
    *,
    fetches: bool,
    pretended_us: int | None = None,
) -> Claim:
    """Make a claim for a dry run, which has no action, under the tenant's limits.

    Args:
        pretended_us: what the script sees as now and as its slot; None for the clock's time and no slot.
    """
    now_us = store.clock.now_us()
    return Claim(
        action_id=store.ids.new(),
        tenant_id=tenant.id,
        schedule_id=None,
        script_name=name,
        script_version=version,
        modules=runnable(content.modules),
        wasm=content.wasm,
        attempt=1,
        step=0,
        lease_epoch=0,
        origin="run_now",
        slot_us=pretended_us,
        due_us=now_us if pretended_us is None else pretended_us,
        started_us=now_us,
        params=params,
        grants=store.content_cache.grants(encode(tenant.grants), encode(grants)),
        limits=store.content_cache.limits(json.dumps(tenant.limits, sort_keys=True), None),
        dry_run=True,
        fetches=fetches,
        pretended_us=pretended_us,
    )


async def carry_out(host: Host, claim: Claim) -> Finished:
    """Run a claim in a sandbox of its own; nothing is stored.

    Raises:
        SandboxError: the host cannot start the sandbox.
    """
    executor = SandboxExecutor.of(host, workers=1)
    try:
        await executor.start()
        return await executor.execute(claim)
    finally:
        await executor.stop()
