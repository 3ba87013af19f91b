"""Plans of statements, as SQLite explains them."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import event
from tests.store.bench import Bench


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
