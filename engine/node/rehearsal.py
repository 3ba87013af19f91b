"""One attempt of a stored script that leaves nothing behind: real walls, the data of now, the effects shown."""

import json
from typing import TYPE_CHECKING

from lodger.engine.ledger import scripts, tenants
from lodger.engine.ledger.grants import encoded
from lodger.engine.ledger.records import Json
from lodger.engine.node.executor import Claim, Finished
from lodger.engine.node.sandbox_executor import SandboxExecutor

if TYPE_CHECKING:
    from lodger.engine.sync import Engine


async def rehearse(
    engine: "Engine",
    tenant_id: str,
    script: str,
    params: Json = None,
    version: int | None = None,
    *,
    fetches: bool = False,
) -> Finished:
    """Run a script once; give its end with the effects it asked for. Nothing is stored, no mail is sent.

    Of its requests those leave that only read; with ``fetches`` all of them.

    Raises:
        NotFound: no such tenant, script or version.
        SandboxError: the host cannot raise the walls.
    """
    books = engine.books
    with books.database.read() as connection:
        tenant = tenants.get(connection, tenant_id)
        found = scripts.get(connection, tenant_id, script, version)
        wasm = None if found.wasm_bytes is None else scripts.module(connection, tenant_id, script, found.version)
    now_us = books.clock.now_us()
    claim = Claim(
        action_id=books.ids.new(),
        tenant_id=tenant_id,
        schedule_id=None,
        script_name=found.name,
        script_version=found.version,
        modules=found.modules,
        wasm=wasm,
        attempt=1,
        step=0,
        lease_epoch=0,
        origin="run_now",
        slot_us=None,
        due_us=now_us,
        started_us=now_us,
        params=params,
        grants=books.sources.grants(encoded(tenant.grants), encoded(found.grants)),
        limits=books.sources.limits(json.dumps(tenant.limits, sort_keys=True), None),
        dry_run=True,
        fetches=fetches,
    )
    return await carry_out(engine, claim)


async def carry_out(engine: "Engine", claim: Claim) -> Finished:
    """Run a claim in walls of its own, which come and go with it; nothing is stored.

    Raises:
        SandboxError: the host cannot raise the walls.
    """
    executor = SandboxExecutor.of(engine, workers=1)
    try:
        await executor.start()
        return await executor.execute(claim)
    finally:
        await executor.stop()
