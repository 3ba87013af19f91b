"""Verbs in the caller's transaction: committed with it, or not at all."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from lodger.engine.client import Client
from lodger.engine.core.errors import InputError
from lodger.engine.core.settings import Settings
from lodger.engine.sync import Engine

Way = Callable[[str], Any]


@contextmanager
def of_sqlalchemy(url: str) -> Iterator[tuple[Any, Callable[[], None], Callable[[], None]]]:
    """Yield a connection of SQLAlchemy with its commit and rollback."""
    made = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with made.connect() as connection:
        yield connection, connection.commit, connection.rollback
    made.dispose()


@contextmanager
def of_a_session(url: str) -> Iterator[tuple[Any, Callable[[], None], Callable[[], None]]]:
    """Yield a session with its commit and rollback."""
    made = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with Session(made) as session:
        yield session, session.commit, session.rollback
    made.dispose()


@contextmanager
def of_a_driver(url: str) -> Iterator[tuple[Any, Callable[[], None], Callable[[], None]]]:
    """Yield a connection of the driver with its commit and rollback."""
    connection: Any = (
        sqlite3.connect(url.removeprefix("sqlite:///")) if url.startswith("sqlite") else psycopg.connect(url)
    )
    yield connection, connection.commit, connection.rollback
    connection.close()


@pytest.mark.parametrize("way", [of_sqlalchemy, of_a_session, of_a_driver])
def test_what_is_made_is_committed_with_the_callers_transaction(url: str, way: Way) -> None:
    with Engine.open(url, settings=Settings(check_scripts=False)) as engine:
        engine.tenants.create("acme")
        engine.scripts.put("acme", "job", "export default () => 1")

        def make(connection: Any, name: str) -> None:
            engine.run_in("acme", "job", "1h", request_key=name, connection=connection)
            engine.run_at(
                "acme", "job", datetime(2027, 1, 1, tzinfo=UTC), request_key=f"{name} at", connection=connection
            )
            engine.schedules.create("acme", name, script="job", rules="every day at 9:00", connection=connection)
            engine.tenants.create(name, connection=connection)

        def there() -> tuple[set[str], set[str], set[str | None]]:
            tenants = {each.id for each in engine.tenants.list()}
            schedules = {each.name for each in engine.schedules.list("acme")}
            return tenants, schedules, {each.request_key for each in engine.actions.list("acme")}

        with way(url) as (connection, commit, rollback):
            make(connection, "one")
            rollback()
            assert there() == ({"acme"}, set(), set())
            make(connection, "two")
            assert there() == ({"acme"}, set(), set()), "not before the caller's commit"
            commit()
        assert there() == ({"acme", "two"}, {"two"}, {"two", "two at"})
        assert {each.verb for each in engine.audit.list("acme")} >= {"actions.run_in", "schedules.create"}
        assert engine.run_in("acme", "job", "1h").state == "ready", "later verbs have connections of their own"


def test_django(tmp_path: Path) -> None:
    """Its connections to SQLite; those to PostgreSQL are psycopg's."""
    base = pytest.importorskip("django.db.backends.sqlite3.base")
    from django.conf import settings

    if not settings.configured:
        settings.configure()
    place = tmp_path / "ledger.db"
    wrapper = base.DatabaseWrapper(
        {
            "ENGINE": "django.db.backends.sqlite3", "NAME": str(place), "OPTIONS": {}, "TIME_ZONE": None, "CONN_MAX_AGE": 0,
            "AUTOCOMMIT": True,
            "ATOMIC_REQUESTS": False, "CONN_HEALTH_CHECKS": False, "TEST": {},
        },
        "default",
    )  # fmt: skip
    with Engine.open(str(place)) as engine:
        wrapper.connect()
        wrapper.set_autocommit(False)
        engine.tenants.create("gone", connection=wrapper)
        wrapper.rollback()
        engine.tenants.create("kept", connection=wrapper)
        wrapper.commit()
        wrapper.set_autocommit(True)
        with pytest.raises(InputError) as refused:
            engine.tenants.create("loose", connection=wrapper)
        assert refused.value.code == "connection_no_transaction"
        wrapper.close()
        assert [each.id for each in engine.tenants.list()] == ["kept"]


def test_connections_that_cannot_be_joined(url: str, tmp_path: Path) -> None:
    with Engine.open(url) as engine, closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE lodger_ledger (identity TEXT)")
        for connection, code in (
            (other, "connection_elsewhere"),
            (object(), "connection_unknown"),
            ("x", "connection_unknown"),
        ):
            with pytest.raises(InputError) as refused:
                engine.tenants.create("acme", connection=connection)
            assert refused.value.code == code
        with Client("http://127.0.0.1:9", "lodger_x") as client, pytest.raises(InputError) as refused:
            client.tenants.create("acme", connection=other)
        assert refused.value.code == "connection_remote"
        assert engine.tenants.list() == []
