"""Two hundred pages open while slots run: every slot has its run, and what the pages ask of the ledger is bounded."""

import asyncio
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import httpx2
from sqlalchemy import event
from tests.api.running_api import NO_CERTIFICATES, serving

from lodger.engine.core.settings import Settings
from lodger.engine.sync import Engine
from lodger.engine.web.dashboard import Dashboard

PAGES = 200
#: Times that each open page fetches itself.
REFRESHES = 3
SCHEDULES = 4
SETTINGS = Settings(sqlite_synchronous="NORMAL", api_port=0, api_requests_per_minute=1_000_000, min_interval_s=1)


async def _keep_open(url: str, token: str) -> list[int]:
    """Open the pages with one session, let each fetch itself now and then, and return their statuses."""
    async with httpx2.AsyncClient(
        base_url=url, timeout=50, trust_env=False, verify=NO_CERTIFICATES, limits=httpx2.Limits(max_connections=PAGES)
    ) as client:
        (await client.post("/api/v1/session", json={"token": token})).raise_for_status()

        async def page() -> list[int]:
            found = []
            for _ in range(REFRESHES):
                found.append((await client.get("/t/acme", headers={"accept": "text/html"})).status_code)
                await asyncio.sleep(1)
            return found

        return [status for each in await asyncio.gather(*(page() for _ in range(PAGES))) for status in each]


def test_slots_run_beside_two_hundred_open_pages(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger.db")
    # As in lodger up: the node and the API have an engine each.
    with Engine.open(path, settings=SETTINGS) as worker, Engine.open(path, settings=SETTINGS) as engine:
        worker.tenants.create("acme")
        worker.scripts.put("acme", "job", "export default () => 1")
        token = engine.tokens.create("open", "operator").text
        asked: list[str] = []

        @event.listens_for(engine.context.database.engine, "before_cursor_execute")
        def note(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
            if "lodger_actions" in statement:
                asked.append(statement)

        with serving(engine) as server, worker.node():
            Dashboard(server.api).add()
            made = [
                worker.schedules.create("acme", f"s{number}", script="job", rules="every 1s", overlap="queue_all")
                for number in range(SCHEDULES)
            ]
            statuses = asyncio.run(_keep_open(server.url, token))
            for each in made:
                worker.schedules.pause("acme", each.id)
            worker.actions.list("acme", state="ready")
        assert statuses == [200] * (PAGES * REFRESHES)
        for each in made:
            slots = sorted(action.slot for action in worker.actions.list("acme", each.id, limit=None) if action.slot)
            assert len(slots) >= REFRESHES - 1
            assert {later - earlier for earlier, later in pairwise(slots)} <= {timedelta(seconds=1)}
        states = {action.state for action in worker.actions.list("acme", limit=None)}
        assert states <= {"done", "ready", "running"}, "none was missed"
        alone = len(asked)
        with serving(engine) as server:
            Dashboard(server.api).add()
            with httpx2.Client(base_url=server.url, trust_env=False, verify=NO_CERTIFICATES, timeout=50) as client:
                client.post("/api/v1/session", json={"token": token}).raise_for_status()
                assert client.get("/t/acme", headers={"accept": "text/html"}).status_code == 200
        one = len(asked) - alone
        # A page is made at most once a second, however many show it.
        assert alone <= one * PAGES * REFRESHES / 10
