"""Health of the API without a token: alive as long as it answers, ready as long as its ledger does."""

from pathlib import Path

import pytest
from tests.api.running_api import RunningApi, running_api
from tests.chaos.processes import until
from tests.databases.fixtures import name, relay, server
from tests.databases.relay import Relay
from tests.node.small_disk import fill, small

from lodger.engine.core.errors import Unavailable
from lodger.engine.server import endpoints
from lodger.engine.store.drivers import patience

__all__ = ["name", "relay", "server", "small"]


def health(lodge: RunningApi, kind: str) -> tuple[int, dict[str, object]]:
    answer = lodge.http.get(f"{lodge.url}/health/{kind}")
    return answer.status_code, answer.json()


def until_ready(lodge: RunningApi, *, ready: bool) -> dict[str, object]:
    """Ask until the answer, which is cached for a second, has this readiness; return it."""
    until(lambda: health(lodge, "ready")[0] == (200 if ready else 503), 60)
    return health(lodge, "ready")[1]


def create_many(lodge: RunningApi) -> None:
    for number in range(2000):  # the log of changes may have room for some
        lodge.engine.tenants.create(f"t{number}")


def test_a_full_disk_makes_it_not_ready_until_there_is_room(small: Path, caplog: pytest.LogCaptureFixture) -> None:
    with running_api(f"sqlite:///{small}/ledger.db") as lodge:
        lodge.token("admin")
        assert until_ready(lodge, ready=True) == {"ok": True}
        filler = fill(small)
        with pytest.raises(Unavailable) as refused:
            create_many(lodge)
        assert refused.value.code == "disk_full"
        assert until_ready(lodge, ready=False) == {"ok": False, "problems": ["disk_full"]}
        assert lodge.ask("GET", "/me").status_code == 200, "the use of a token that cannot be stored fails no request"
        assert lodge.ask("GET", "/me").status_code == 200
        assert "the last use of tokens cannot be stored" in caplog.text
        filler.unlink()
        until_ready(lodge, ready=True)


def test_a_ledger_that_is_cut_off_or_silent_makes_it_not_ready(
    relay: Relay, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "READY_S", 0.5)
    monkeypatch.setattr(patience, "PATIENCE_S", 2.0)
    with running_api(relay.url(name, connect_timeout="2")) as lodge:
        assert until_ready(lodge, ready=True) == {"ok": True}
        relay.cut()
        (problem,) = until_ready(lodge, ready=False)["problems"]  # type: ignore[misc]  # JSON
        assert "database_unreachable" in problem
        assert health(lodge, "live") == (200, {"ok": True})
        refused = lodge.http.get(f"{lodge.url}/api/v1/tenants", headers={"Authorization": "Bearer lodger_aaaaaaaaaa_b"})
        assert (refused.status_code, refused.json()["code"]) == (503, "database_unreachable")
        assert "why" not in refused.json(), "the reason names the database's host and user"
        relay.heal()
        until_ready(lodge, ready=True)
        relay.silence()
        assert until_ready(lodge, ready=False) == {"ok": False, "problems": ["the ledger does not answer"]}
        assert health(lodge, "live") == (200, {"ok": True})
        relay.heal()
        until_ready(lodge, ready=True)
