"""Short ids: the beginning or the end of an id stands for it on every surface."""

from collections.abc import Callable, Iterator

import pytest
from tests.api.running_api import RunningApi

from lodger.engine.client import Client
from lodger.engine.core.errors import InputError, NotFound


@pytest.fixture
def action(lodge: RunningApi) -> str:
    lodge.engine.scripts.put("acme", "once", "export default () => 1")
    lodge.engine.actions.run_in("acme", "once", 3_600_000)
    return lodge.engine.actions.run_in("acme", "once", 3_600_000).id


def short_forms(whole: str) -> tuple[str, ...]:
    """Return parts of an id by which an action can be found."""
    return whole[-8:], whole[-4:], whole[-8:].upper(), whole[:23]


@pytest.fixture
def client(lodge: RunningApi) -> Iterator[Client]:
    with Client(lodge.url, lodge.token("admin")) as made:
        yield made


def test_actions_are_found_by_a_part_of_their_id(client: Client, action: str) -> None:
    verbs: tuple[Callable[..., object], ...] = (
        client.actions.get, client.actions.attempts, client.actions.logs,
        client.actions.deliveries, client.actions.compared,
    )  # fmt: skip
    for verb in verbs:
        whole = verb("acme", action)
        assert all(verb("acme", part) == whole for part in short_forms(action))
    assert client.actions.cancel("acme", action[-8:]).id == action
    assert client.actions.replay("acme", action[-8:]).replay_of == action
    assert [each.id for each in client.live("acme", action[-8:])] == [action]


def test_ambiguous_foreign_and_unknown_parts_are_refused(client: Client, lodge: RunningApi, action: str) -> None:
    with pytest.raises(InputError) as ambiguous:
        client.actions.get("acme", action[:4])
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
            client.actions.get(tenant, part)
        assert unknown.value.code == "action_unknown"


def test_schedules_are_found_by_a_part_of_their_id_but_names_win(
    client: Client, lodge: RunningApi, action: str
) -> None:
    made = client.schedules.create("acme", "daily", script="once", rules="0 9 * * *")
    assert client.schedules.get("acme", made.id[-8:]).name == "daily"
    assert client.actions.run_now("acme", made.id[-8:]).schedule == "daily"
    client.schedules.create("acme", made.id[-8:], script="once", rules="0 9 * * *")
    assert client.schedules.get("acme", made.id[-8:]).name == made.id[-8:]
    with pytest.raises(NotFound):
        client.schedules.get("acme", made.id[-7:])
