"""Many rows at once hold exactly what was given, on both databases."""

import math
from typing import Any

import pytest
from sqlalchemy import BigInteger, Column, Double, LargeBinary, MetaData, Table, Text, select
from tests.store.bench import Bench

from lodger.engine.core.errors import InputError
from lodger.engine.store.bulk import ManyRows, add_many, insert_many, update_many
from lodger.engine.store.drivers.postgresql.rows import columns
from lodger.engine.store.drivers.sqlite.rows import TOGETHER

TABLE = Table(
    "many_rows_probe",
    MetaData(),
    Column("id", BigInteger, primary_key=True),
    Column("said", Text, nullable=True),
    Column("number", Double, nullable=True),
    Column("count", BigInteger, nullable=False, server_default="7"),
    Column("bytes", LargeBinary),
)
#: What an array's text could take for its own signs.
SAID = (
    '"', "\\", '\\"', "{", "}", ",", "{a,b}", "NULL", "null", "", " ", "  x ", "a\nb", "a\tb", "é", "\U0001f600", "'", "''",
    "%s", ":name", "\\x41", "\\\\", "\u2028", None,
)  # fmt: skip
NUMBERS = (0.1, -0.0, 1e300, 5e-324, math.inf, -math.inf, 12345678901234567.0, None)


@pytest.fixture
def table(bench: Bench) -> Table:
    with bench.engine.context.database.write() as connection:
        TABLE.create(connection)
    return TABLE


def _rows(bench: Bench) -> dict[int, tuple[Any, ...]]:
    with bench.engine.context.database.read() as connection:
        return {row.id: (row.said, row.number, row.count) for row in connection.execute(select(TABLE))}


def test_what_is_inserted_is_what_was_given(bench: Bench, table: Table) -> None:
    rows = [
        {"id": at, "said": said, "number": NUMBERS[at % len(NUMBERS)], "count": (-1) ** at * (2**63 - 1 - at)}
        for at, said in enumerate(SAID)
    ]
    with bench.engine.context.database.write() as connection:
        insert_many(connection, table, rows)
    assert _rows(bench) == {row["id"]: (row["said"], row["number"], row["count"]) for row in rows}


def test_a_column_that_no_row_fills_has_its_default(bench: Bench, table: Table) -> None:
    with bench.engine.context.database.write() as connection:
        insert_many(connection, table, [{"id": 1, "said": None, "number": None, "count": None}])
        insert_many(connection, table, [{"id": 2, "said": None}, {"id": 3, "said": "x"}])
    assert _rows(bench) == {1: (None, None, 7), 2: (None, None, 7), 3: ("x", None, 7)}


def test_bytes_stay_what_they_are(bench: Bench, table: Table) -> None:
    given = [b"", b"\0", bytes(range(256)), b"\\x41", None]
    with bench.engine.context.database.write() as connection:
        insert_many(connection, table, [{"id": at, "bytes": each} for at, each in enumerate(given)])
        rows = connection.execute(select(table.c.bytes).order_by(table.c.id)).scalars()
        assert [None if each is None else bytes(each) for each in rows] == given


def test_what_is_there_is_left_or_added_to_or_set(bench: Bench, table: Table) -> None:
    setting = update_many(table, {"k_id": "id"}, ("said",), {"number": 0.5}, {"count": table.c.count + 1})
    with bench.engine.context.database.write() as connection:
        insert_many(connection, table, [{"id": 1, "count": 1}, {"id": 2, "count": 2}])
        insert_many(connection, table, [{"id": 1, "count": 99}, {"id": 4, "count": 4}], absent=True)
        add_many(connection, table, ("id",), [{"id": 1, "count": 10}, {"id": 3, "count": 30}])
        setting.rows(connection, [{"k_id": 2, "said": 'a"b\\'}, {"k_id": 9, "said": "nobody"}])
        setting.rows(connection, [])
    assert _rows(bench) == {1: (None, None, 11), 2: ('a"b\\', 0.5, 3), 3: (None, None, 30), 4: (None, None, 4)}


@pytest.mark.parametrize("number", [TOGETHER - 1, TOGETHER, 2 * TOGETHER, 3 * TOGETHER + 7])
def test_hundreds_of_rows_are_each_done_once(bench: Bench, table: Table, number: int) -> None:
    """On SQLite a hundred go in one statement: none is left out, none done twice."""
    setting = update_many(table, {"k_id": "id"}, ("said",), {"number": 0.5}, {"count": table.c.count + 1})
    every = range(number)
    with bench.engine.context.database.write() as connection:
        insert_many(connection, table, [{"id": at, "said": None, "count": 1} for at in every if at % 3])
        said = [{"id": at, "said": SAID[at % len(SAID)], "count": 5} for at in every]
        insert_many(connection, table, said, absent=True)
        add_many(connection, table, ("id",), [{"id": at, "count": 10} for at in [*every, number]])
        setting.rows(connection, [{"k_id": at, "said": f"now {at}"} for at in [*every, number + 1] if at % 2])
    expected = {at: (None if at % 3 else SAID[at % len(SAID)], None, 11 if at % 3 else 15) for at in every}
    expected |= {at: (f"now {at}", 0.5, expected[at][2] + 1) for at in every if at % 2}
    assert _rows(bench) == expected | {number: (None, None, 10)}


@pytest.mark.parametrize("number", [0, 1, 7, 8, 9, 65, 600])
def test_one_question_for_many_rows_answers_for_each(bench: Bench, table: Table, number: int) -> None:
    question = ManyRows(
        {"id": table.c.id, "minimum": table.c.count},
        lambda given, _driver: select(table.c.id).where(table.c.id == given.c.id, table.c.count >= given.c.minimum),
    )
    with bench.engine.context.database.write() as connection:
        insert_many(connection, table, [{"id": at, "said": None, "count": at % 5} for at in range(number)])
        rows = question.rows(connection, [{"id": at, "minimum": 3} for at in range(-1, number)])
    assert sorted(row.id for row in rows) == [at for at in range(number) if at % 5 >= 3]


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_text_that_no_database_keeps_is_refused(bench: Bench, table: Table, kind: str, text: str) -> None:
    if kind == "sqlite" and "\0" in text:
        pytest.skip("SQLite keeps a NUL character")
    with pytest.raises(InputError, match="a text has"), bench.engine.context.database.write() as connection:
        insert_many(connection, table, [{"id": 1, "said": text}])


def test_a_value_that_is_neither_number_nor_text_is_our_mistake() -> None:
    with pytest.raises(TypeError, match="tuple"):
        columns(("x",), [{"x": (1,)}])
