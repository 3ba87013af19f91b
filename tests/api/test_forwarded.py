"""The client's address behind a reverse proxy: taken from trusted ones alone, and a warning for the others."""

import logging
from pathlib import Path

import pytest
from tests.api.running_api import RunningApi, running_api

from lodger.engine.core.errors import InputError
from lodger.engine.core.settings import Settings
from lodger.engine.server.server import Server
from lodger.engine.sync import Engine

WRONG = {"authorization": "Bearer lodger_x"}


def statuses_of_guesses(lodge: RunningApi, number: int, **headers: str) -> list[int]:
    """Return the statuses of so many requests with a wrong token."""
    return [lodge.http.get(f"{lodge.url}/api/v1/me", headers=WRONG | headers).status_code for _ in range(number)]


@pytest.mark.parametrize("trusted", ["127.0.0.1", "127.0.0.0/8", "127.0.0.9/8", "*"])
def test_clients_of_a_trusted_proxy_are_counted_by_their_own_address(tmp_path: Path, trusted: str) -> None:
    with running_api(f"sqlite:///{tmp_path / 'l.db'}", api_failures_per_minute=3, trusted_proxies=trusted) as lodge:
        assert 429 in statuses_of_guesses(lodge, 20, **{"x-forwarded-for": "192.0.2.1"})
        assert statuses_of_guesses(lodge, 1, **{"x-forwarded-for": "192.0.2.2"}) == [401]
        secure = lodge.http.get(f"{lodge.url}/healthz", headers={"x-forwarded-proto": "https"})
        assert "strict-transport-security" in secure.headers


def test_an_untrusted_address_is_not_believed_and_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running_api(f"sqlite:///{tmp_path / 'l.db'}", api_failures_per_minute=3, trusted_proxies="10.0.0.1") as lodge:
        assert [record for record in caplog.records if record.name == "lodger.api"] == []
        with caplog.at_level(logging.WARNING, "lodger.api"):
            assert 429 in statuses_of_guesses(lodge, 20, **{"x-forwarded-for": "192.0.2.1"})
            assert 429 in statuses_of_guesses(lodge, 3, **{"x-forwarded-for": "192.0.2.2"}), (
                "it names itself as it likes"
            )
            plain = lodge.http.get(f"{lodge.url}/healthz", headers={"x-forwarded-proto": "https"})
        assert "strict-transport-security" not in plain.headers
        warned = [text for record in caplog.records if "X-Forwarded" in (text := record.getMessage())]
        assert len(warned) == 1
        assert "127.0.0.1" in warned[0]
        assert "LODGER_TRUSTED_PROXIES=127.0.0.1" in warned[0]


@pytest.mark.parametrize("wrong", ["proxy.example", "10.0.0.0/33", "10.0.0.1 10.0.0.2", "/run/proxy.sock"])
def test_a_trusted_proxy_that_is_no_address_is_refused(tmp_path: Path, wrong: str) -> None:
    settings = Settings(trusted_proxies=f"127.0.0.1, {wrong}")
    with Engine.open(f"sqlite:///{tmp_path / 'l.db'}", settings=settings) as engine:
        with pytest.raises(InputError) as refused:
            Server(engine)
        assert refused.value.code == "trusted_proxies_invalid"
        assert wrong in str(refused.value)
