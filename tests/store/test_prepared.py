"""Statements that go to the driver as text: values of every kind, errors as SQLAlchemy reports them, listeners as before."""

from typing import Any

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
