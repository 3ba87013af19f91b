"""Plans of statements, as databases explain them, and the pages that these alone look at."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import event, text
from tests.store.bench import Bench

from lodger.engine.store.connection.database import Database


def plans(bench: Bench, work: Callable[[], object]) -> list[str]:
    """Return how the database answers each question of some work."""
    database, asked = bench.engine.context.database, []

    def note(_connection: Any, _cursor: Any, statement: str, values: Any, *_more: Any) -> None:
        asked.append((statement, values))

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        work()
    finally:
        event.remove(database.engine, "before_cursor_execute", note)
    found = []
    with database.write() as connection:  # PostgreSQL does not plan locks in a transaction that only reads
        for statement, values in asked:
            if statement.startswith(("SELECT", "WITH")) and not isinstance(values, list):
                explain = "EXPLAIN QUERY PLAN" if database.driver.name == "sqlite" else "EXPLAIN"
                rows = connection.exec_driver_sql(f"{explain} {statement}", values)
                found.append(statement + "\n" + "\n".join(row[-1] for row in rows))
    return found


def without_autovacuum(database: Database) -> None:
    """Let a PostgreSQL server look at pages of tables for statements only: what autovacuum reads is counted, too."""
    with database.write() as connection:
        tables = connection.scalars(text("SELECT relname FROM pg_stat_user_tables")).all()
        connection.exec_driver_sql("; ".join(f"ALTER TABLE {each} SET (autovacuum_enabled = false)" for each in tables))
