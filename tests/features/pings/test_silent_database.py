"""A ping whose wall ends while the database does not answer is the engine's fault."""

import asyncio
import json
from dataclasses import replace

from tests.e2e.script_runs import claim
from tests.unit.data.conftest import bare, kind
from tests.unit.data.shop import Frozen, Shop
from tests.unit.data.silent import Silent

from lodger.engine.core.access.grants import parse
from lodger.engine.core.settings import Settings
from lodger.engine.egress.way_out import WayOut
from lodger.engine.features.pings.executor import PingExecutor
from lodger.engine.node.executors.attempt import UNANSWERED
from lodger.engine.node.executors.host_side import HostSide
from lodger.engine.vault.keyring import Keyring
from lodger.engine.vault.vault import Vault
from lodger.sandbox.limits import Limits
from lodger.sandbox.outcome import Outcome

__all__ = ["bare", "kind"]


def test_a_ping_that_waits_for_a_silent_database_is_the_engines_fault(bare: Shop) -> None:
    ping = {"url": "http://127.0.0.1:1/", "headers": {"X-Key": "{{secret:KEY}}"}}
    asked = replace(
        claim("", limits=Limits(wall_ms=600)),
        modules={"ping.json": json.dumps(ping)},
        grants=parse(["fetch:http://127.0.0.1:1", "secret:KEY"]),
    )
    side = HostSide(
        Silent(bare), bare.datasets, Frozen(), way_out=WayOut(Settings()), vault=Vault(Keyring(None))
    )  # fmt: skip
    ended = asyncio.run(PingExecutor(side, owned=True).execute(asked))
    assert (ended.outcome, ended.error) == (Outcome.ENGINE_FAULT, UNANSWERED)
