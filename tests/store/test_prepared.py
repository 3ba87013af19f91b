"""Statements that go to the driver as text: values of every kind, errors as SQLAlchemy reports them, listeners as before."""

from typing import Any

import psycopg
import pytest
from sqlalchemy import bindparam, event, select
from sqlalchemy.exc import DBAPIError, IntegrityError
from tests.store.bench import Bench

from lodger.engine.store.drivers import prepared
from lodger.engine.store.drivers.prepared import Prepared
from lodger.engine.store.schema.scheduling import tenants

_among = Prepared(
    lambda driver: (
        select(tenants.c.id, (tenants.c.id == bindparam("one")).label("is_one"))
        .where(driver.among(tenants.c.id, "ids"))
        .order_by(tenants.c.id)
    )
)


def test_lists_errors_and_listeners(bench: Bench) -> None:
    database, hostile = (
        bench.engine.context.database,
        ["acme", '"', "'); DROP TABLE lodger_tenants; --", "%s", "\\", "ü", "?"],
    )
    bench.tenant("acme")
    seen: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        seen.append(statement)

    with database.write() as connection:
        rows = _among.rows(connection, {"ids": hostile * 300, "one": "acme"})
        assert [(row.id, row.is_one) for row in rows] == [("acme", True)]
        assert _among.rows(connection, {"ids": [], "one": "%"}) == []
        assert _among.first(connection, {"ids": ["x"], "one": ""}) is None
        with pytest.raises(KeyError if database.driver.name == "sqlite" else DBAPIError):
            _among.rows(connection, {"ids": []})
        if database.driver.name == "postgresql":  # the transaction has failed
            return
        event.listen(database.engine, "before_cursor_execute", note)
        assert _among.rows(connection, {"ids": hostile, "one": "acme"}) == rows
        event.remove(database.engine, "before_cursor_execute", note)
        assert len(seen) == 1
        with pytest.raises(IntegrityError) as caught:
            prepared.fetch(connection, "INSERT INTO lodger_tenants SELECT * FROM lodger_tenants", ())
        assert not caught.value.connection_invalidated


def test_statements_of_a_connection_share_a_cursor_until_one_fails(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, made = bench.engine.context.database, list[Any]()
    if database.driver.name == "sqlite":
        pytest.skip("the cursors of SQLite are written in C")
    bench.tenant("acme")
    start = psycopg.Cursor.__init__

    def noted(cursor: Any, *args: Any, **given: Any) -> None:
        made.append(cursor)
        start(cursor, *args, **given)

    with database.write() as connection:
        _among.rows(connection, {"ids": [], "one": ""})
        monkeypatch.setattr(psycopg.Cursor, "__init__", noted)
        for _ in range(5):
            assert len(_among.rows(connection, {"ids": ["acme"], "one": ""})) == 1
        assert not made
        with pytest.raises(DBAPIError), connection.begin_nested():
            prepared.fetch(connection, "SELECT 1 / 0", ())
        made.clear()
        assert len(_among.rows(connection, {"ids": ["acme"], "one": ""})) == 1
        assert len(made) == 1
