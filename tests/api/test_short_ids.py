"""Short ids: the beginning or the end of an id stands for it on every surface."""

from collections.abc import Callable, Iterator

import pytest
from tests.api.running_api import RunningApi

from lodger.engine.client import Client
from lodger.engine.core.errors import InputError, NotFound
from lodger.engine.sync import Engine


@pytest.fixture
def action(lodge: RunningApi) -> str:
    lodge.engine.scripts.put("acme", "once", "export default () => 1")
    lodge.engine.actions.run_in("acme", "once", 3_600_000)
    return lodge.engine.actions.run_in("acme", "once", 3_600_000).id


def short_forms(whole: str) -> tuple[str, ...]:
    """Return parts of an id by which an action can be found."""
    return whole[-8:], whole[-4:], whole[-8:].upper(), whole[:23]


@pytest.fixture(params=["engine", "client"])
def engine_or_client(request: pytest.FixtureRequest, lodge: RunningApi) -> Iterator[Engine | Client]:
    if request.param == "engine":
        yield lodge.engine
    else:
        with Client(lodge.url, lodge.token("admin")) as client:
            yield client


def test_actions_are_found_by_a_part_of_their_id(engine_or_client: Engine, action: str) -> None:
    verbs: tuple[Callable[..., object], ...] = (
        engine_or_client.actions.get, engine_or_client.actions.attempts, engine_or_client.actions.logs,
        engine_or_client.actions.deliveries, engine_or_client.actions.compared,
    )  # fmt: skip
    for verb in verbs:
        whole = verb("acme", action)
        assert all(verb("acme", part) == whole for part in short_forms(action))
    assert engine_or_client.actions.cancel("acme", action[-8:]).id == action
    assert engine_or_client.actions.replay("acme", action[-8:]).replay_of == action
    assert [each.id for each in engine_or_client.live("acme", action[-8:])] == [action]  # type: ignore[union-attr]  # no lines


def test_ambiguous_foreign_and_unknown_parts_are_refused(
    engine_or_client: Engine, lodge: RunningApi, action: str
) -> None:
    with pytest.raises(InputError) as ambiguous:
        engine_or_client.actions.get("acme", action[:4])
    assert ambiguous.value.code == "action_ambiguous"
    assert action in ambiguous.value.why
    lodge.engine.tenants.create("other")
    for tenant, part in (
        ("other", action[-8:]),
        ("acme", "0" * 12),
        ("acme", action[-3:]),
        ("acme", "%"),
        ("acme", "a_a_"),
    ):
        with pytest.raises(NotFound) as unknown:
            engine_or_client.actions.get(tenant, part)
        assert unknown.value.code == "action_unknown"


def test_over_http(lodge: RunningApi, action: str) -> None:
    assert lodge.ask("GET", f"/tenants/acme/actions/{action[-8:]}").json()["id"] == action
    refused = lodge.ask("GET", f"/tenants/acme/actions/{action[:4]}")
    assert (refused.status_code, refused.json()["code"]) == (422, "action_ambiguous")


def test_schedules_are_found_by_a_part_of_their_id_but_names_win(
    engine_or_client: Engine, lodge: RunningApi, action: str
) -> None:
    made = engine_or_client.schedules.create("acme", "daily", script="once", rules="0 9 * * *")
    assert engine_or_client.schedules.get("acme", made.id[-8:]).name == "daily"
    assert engine_or_client.actions.run_now("acme", made.id[-8:]).schedule == "daily"
    engine_or_client.schedules.create("acme", made.id[-8:], script="once", rules="0 9 * * *")
    assert engine_or_client.schedules.get("acme", made.id[-8:]).name == made.id[-8:]
    with pytest.raises(NotFound):
        engine_or_client.schedules.get("acme", made.id[-7:])
