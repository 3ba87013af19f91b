"""A crowd of requests delays no other client: each test blocks the crowd's requests in the middle of their work until a neighbour's
request was answered. No time is measured: a neighbour that waited for the crowd would wait for ever.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.api.running_api import RunningApi, running_api

from lodger.engine.server import app
from lodger.engine.service.nouns.scripts import Scripts
from lodger.engine.store.records import Checked
from lodger.engine.store.schedules import schedules
from lodger.engine.store.scripts import scripts
from lodger.engine.store.tenants import tokens


class Barrier:
    """A call that blocks until the barrier is opened; replaces a slow one."""

    def __init__(self) -> None:
        self.inside = 0
        self._open = threading.Event()
        self._moved = threading.Condition()

    def through(self) -> None:
        with self._moved:
            self.inside += 1
            self._moved.notify_all()
        assert self._open.wait(120)

    def wait_for(self, count: int) -> None:
        with self._moved:
            assert self._moved.wait_for(lambda: self.inside >= count, 120)

    def open(self) -> None:
        self._open.set()


@contextmanager
def crowd(asks: list[Callable[[int], int]], barrier: Barrier) -> Iterator[list[int]]:
    """Let each function wait at the barrier in a thread of its own for the block, then open it; yields the list of their statuses,
    filled at the end."""
    said: list[int] = []
    with ThreadPoolExecutor(len(asks)) as threads:
        asked = [threads.submit(ask, number) for number, ask in enumerate(asks)]
        try:
            yield said
        finally:
            barrier.open()
        said += [each.result() for each in asked]


@pytest.fixture
def api_of_three(tmp_path: Path) -> Iterator[RunningApi]:
    """A running API with three tenants, each with its token, whose lookups are done already."""
    with running_api(f"sqlite:///{tmp_path / 'l.db'}") as lodge:
        for tenant_id in ("acme", "bolt", "calm"):
            lodge.furnish(tenant_id)
            assert lodge.ask("GET", "/me", role="editor", tenant=tenant_id).status_code == 200
        yield lodge


def served(lodge: RunningApi) -> None:
    """Send a request as the tenant that is not attacked, and assert that it succeeds."""
    answer = lodge.ask("GET", "/tenants/calm/schedules", role="editor", tenant="calm")
    assert answer.status_code == 200


def request_of(lodge: RunningApi, tenant_id: str, method: str, path: str, body: Any = None) -> Callable[[int], int]:
    """Return a function that sends a request as an editor of the tenant and returns the status."""

    def ask(_number: int) -> int:
        return lodge.ask(
            method, f"/tenants/{tenant_id}{path}", body, role="editor", tenant=tenant_id, timeout=120
        ).status_code

    return ask


def test_one_tokens_crowd_has_its_share_of_the_threads(
    api_of_three: RunningApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    barrier, get = Barrier(), schedules.get

    def held(connection: Any, tenant_id: str, *given: Any, **more: Any) -> Any:
        if tenant_id == "acme":
            barrier.through()
        return get(connection, tenant_id, *given, **more)

    monkeypatch.setattr(schedules, "get", held)
    with crowd([request_of(api_of_three, "acme", "GET", "/schedules/s")] * 30, barrier) as said:
        barrier.wait_for(app.SQLITE_THREADS // 2)
        served(api_of_three)
        assert barrier.inside == app.SQLITE_THREADS // 2
    assert said == [200] * 30


def test_those_who_wait_for_the_writer_leave_threads_to_readers(
    api_of_three: RunningApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    barrier, put = Barrier(), scripts.put

    def held(*given: Any, **more: Any) -> Any:
        barrier.through()
        return put(*given, **more)

    monkeypatch.setattr(scripts, "put", held)
    script = {"source": "export default () => 2"}
    asks = [request_of(api_of_three, tenant_id, "PUT", "/scripts/job", script) for tenant_id in ("acme", "bolt")]
    with crowd(asks * 10, barrier) as said:
        barrier.wait_for(1)
        for _ in range(5):
            served(api_of_three)
    assert said == [200] * 20


def test_runs_that_take_seconds_leave_threads_to_everybody(
    api_of_three: RunningApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    barrier = Barrier()

    def held(*_given: Any, **_more: Any) -> Checked:
        barrier.through()
        return Checked(ok=True, problems=())

    monkeypatch.setattr(Scripts, "check", held)
    asks = [
        request_of(api_of_three, tenant_id, "POST", "/check-script", {"source": "1"}) for tenant_id in ("acme", "bolt")
    ]
    with crowd(asks * 8, barrier) as said:
        barrier.wait_for(2)
        for _ in range(5):
            served(api_of_three)
        assert barrier.inside == 2, "one of each name"
    assert said == [200] * 16


def test_wrong_tokens_of_one_address_take_a_share_of_the_lookups(
    api_of_three: RunningApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    barrier, caller, known = Barrier(), tokens.authenticate, set(api_of_three.tokens.values())

    def held(connection: Any, text: str, now_us: int) -> Any:
        if text not in known:
            barrier.through()
        return caller(connection, text, now_us)

    monkeypatch.setattr(tokens, "authenticate", held)

    def guess(number: int) -> int:
        with httpx2.Client(transport=httpx2.HTTPTransport(local_address="127.0.0.2")) as http:
            shown = {"authorization": f"Bearer lodger_{number:054d}"}
            return http.get(f"{api_of_three.url}/api/v1/me", headers=shown, timeout=120).status_code

    with crowd([guess] * 24, barrier) as said:
        barrier.wait_for(1)
        for _ in range(5):
            served(api_of_three)
        assert barrier.inside == 1
    assert set(said) == {401, 429}
