"""A part of a transaction that fails takes back itself and nothing else, also one part within another, on both databases."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError
from tests.databases.fixtures import kind, url

from lodger.engine.effects import database_errors
from lodger.engine.store.connection.database import Database
from lodger.engine.store.connection.savepoint import savepoint
from lodger.engine.store.drivers import prepared

__all__ = ["kind", "url"]


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    database = Database(url)
    with database.write() as connection:
        connection.execute(text("CREATE TABLE parts (name TEXT PRIMARY KEY)"))
    yield database
    database.close()


def put(connection: Connection, name: str) -> None:
    connection.execute(text("INSERT INTO parts VALUES (:name)"), {"name": name})


def names_in(database: Database) -> list[str]:
    with database.read() as connection:
        return sorted(connection.scalars(text("SELECT name FROM parts")))


def outer_of_two(connection: Connection) -> None:
    with savepoint(connection):
        put(connection, "outer of two")
        with savepoint(connection):
            put(connection, "inner of two")
        raise ZeroDivisionError


def twice(connection: Connection) -> None:
    with savepoint(connection):
        put(connection, "inner")
        put(connection, "before")


def sends_last(connection: Connection) -> None:
    with savepoint(connection):
        assert connection.scalar(text("SELECT count(*) FROM parts")) == 3
        prepared.later(connection, "INSERT INTO parts VALUES ('before')")


def test_what_fails_is_taken_back_alone(database: Database) -> None:
    with database.write() as connection:
        put(connection, "before")
        with savepoint(connection):
            put(connection, "outer")
            with pytest.raises(DBAPIError):
                twice(connection)
            put(connection, "outer, after")
        with pytest.raises(DBAPIError):
            sends_last(connection)
        with pytest.raises(ZeroDivisionError):
            outer_of_two(connection)
        put(connection, "after")
    assert names_in(database) == ["after", "before", "outer", "outer, after"]


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_what_ended_the_whole_transaction_is_found(database: Database) -> None:
    trigger = "CREATE TRIGGER no BEFORE INSERT ON parts BEGIN SELECT RAISE(ROLLBACK, 'mine'); END"
    with database.write() as connection:
        connection.execute(text(trigger))
    with database.engine.connect() as connection:
        with pytest.raises(DBAPIError) as caught:
            twice(connection)
        assert database_errors.is_transaction_lost(connection)
        assert "mine" in str(database_errors.root_cause(caught.value))
