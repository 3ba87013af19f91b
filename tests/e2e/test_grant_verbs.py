"""``lodger grant``: the table, what a tenant holds, giving and taking, its people."""

from pathlib import Path

from tests.e2e.command import inside
from tests.e2e.ready import lodger

from lodger.engine.core.access.grants import GRANTS


def test_the_table_is_the_one_that_is_enforced() -> None:
    shown = lodger("grant", "table", "--json").json["grants"]
    assert [(each["form"], each["default"]) for each in shown] == [(spec.form, spec.default) for spec in GRANTS]
    text = " ".join(lodger("grant", "table").out.split())
    assert "fetch:HOST" in text


def test_give_take_and_reset(tmp_path: Path) -> None:
    ledger = str(tmp_path / "l.db")

    def held(*words: str) -> list[str]:
        return list(inside(*words, "--db", ledger, "--json").json["grants"])

    inside("tenant", "create", "acme", "--people", "ann@acme.example", "--db", ledger)
    default = ["collections", "sets:read", "kv", "mail", "events", "run"]
    assert held("grant", "list", "acme") == default
    given = held("grant", "give", "acme", "sets:write:orders", "fetch:api.example.com")
    assert given == [
        "collections",
        "sets:read",
        "sets:write:orders",
        "kv",
        "mail",
        "events",
        "run",
        "fetch:api.example.com",
    ]
    assert held("tenant", "show", "acme") == given
    assert held("grant", "take", "acme", "mail", "fetch:https://api.example.com:443") == [
        each for each in given if each not in ("mail", "fetch:api.example.com")
    ]
    people = inside("grant", "people", "acme", "bob@acme.example", "*@acme.example", "--db", ledger, "--json")
    assert people.json["people"] == ["*@acme.example", "bob@acme.example"]
    assert held("grant", "reset", "acme") == default
    assert "write and remove documents" in " ".join(inside("grant", "list", "acme", "--db", ledger).out.split())
