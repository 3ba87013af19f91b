"""A ledger that accepts connections and answers nothing is named as one that is down, and holds no call on the others."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.api.running_api import serving
from tests.chaos.processes import until
from tests.databases.relay import Relay
from tests.features.ledgers.systems import create_schedule, ledgers, opened

from lodger.engine.client.blocking import Client
from lodger.engine.core.errors import Unavailable
from lodger.engine.core.partial_answers import unreachable_ledgers
from lodger.engine.core.settings import Settings
from lodger.engine.features.ledgers import system

#: Shorter than the patience with one database, for which calls would wait if nothing else ended them; longer than a busy machine needs.
END_S = 40
CALLS = 40
#: Tenants of the second ledger beside those of each test.
OF_FAR = [f"t{number}" for number in range(20)]


@pytest.fixture(autouse=True)
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for less time than in earnest, and for more than a busy machine needs."""
    for setting, wait_s in (("LOOK_S", 2.0), ("CALL_S", 4.0)):
        monkeypatch.setattr(system, setting, wait_s)


@contextmanager
def system_of(settings: Settings) -> Iterator[tuple[Any, str, dict[str, str]]]:
    """Serve a system with the tenants ``ann`` in the first ledger and ``bob`` in the second; yield it, the URL and texts of tokens."""
    with opened(settings) as engines, serving(engines) as server:
        create_schedule(engines, "ann", ledger="home")
        create_schedule(engines, "bob", ledger="far")
        texts = {each: engines.tokens.create(each, "editor", tenant_id=each).text for each in ("ann", "bob")}
        yield engines, server.url, texts | {"all": engines.tokens.create("all", "admin").text}


def listed(engine: Any) -> tuple[list[str], set[str]]:
    """Return the listed tenants, and the ledgers that are named as missing."""
    with unreachable_ledgers() as missing:
        return [each.id for each in engine.tenants.list()], missing


def uses(engine: Any, tenant_id: str) -> list[str]:
    """Read and change a tenant's schedules; return those that are left."""
    engine.schedules.create(tenant_id, "more", script="job", rules="every 60s")
    assert engine.actions.run_now(tenant_id, "more").tenant_id == tenant_id
    engine.schedules.delete(tenant_id, "more")
    return [each.name for each in engine.schedules.list(tenant_id)]


@contextmanager
def threads(relay: Relay) -> Iterator[ThreadPoolExecutor]:
    """Threads for calls that may hang: the network is whole before they are waited for."""
    with ThreadPoolExecutor(100) as made:
        try:
            yield made
        finally:
            relay.heal("reset")


def assert_named(calls: "list[Future[Any]]", tenants: list[str], ledger: str) -> None:
    assert [each.result(END_S) for each in calls] == [(tenants, {ledger})] * len(calls)


def assert_refused(call: "Future[Any]", ledger: str) -> None:
    with pytest.raises(Unavailable, match=f"'{ledger}' cannot be reached"):
        call.result(END_S)


def assert_comes_back(pool: ThreadPoolExecutor, engine: Any, tenants: list[str]) -> None:
    """Ask until all ledgers answer: one that was silent is asked again after a while."""
    pool.submit(until, lambda: listed(engine) == (tenants, set()), END_S).result(END_S)


def test_lists_name_a_silent_ledger_and_tenants_of_others_do_not_wait_for_it(
    relay: Relay, name: str, tmp_path: Path
) -> None:
    settings = ledgers(tmp_path, "home.db", far=relay.url(name, connect_timeout="2"))
    with (
        system_of(settings) as (engines, url, texts),
        threads(relay) as pool,
        Client(url, texts["all"]) as every,
        Client(url, texts["ann"]) as ann,
        Client(url, texts["bob"]) as bob,
    ):
        relay.silence()
        lists = [pool.submit(listed, each) for each in (engines, every) for _ in range(CALLS // 2)]
        for each in (ann, engines):
            assert pool.submit(uses, each, "ann").result(END_S) == ["s"]
        assert_named(lists, ["ann"], "far")
        for each in (bob, engines):
            assert_refused(pool.submit(uses, each, "bob"), "far")
        assert_named([pool.submit(listed, engines) for _ in range(CALLS)], ["ann"], "far")
        relay.heal("reset")
        assert_comes_back(pool, every, ["ann", "bob"])


def test_calls_on_many_tenants_of_a_silent_ledger_do_not_starve_those_of_another(
    relay: Relay, name: str, tmp_path: Path
) -> None:
    settings = ledgers(tmp_path, "home.db", far=relay.url(name, connect_timeout="2"))
    with system_of(settings) as (engines, url, texts), threads(relay) as pool:
        for each in OF_FAR:
            engines.tenants.create(each, ledger="far")
        with Client(url, texts["all"]) as every, Client(url, texts["ann"]) as ann:
            relay.silence()
            held = [pool.submit(partial(every.schedules.list, each)) for each in OF_FAR[:10]]
            held += [pool.submit(partial(every.actions.run_in, each, "job", 60)) for each in OF_FAR[10:]]
            assert pool.submit(uses, ann, "ann").result(END_S) == ["s"]
            for each in held:
                assert_refused(each, "far")


def test_a_silent_first_ledger_holds_its_own_tenants_alone(relay: Relay, name: str, tmp_path: Path) -> None:
    settings = ledgers(tmp_path, relay.url(name, connect_timeout="2"))
    with (
        system_of(settings) as (engines, url, texts),
        threads(relay) as pool,
        Client(url, texts["ann"]) as ann,
        Client(url, texts["bob"]) as bob,
    ):
        relay.silence()
        lists = [pool.submit(listed, engines) for _ in range(CALLS)]
        assert pool.submit(uses, bob, "bob").result(END_S) == ["s"]
        assert_named(lists, ["bob"], "home")
        assert pool.submit(uses, engines, "bob").result(END_S) == ["s"]
        for each in (ann, engines):
            assert_refused(pool.submit(uses, each, "ann"), "home")
        assert_refused(pool.submit(engines.tenants.create, "eve", ledger="far"), "home")
        with opened(settings) as started:  # which has never asked the directory
            assert pool.submit(uses, started, "bob").result(END_S) == ["s"]
        with Client(url, texts["all"]) as every:
            assert_named([pool.submit(listed, every)], ["bob"], "home")
        relay.heal("reset")
        assert_comes_back(pool, engines, ["ann", "bob"])
