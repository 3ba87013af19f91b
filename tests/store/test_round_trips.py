"""How often the ledger waits for PostgreSQL, counted by a proxy: the server may be a millisecond away."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
import pytest
from sqlalchemy import text
from sqlalchemy.exc import ProgrammingError
from tests.api.every_verb import carry_out_every_verb
from tests.api.running_api import NO_CERTIFICATES, RunningApi, running_api
from tests.node.harness import OK as DONE
from tests.node.harness import Script, Signals
from tests.store.bench import THROWN, Bench
from tests.store.virtual_clock import VirtualClock
from tests.web.every_page import filled

from lodger.bench.slow_proxy import SlowProxy
from lodger.engine import Engine
from lodger.engine.client import Client
from lodger.engine.core.execution import Claim
from lodger.engine.core.settings import Settings
from lodger.engine.effects.finished import Finished
from lodger.engine.store.connection.database import Database
from lodger.engine.store.drivers import driver_of, prepared
from lodger.engine.store.queue import ready_queue
from lodger.engine.sync import Engine as SyncEngine
from lodger.engine.vault.keyring import Keyring
from lodger.engine.web import dashboard
from lodger.engine.web.dashboard import Dashboard
from lodger.sandbox.job import LogLine, ScriptError
from lodger.sandbox.outcome import Outcome

if TYPE_CHECKING:
    from tests.databases.server import Server

#: Of a tick, a claim, a commit, and of a transaction of all three.
MAX_TRIPS = 3
TENANTS = 10
#: Of a batch.
ACTIONS = 4 * TENANTS


@pytest.fixture
def proxy(server: "Server", name: str) -> Iterator[SlowProxy]:
    with SlowProxy(server.url(name)) as proxy:
        yield proxy


@pytest.fixture
def far(proxy: SlowProxy, tmp_path: Path) -> Iterator[Bench]:
    clock = VirtualClock()
    settings = Settings(concurrent_runs=100, min_interval_s=1, secret_keys=tmp_path / "keys")
    with SyncEngine.open(proxy.url, clock=clock, settings=settings) as engine:
        yield Bench(engine, clock)


def round_trips_of(proxy: SlowProxy, work: Callable[[], object]) -> int:
    before = proxy.trips
    work()
    return proxy.trips - before


@pytest.mark.parametrize(
    "finished",
    [THROWN, Finished(Outcome.OK, result="1", logs=(LogLine("log", "hello", 1),))],
    ids=["thrown", "with a log"],
)
def test_a_batch_costs_at_most_three_round_trips(far: Bench, proxy: SlowProxy, finished: Finished) -> None:
    for number in range(TENANTS):
        tenant = far.tenant(f"t{number}", concurrent_runs=ACTIONS)
        for each in range(ACTIONS // TENANTS):
            far.schedule(tenant_id=tenant, name=f"s{each}")
    far.lease()
    far.clock.advance(60)
    far.tick()
    far.run()  # reads each revision and version once
    far.clock.advance(60)
    assert round_trips_of(proxy, far.tick) <= MAX_TRIPS
    claimed: list[Claim] = []
    assert round_trips_of(proxy, lambda: claimed.extend(far.claim(ACTIONS))) <= MAX_TRIPS
    assert len(claimed) == ACTIONS
    assert round_trips_of(proxy, lambda: far.commit(*claimed, finished=finished)) <= MAX_TRIPS
    assert "running" not in far.states()


async def test_no_transaction_of_a_nodes_loop_costs_more(proxy: SlowProxy, tmp_path: Path) -> None:
    settings = Settings(slots=8, concurrent_runs=8, min_interval_s=1, secret_keys=tmp_path / "keys")
    async with Engine.open(proxy.url, settings=settings) as engine:
        for number in range(TENANTS):
            await engine.tenants.create(f"t{number}")
            await engine.scripts.put(f"t{number}", "job", "export default () => 1")
            await engine.schedules.create(f"t{number}", "s", script="job", rules="every 1s")
        signals = Signals(engine)
        async with engine.node(Script(answer=lambda _claim: DONE), "n1"):
            await signals.wait("finished", 2 * TENANTS)
            proxy.is_logging = True
            await signals.wait("finished", 5 * TENANTS)
            proxy.is_logging = False

    costs = transactions(proxy)
    assert len(costs) >= 6
    assert max(costs) <= MAX_TRIPS, costs


def transactions(proxy: SlowProxy) -> list[int]:
    """Return the round trips of each transaction that wrote actions."""
    found = []
    for _number, said in groupby(sorted(proxy.messages, key=lambda each: each[0]), key=lambda each: each[0]):
        trips, writes = 0, False
        for _link, kinds in said:
            trips += 1
            writes = writes or any(
                "UPDATE lodger_actions" in kind or "INSERT INTO lodger_actions" in kind for kind in kinds
            )
            if any("COMMIT" in kind for kind in kinds):
                if writes:
                    found.append(trips)
                trips, writes = 0, False
    return found


def test_statements_that_were_never_sent_are_not_known_as_prepared(server: "Server", name: str) -> None:
    database = Database(server.url(name))
    try:
        for _ in range(2):
            with suppress(KeyError), database.write() as connection:
                ready_queue.lock(connection, ["acme"])
                raise KeyError
            with database.write() as connection:
                ready_queue.lock(connection, ["acme"])
                assert ready_queue.next_startable(connection) is None
    finally:
        database.close()


def test_a_read_that_has_ended_takes_no_further_statement(server: "Server", name: str) -> None:
    """It would run without the role and the tenant that were set for the transaction."""
    database = Database(server.url(name))
    try:
        with suppress(ProgrammingError), database.read() as connection:
            prepared.last(connection)
            assert connection.execute(text("SELECT 1")).scalar() == 1
            with pytest.raises(ProgrammingError, match="has ended"):
                connection.execute(text("SELECT 2"))
        with database.read() as connection:
            assert connection.execute(text("SELECT 3")).scalar() == 3
    finally:
        database.close()


def test_doctor_is_told_of_a_server_that_is_far_away(server: "Server", name: str) -> None:
    with SlowProxy(server.url(name), rtt_ms=20) as proxy:
        database = Database(proxy.url)
        try:
            with database.read() as connection:
                checks = {each.name: each for each in driver_of(connection).check_settings(connection)}
        finally:
            database.close()
    assert checks["distance"].state == "warn"
    assert checks["distance"].fix


def test_a_node_keeps_its_lease_and_each_slot_with_a_server_in_another_region(server: "Server", name: str) -> None:
    async def scenario(url: str) -> None:
        settings = Settings(slots=8, concurrent_runs=8, min_interval_s=1)
        async with Engine.open(url, settings=settings) as engine:
            signals = Signals(engine)
            for number in range(3):
                await engine.tenants.create(f"t{number}")
                await engine.scripts.put(f"t{number}", "job", "export default () => 1", force=True)
                await engine.schedules.create(f"t{number}", "s", script="job", rules="every 1s")
            async with engine.node(Script(answer=lambda _claim: DONE), "n1"):
                await signals.wait("finished", 12)
            rows = await engine.actions.list(state="done", limit=None)
            assert {each.attempt for each in rows} == {1}, "no lease was lost"
            assert len({(each.tenant_id, each.slot) for each in rows}) == len(rows) >= 12

    with SlowProxy(server.url(name), rtt_ms=20) as far:
        asyncio.run(scenario(far.url))


#: Of an API call that reads, and of one that changes.
MAX_READ, MAX_CHANGE = 5, 8
#: Verbs that wait more often, because they read or write rows of every table: how often for a tenant with a page of each.
MORE = {"tenants.export": 25, "tenants.restore": 14}


def waits_of_client(messages: list[tuple[int, list[str]]], writing: dict[int, bool]) -> int:
    """Return how often a client has waited: not for the end of a transaction that only read.

    Args:
        writing: by connection, whether its transaction may write; carried from one call to the next.
    """
    number = 0
    for link, kinds in messages:
        for kind in kinds:
            if kind.startswith("B BEGIN"):
                writing[link] = "READ WRITE" in kind
        number += kinds != ["Q COMMIT"] or writing.get(link, True)
    return number


def test_no_call_of_the_api_waits_more_often_than_is_promised(
    proxy: SlowProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An idempotency key costs one more, which is left out here."""
    Keyring(tmp_path / "keys").add()
    costs: dict[str, list[tuple[str, int]]] = {}
    asked: list[tuple[str, int]] = []
    writing: dict[int, bool] = {}
    real = httpx2.Client.send

    def send(self: httpx2.Client, request: httpx2.Request, **options: object) -> httpx2.Response:
        request.headers.pop("idempotency-key", None)
        before = len(proxy.messages)
        answer = real(self, request, **options)  # type: ignore[arg-type]  # handed through
        answer.read()
        asked.append((request.method, waits_of_client(proxy.messages[before:], writing)))
        return answer

    def said(verb: str, answer: object) -> object:
        costs.setdefault(verb, []).append(asked[-1])
        return answer

    monkeypatch.setattr(httpx2.Client, "send", send)
    proxy.is_logging = True
    with running_api(proxy.url, secret_keys=tmp_path / "keys") as lodge, Client(lodge.url, lodge.token("admin")) as one:
        for each in range(2):  # the first fills caches
            carry_out_every_verb(one, lodge.engine, said, node=f"n{each}")
    found = {}
    for verb, calls in costs.items():
        method, cost = min(calls, key=lambda each: each[1])
        if cost > MORE.get(verb, MAX_READ if method == "GET" else MAX_CHANGE):
            found[verb] = cost
    assert found == {}
    assert len(costs) > 100


#: Of a page of the dashboard, the caller's session included.
MAX_PAGE = 8


def test_a_page_costs_at_most_eight(proxy: SlowProxy) -> None:
    with running_api(proxy.url) as lodge:
        lodge.furnish()
        failed = busy(lodge)
        token = lodge.token("admin")
        Dashboard(lodge.api).add()
        objects = {
            "tenant": ["acme"], "schedule": ["s"], "script": ["job"], "action": [failed],
            "operation": ["schedules.edit", "schedules.list", "secrets.list", "tokens.list", "alerts.list"],
        }  # fmt: skip
        paths = [each for path in dashboard.PAGES for each in filled(path, objects)]
        paths += ["/actions?filter=state:failed", "/t/acme/scripts/job?older=1&newer=2", "/?range=30d"]
        fresh = {"accept": "text/html", "cache-control": "no-cache"}
        with httpx2.Client(
            base_url=lodge.url, timeout=50, trust_env=False, verify=NO_CERTIFICATES, headers=fresh
        ) as browser:
            browser.post("/api/v1/session", json={"token": token}).raise_for_status()
            costs = {
                path: min(round_trips_of(proxy, lambda path=path: answered(browser, path)) for _ in range(3))  # type: ignore[misc]  # its default
                for path in paths
            }
    assert {path: cost for path, cost in costs.items() if cost > MAX_PAGE} == {}, costs


def answered(browser: httpx2.Client, path: str) -> None:
    assert browser.get(path).status_code in {200, 404}, path  # the platform has no page of some operations


def busy(lodge: RunningApi) -> str:
    """Add two versions, runs that run, wait and are paused; return the id of an action that has failed at a line of its script."""
    bench = Bench(lodge.engine, lodge.clock)
    lodge.engine.scripts.put("acme", "job", "export default () => 2")
    lodge.engine.actions.run_now("acme", "s")
    bench.lease("n")
    bench.renew("n")
    lodge.clock.advance(1)
    error = ScriptError("Error", "no", file="main.js", line=1)
    bench.commit(*bench.claim(node="n"), finished=Finished(Outcome.SCRIPT_ERROR, error=error), node="n")
    for number in range(4):
        lodge.engine.schedules.create("acme", f"s{number}", script="job", rules="every 1h")
        lodge.engine.actions.run_now("acme", f"s{number}")
    lodge.engine.schedules.pause("acme", "s3", note="for a while")
    bench.claim(2, node="n")
    lodge.clock.advance(30)
    (action,) = lodge.engine.actions.list("acme", state="failed")
    return action.id


SCRIPT = """
export default async function () {
  for (let i = 0; i < 3; i++) await db.lamps.get("k" + i);
  for (let i = 0; i < 3; i++) await db.lamps.find({n: i});
  for (let i = 0; i < 3; i++) await db.lamps.insert({n: i});
  await kv.set("x", 1);
}
"""


async def test_a_scripts_reads_cost_one_each_and_its_effects_at_most_four(proxy: SlowProxy, tmp_path: Path) -> None:
    async with Engine.open(proxy.url, settings=Settings(secret_keys=tmp_path / "keys")) as engine:
        await engine.tenants.create("acme")
        await engine.scripts.put("acme", "job", SCRIPT)
        await engine.schedules.create("acme", "s", script="job", rules="every 1d")
        signals = Signals(engine)
        async with engine.node():
            await engine.actions.run_now("acme", "s")
            await signals.wait("finished")
            proxy.is_logging = True
            await engine.actions.run_now("acme", "s")
            assert [each.details["outcome"] for each in await signals.wait("finished", 2)] == ["ok", "ok"]

    reads = [kinds for _link, kinds in proxy.messages if any(DOCUMENTS in each for each in kinds)]
    # All but the first find, which asks for the indexes of the collection, are one message from BEGIN to COMMIT.
    assert sum("BEGIN" in str(kinds) and "COMMIT" in str(kinds) for kinds in reads) == 5
    writes = [sum(is_effect(kind) for kind in kinds) for _link, kinds in proxy.messages]
    assert sum(writes) >= 4
    assert sum(each > 0 for each in writes) <= 4


DOCUMENTS = "FROM lodger_documents"


def is_effect(kind: str) -> bool:
    return kind.startswith(("B INSERT INTO lodger_documents", "B UPDATE lodger_kv", "B INSERT INTO lodger_kv"))
