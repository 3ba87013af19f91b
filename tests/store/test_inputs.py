"""Params that no attempt could take are refused where they are asked for, at the byte and the level, whichever way they come."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.store.bench import Bench

from lodger.engine.core.errors import InputError
from lodger.engine.sync import Engine

MAX_COUNT = 1000
#: Ways to ask for a run, by name: each is given the params.
WAYS: dict[str, Callable[[Engine, Any], object]] = {
    "run now": lambda engine, params: engine.actions.run_now("acme", "s", params=params),
    "run at": lambda engine, params: engine.run_at("acme", "job", datetime(2030, 1, 1, tzinfo=UTC), params=params),
    "run in": lambda engine, params: engine.run_in("acme", "job", 0, params=params),
    "create": lambda engine, params: engine.schedules.create(
        "acme", "new", script="job", rules="every 60s", params=params
    ),
    "edit": lambda engine, params: engine.schedules.edit("acme", "s", params=params),
    "steps": lambda engine, params: engine.schedules.edit("acme", "s", script=["job", "job"], params=params),
}


def text_of(size: int) -> str:
    """Return a value with a JSON text of this many bytes, some of them in two-byte characters."""
    return "é" * 100 + "x" * (size - 2 - 200)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.fixture
def engine(bench: Bench) -> Engine:
    bench.tenant(input_bytes=MAX_COUNT)
    bench.schedule()
    return bench.engine


@pytest.mark.parametrize("way", WAYS)
def test_a_byte_too_many_and_a_level_too_deep_are_refused_at_the_door(engine: Engine, way: str) -> None:
    before = len(engine.actions.list("acme")), engine.schedules.get("acme", "s").revision
    for params, code in ((text_of(MAX_COUNT + 1), "params_too_large"), (nested(63), "params_too_deep")):
        with pytest.raises(InputError) as refused:
            WAYS[way](engine, params)
        assert refused.value.code == code
        assert str(MAX_COUNT if code == "params_too_large" else 62) in f"{refused.value.what} {refused.value.why}"
        assert refused.value.fix
    assert (len(engine.actions.list("acme")), engine.schedules.get("acme", "s").revision) == before
    WAYS[way](engine, text_of(MAX_COUNT))
    if way != "create":
        WAYS[way](engine, nested(62))


def test_what_the_schedule_wishes_counts(engine: Engine) -> None:
    engine.schedules.edit("acme", "s", limits={"input_bytes": 300})
    for ask in (
        lambda: engine.actions.run_now("acme", "s", params=text_of(301)),
        lambda: engine.schedules.edit("acme", "s", params=text_of(301)),
        lambda: engine.schedules.edit(
            "acme", "s", script=[{"script": "job", "limits": {"input_bytes": 250}}], params=text_of(251)
        ),
    ):
        with pytest.raises(InputError, match="bytes"):
            ask()
    engine.actions.run_now("acme", "s", params=text_of(300))


def test_a_replay_of_what_was_allowed_once_is_refused_too(bench: Bench, engine: Engine) -> None:
    asked = engine.run_in("acme", "job", 0, params=text_of(MAX_COUNT))
    bench.run()
    engine.tenants.edit("acme", limits={"input_bytes": MAX_COUNT - 1})
    with pytest.raises(InputError) as refused:
        engine.actions.replay(None, asked.id)
    assert refused.value.code == "params_too_large"
    engine.tenants.edit("acme", limits={"input_bytes": MAX_COUNT})
    assert engine.actions.replay(None, asked.id).origin == "replay"
