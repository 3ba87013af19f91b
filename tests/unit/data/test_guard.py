"""The database's own wall: with the tenant's condition taken out of every statement, PostgreSQL still shows one tenant alone."""

import asyncio
import json
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import ProgrammingError
from tests.unit.data.shop import NOW_US, Shop, order, orders

from lodger.engine.data import guard
from lodger.engine.data.scope import Scope
from lodger.engine.effects import commit
from lodger.engine.ledger.schema.data import documents


@pytest.fixture
def shop(shop: Shop, kind: str) -> Shop:
    if kind == "sqlite":
        pytest.skip("SQLite has no roles")
    for tenant in ("one", "two"):
        shop.add(orders, order(tenant, 1 if tenant == "one" else 2, note=f"of {tenant}"))
        attempt = shop.attempt(tenant)
        ask(attempt, "db.insert", set="things", values={"of": tenant})
        ask(attempt, "kv.set", key=f"of-{tenant}", value=tenant)
        with shop.engine.begin() as connection:
            commit.apply(connection, attempt.journal, now_us=NOW_US)
    return shop


def ask(attempt: Any, name: str, **arguments: Any) -> Any:
    reply = asyncio.run(attempt.call(name, json.dumps(arguments)))
    return json.loads(reply.json)


def seen(shop: Shop) -> tuple[list[str], list[str]]:
    """Give what tenant one finds of documents and keys."""
    attempt = shop.attempt("one")
    things = sorted(row["of"] for row in ask(attempt, "db.find", set="things")["rows"])
    keys = [key for key in ("of-one", "of-two") if ask(attempt, "kv.get", key=key) is not None]
    return things, keys


def test_without_the_condition_the_role_still_sees_one_tenant(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    with shop.engine.begin() as connection:
        guard.grant(connection, shop.datasets)
    monkeypatch.setattr(Scope, "predicate", lambda *_: sa.true())
    assert seen(shop) == (["one"], ["of-one"])


def test_without_the_condition_and_the_role_another_tenant_is_seen(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scope, "predicate", lambda *_: sa.true())
    monkeypatch.setattr(guard, "stands", lambda *_: False)
    assert seen(shop) == (["one", "two"], ["of-one", "of-two"])


def test_the_role_reads_the_exposed_columns_and_nothing_else(shop: Shop) -> None:
    with shop.engine.begin() as connection:
        guard.grant(connection, shop.datasets)

    def refused(statement: str) -> bool:
        with shop.engine.connect() as connection:
            try:
                guard.guarded(lambda inner: inner.execute(sa.text(statement)), "one", shop.datasets)(connection)
            except ProgrammingError as error:
                return "permission denied" in str(error)
        return False

    assert not refused("SELECT note FROM orders")
    assert refused("SELECT audit FROM orders")
    assert refused("SELECT modules FROM lodger_script_versions")
    assert refused("SELECT payload FROM lodger_outbox")
    assert refused("DELETE FROM lodger_kv")


def test_role_and_tenant_end_with_the_question(shop: Shop) -> None:
    with shop.engine.begin() as connection:
        guard.grant(connection, shop.datasets)
    assert seen(shop)[0] == ["one"]
    with shop.engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT current_user")) == "postgres"
        assert connection.scalar(sa.select(sa.func.count()).select_from(documents)) == 2


def test_a_platform_that_granted_nothing_is_told_and_served(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    guard._standing.pop(shop.datasets, None)
    found = ask(shop.attempt("one"), "db.find", set="orders")["rows"]
    assert [row["note"] for row in found] == ["of one"]
    assert "lodger.engine.data.guard.grant" in caplog.text
