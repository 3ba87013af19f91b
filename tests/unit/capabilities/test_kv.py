"""Keyed values: scopes, time to live, compare and set, counters; on both databases, one run beside another."""

import asyncio
import json
from typing import Any

import pytest
from tests.unit.capabilities.feeding import settle
from tests.unit.data.shop import NOW_US, Shop

from lodger.engine.core.clock import SystemClock
from lodger.engine.effects import commit
from lodger.engine.node.executors.attempt import Attempt
from lodger.engine.store.lifecycle import retention
from lodger.engine.store.schema.script_data import kv

S = 1_000_000


def ask(attempt: Attempt, call: str, **arguments: Any) -> Any:
    reply = asyncio.run(attempt.call(call, json.dumps(arguments)))
    body = json.loads(reply.json)
    return body if reply.ok else body["code"]


def store_values(shop: Shop, **values: Any) -> None:
    """Store keyed values in a run, and commit it."""
    attempt = shop.attempt()
    for key, value in values.items():
        ask(attempt, "kv.set", key=key, value=value)
    settle(shop, attempt)


@pytest.mark.parametrize(
    ("held", "expected", "swapped"),
    [
        (None, None, True),
        (None, 0, False),
        (1, 1, True),
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (1, "1", False),
        ([1, {}], [1, {}], True),
        ([1, {}], [1, {}, 2], False),
        ({"a": 1, "b": [2]}, {"b": [2], "a": 1}, True),
        ({"a": 1}, {"a": 1, "b": None}, False),
        ("x", None, False),
        ({"$instant": "2026-11-21T09:00:00.000000Z"}, {"$instant": "2026-11-21T10:00:00+01:00"}, True),
    ],
)
def test_a_swap_compares_values_as_scripts_see_them(shop: Shop, held: Any, expected: Any, swapped: bool) -> None:
    if held is not None:
        store_values(shop, k=held)
    attempt = shop.attempt()
    assert ask(attempt, "kv.swap", key="k", expected=expected, value="new") is swapped
    assert ask(attempt, "kv.get", key="k") == ("new" if swapped else held)
    assert bool(attempt.journal) is swapped


def test_of_many_that_swap_one_succeeds_and_the_others_are_run_again(shop: Shop) -> None:
    store_values(shop, leader="nobody")
    runs = [shop.attempt() for _ in range(5)]
    for number, run in enumerate(runs):
        assert ask(run, "kv.swap", key="leader", expected="nobody", value=f"run {number}", line="main.js:3")
    settle(shop, runs[2])
    for loser in (*runs[:2], *runs[3:]):
        with pytest.raises(commit.ConflictFound) as conflict:
            settle(shop, loser)
        assert conflict.value.line == 3
    assert ask(shop.attempt(), "kv.swap", key="leader", expected="nobody", value="late") is False
    assert ask(shop.attempt(), "kv.get", key="leader") == "run 2"


def test_a_key_that_nobody_held_is_taken_once(shop: Shop) -> None:
    one, two = shop.attempt(), shop.attempt()
    assert [ask(run, "kv.swap", key="lock", expected=None, value=1) for run in (one, two)] == [True, True]
    settle(shop, one)
    with pytest.raises(commit.ConflictFound):
        settle(shop, two)


def test_a_swap_to_nothing_removes_the_key(shop: Shop) -> None:
    store_values(shop, k=1)
    attempt = shop.attempt()
    assert ask(attempt, "kv.swap", key="k", expected=1, value=None)
    settle(shop, attempt)
    assert shop.rows(kv) == []


def test_own_work_is_what_a_swap_sees(shop: Shop) -> None:
    attempt = shop.attempt()
    ask(attempt, "kv.add", key="n", amount=2)
    assert ask(attempt, "kv.swap", key="n", expected=2, value=10)
    assert ask(attempt, "kv.add", key="n", amount=1) == 11
    settle(shop, attempt)
    assert ask(shop.attempt(), "kv.get", key="n") == 11


def test_a_schedules_own_keys_are_its_own(shop: Shop) -> None:
    one, two = shop.attempt(), shop.attempt(claim={"schedule_id": "s2"})
    for number, run in enumerate((one, two)):
        assert ask(run, "kv.swap", key="cursor", expected=None, value=number, own=True)
        settle(shop, run)
    assert ask(shop.attempt(), "kv.get", key="cursor", own=True) == 0
    assert ask(shop.attempt(claim={"schedule_id": "s2"}), "kv.get", key="cursor", own=True) == 1
    assert ask(shop.attempt(), "kv.get", key="cursor") is None
    assert ask(shop.attempt(claim={"schedule_id": None}), "kv.get", key="cursor", own=True) == "bad_request"


def test_values_live_as_long_as_they_were_given(shop: Shop) -> None:
    attempt = shop.attempt()
    ask(attempt, "kv.set", key="short", value=1, ttlSeconds=10)
    ask(attempt, "kv.swap", key="swapped", expected=None, value=1, ttlSeconds=10)
    ask(attempt, "kv.set", key="long", value=1)
    settle(shop, attempt)

    def at(seconds: float) -> Attempt:
        return shop.attempt(now_us=NOW_US + int(seconds * S))

    assert [ask(at(9.9), "kv.get", key=key) for key in ("short", "swapped", "long")] == [1, 1, 1]
    assert [ask(at(10), "kv.get", key=key) for key in ("short", "swapped", "long")] == [None, None, 1]
    assert [row["key"] for row in ask(at(10), "kv.list")] == ["long"]
    assert ask(at(10), "kv.swap", key="short", expected=None, value=2), "what is over is nothing"
    later = at(20)
    assert ask(later, "kv.add", key="short", amount=1) == 1
    settle(shop, later, NOW_US + 20 * S)
    with shop.engine.begin() as connection:
        gone = retention.find_expired(connection, "one", NOW_US + 20 * S)
        assert [row.key for row in gone] == ["swapped"]
        gone += retention.find_expired(connection, "one", NOW_US + 9 * S)
        retention.delete_expired(connection, gone, NOW_US + 20 * S, SystemClock().elapsed_s)
    assert sorted(row["key"] for row in shop.rows(kv)) == ["long", "short"]


@pytest.mark.parametrize("ttl", [0, -1, 1e12, "1"])
def test_a_time_to_live_that_is_none(shop: Shop, ttl: Any) -> None:
    for call, more in (("kv.set", {}), ("kv.swap", {"expected": None})):
        assert ask(shop.attempt(), call, key="k", value=1, ttlSeconds=ttl, **more) == "bad_request"


def test_values_and_keys_are_bounded(shop: Shop) -> None:
    attempt = shop.attempt()
    assert ask(attempt, "kv.swap", key="k", expected=None, value="x" * 70_000) == "bad_request"
    assert ask(attempt, "kv.swap", key="k" * 513, expected=None, value=1) == "bad_request"
    assert ask(attempt, "kv.swap", key="k", expected={"$odd": 1}, value=1) == "bad_request"
    assert not attempt.journal


def test_a_list_by_prefix_has_every_key_that_begins_with_it(shop: Shop) -> None:
    keys = ["p", "p/1", "p\U0010ffff", "p\U0010ffffz" + "\U0010ffff" * 9]
    store_values(shop, **dict.fromkeys([*keys, "o", "q"], 1))
    assert [each["key"] for each in ask(shop.attempt(), "kv.list", prefix="p")] == keys


def test_counters_of_many_runs_all_count(shop: Shop) -> None:
    runs = [shop.attempt() for _ in range(10)]
    for run in runs:
        ask(run, "kv.add", key="n", amount=0.5)
        ask(run, "kv.add", key="n", amount=1)
    for run in runs:
        settle(shop, run)
    assert ask(shop.attempt(), "kv.get", key="n") == 15
    store_values(shop, text="x")
    assert ask(shop.attempt(), "kv.add", key="text", amount=1) == "not_a_number"
