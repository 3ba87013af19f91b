"""A journal as a diff."""

from lodger.engine.effects.effect import FIRST_TOKEN
from lodger.engine.service.effect_diff import lines


def test_each_kind_of_effect_has_its_sign() -> None:
    shown = lines(
        [
            {"effect": "insert", "set": "carts", "id": "a", "values": {"id": "a", "items": 3}},
            {"effect": "update", "set": "carts", "id": 7, "changes": {"state": "old"}, "before": {"state": "open"}},
            {"effect": "update", "set": "carts", "id": 8, "changes": {"at": {"$instant": "2026-01-01T00:00:00Z"}}},
            {"effect": "increment", "set": "stock", "id": 1, "amounts": {"left": -2}},
            {"effect": "increment", "set": "stock", "id": 2, "amounts": {"left": 5}, "before": {"left": 7}},
            {"effect": "delete", "set": "carts", "id": 9},
            {"effect": "delete", "set": "carts", "id": 8, "before": {"state": "open", "at": None}},
            {"effect": "kv.set", "key": "k", "value": '{"a":1}'},
            {"effect": "kv.delete", "key": "k"},
            {"effect": "kv.add", "key": "k", "amount": 2},
            {"effect": "mail", "to": ["a@b.c", "d@e.f"], "subject": "Hi", "text": "one\ntwo"},
        ]
    )
    assert shown == [
        "+ carts a", "    id: a", "    items: 3",
        "~ carts 7", "    state: open → old",
        "~ carts 8", "    at: 2026-01-01T00:00:00Z",
        "~ stock 1", "    left: -2",
        "~ stock 2", "    left: +5 (current value 7)",
        "- carts 9",
        "- carts 8", "    state: open", "    at: null",
        "~ kv k", '    = {"a":1}',
        "- kv k",
        "~ kv k", "    +2",
        "@ mail to a@b.c, d@e.f: Hi", "    one", "    two",
    ]  # fmt: skip


def test_an_effect_that_nobody_knows_is_shown_whole() -> None:
    assert lines([{"effect": "new", "x": 1}]) == ['* {"effect": "new", "x": 1}']


def test_a_key_that_the_database_will_make_is_new() -> None:
    number = FIRST_TOKEN - 2
    shown = lines([{"effect": "insert", "set": "carts", "id": str(number), "values": {"cart_id": number, "n": -9}}])
    assert shown == ["+ carts (new 2)", "    cart_id: (new 2)", "    n: -9"]
