"""Laws of the ledger as SQL: each query returns the rows that break one, at any moment, whatever nodes do meanwhile."""

from sqlalchemy import Connection, text

from lodger.engine.store.drivers import driver_of
from lodger.engine.store.drivers.sql_files import statements_of

#: Rows that are shown of each broken law.
SHOWN = 5

LAWS = statements_of(__file__)


def broken(connection: Connection) -> list[dict[str, object]]:
    """Return every broken law with its first rows; reads all of the history."""
    driver_of(connection).allow_scans(connection)
    found: list[dict[str, object]] = []
    for law, statement in LAWS.items():
        rows = connection.execute(text(statement)).fetchmany(SHOWN)
        if rows:
            found.append({"law": law, "rows": [[str(cell) for cell in row] for row in rows]})
    return found
