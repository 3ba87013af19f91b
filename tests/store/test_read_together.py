"""Functions that read one snapshot together: each has its own rows and its own error, whatever the others ask meanwhile."""

from collections.abc import Iterator

import pytest
from sqlalchemy import literal, select, text
from sqlalchemy.exc import DBAPIError

from lodger.engine.core.errors import NotFound
from lodger.engine.store.connection.database import Database, read_together
from lodger.engine.store.drivers.prepared import Prepared

INSERT = (
    "INSERT INTO lodger_tenants (id, name, state, generation, limits, grants, people, labels, created_us) "
    "VALUES ('a', 'a', 'active', 1, '{}', '[]', '[]', '', 1)"
)
_number = Prepared(lambda _driver: select(literal(1).label("one")))


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    database = Database(url)
    yield database
    database.close()


def test_each_has_its_own_answer(database: Database) -> None:
    def counted(number: int, statements: int) -> int:
        with database.read() as connection:
            found = [connection.scalar(text("SELECT CAST(:n AS int)"), {"n": number}) for _ in range(statements)]
            found += [row.one * number for row in _number.rows(connection, {})]
            assert found == [number] * (statements + 1)
            return number

    def nested() -> list[int]:
        counted(7, 1)
        return read_together(lambda: counted(8, 3), lambda: counted(9, 1))

    with database.snapshot():
        found = read_together(*(lambda n=n: counted(n, n % 4) for n in range(6)), nested)
    assert found == [0, 1, 2, 3, 4, 5, [8, 9]]
    assert read_together(lambda: counted(1, 1), lambda: counted(2, 2)) == [1, 2], "also outside of a snapshot"


def test_an_error_is_of_the_function_that_has_it(database: Database) -> None:
    seen: list[object] = []

    def absent() -> None:
        raise NotFound("tenant_unknown", tenant="acme")

    def wrong() -> None:
        with database.read() as connection:
            connection.execute(text("SELECT 1/0 + nothing FROM nowhere"))

    def right() -> None:
        with database.read() as connection:
            seen.append(connection.scalar(text("SELECT 5")))

    with database.snapshot(), pytest.raises(NotFound):
        read_together(right, absent)
    assert seen == [5]
    with pytest.raises(DBAPIError), database.snapshot():
        read_together(wrong, right)
    with database.snapshot():
        read_together(right, right)
    assert seen[-2:] == [5, 5], "the connection is used again"


def test_all_of_it_is_one_snapshot(database: Database) -> None:
    def count() -> int:
        with database.read() as connection:
            return int(connection.scalar(text("SELECT count(*) FROM lodger_tenants")) or 0)

    with database.snapshot():
        before = count()
        with database.write() as connection:
            connection.execute(text(INSERT))
        assert read_together(count, count) == [before, before]
    assert count() == before + 1
