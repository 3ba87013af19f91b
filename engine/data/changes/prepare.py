"""Makes what Lodger wants in the databases of what is exposed: tables for receipts, and on PostgreSQL the second wall.

Nothing here is needed for reading. It is made by whoever may make tables and roles, once, and again when what is exposed
changes; a node never makes any of it by itself.
"""

from contextlib import AbstractContextManager
from typing import Protocol

from sqlalchemy import Connection, Dialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import CreateIndex, CreateTable
from sqlalchemy.sql.ddl import ExecutableDDLElement

from lodger.engine.core.errors import Unavailable
from lodger.engine.data.changes import triggers
from lodger.engine.data.sets import views
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.data.sets.foreign import ForeignDatabase, outside
from lodger.engine.data.values.identifiers import preparer
from lodger.engine.data.values.stored import SQLITE

#: The feed of changes as the ledger's database has it by its migrations: the role reads one tenant's. Who reports them writes.
FEED_WALL = (
    f"GRANT SELECT ON lodger_changes, lodger_changes_forgotten TO {views.ROLE}",
    *(
        statement
        for table in ("lodger_changes", "lodger_changes_forgotten")
        for statement in (
            f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
            f"DROP POLICY IF EXISTS lodger_tenant ON {table}",
            f"CREATE POLICY lodger_tenant ON {table} FOR SELECT USING (owner = current_setting('lodger.owner', true))",
            f"DROP POLICY IF EXISTS lodger_engine ON {table}",
            f"CREATE POLICY lodger_engine ON {table} USING (current_user <> '{views.ROLE}')",
        )
    ),
)


class Prepared(Protocol):
    """A database that can be written; the ledger's, or one of the platform's."""

    @property
    def dialect(self) -> str:
        """``sqlite`` or ``postgresql``."""
        ...

    def write(self) -> AbstractContextManager[Connection]:
        """Give one transaction that may write."""
        ...


def statements(
    datasets: Datasets, database: ForeignDatabase | None, dialect: Dialect, user: str | None = None
) -> list[str]:
    """Give what is to be run in a database, in order; running it again changes nothing.

    Args:
        database: None is the ledger's own, which has its tables already.
        user: who Lodger connects as, when somebody else runs this; None is the same user.
    """
    made: list[str] = []
    if database is not None:
        for table in outside.sorted_tables:
            wanted: list[ExecutableDDLElement] = [CreateTable(table, if_not_exists=True)]
            wanted += [CreateIndex(index, if_not_exists=True) for index in sorted(table.indexes, key=str)]
            made += [" ".join(str(each.compile(dialect=dialect)).split()) for each in wanted]
            if user is not None and dialect.name != SQLITE:
                quoted = preparer(dialect.name).quote(user)
                made.append(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table.name} TO {quoted}")
    sets = datasets.tables(database)
    if dialect.name != SQLITE:
        made += views.statements(sets, ledger=database is None, user=user)
        made += FEED_WALL if database is not None else ()
        made.append(triggers.FUNCTION)
    # A table that several sets show has its triggers when one of them asks for them.
    asked = {rows.origin: rows for rows in sorted(sets, key=lambda rows: rows.feed == "trigger")}
    return made + [each for rows in asked.values() for each in triggers.statements(rows, dialect)]


def prepare(datasets: Datasets, ledger: Prepared) -> None:
    """Run them, in the ledger's database and in every other one that something is exposed of.

    Raises:
        Unavailable: database_refused: this user may not, or one of the databases cannot be reached.
    """
    for database in (None, *datasets.databases):
        place = ledger if database is None else database
        try:
            with place.write() as connection:
                for statement in statements(datasets, database, connection.dialect):
                    # Drivers that look for parameters by percent signs look for them here too.
                    formatted = connection.dialect.paramstyle in ("format", "pyformat")
                    connection.exec_driver_sql(statement.replace("%", "%%") if formatted else statement)
        except (DBAPIError, Unavailable) as error:
            if isinstance(error, Unavailable) and error.code != "database_refused":
                raise
            said = error.why if isinstance(error, Unavailable) else str(error.orig).strip().splitlines()[0]
            raise Unavailable(
                "database_refused",
                f"{'the ledger' if database is None else database.place}: what Lodger needs there cannot be made",
                why=said,
                fix="let a user who may run what `lodger db prepare --sql` prints",
            ) from error
        datasets.unknown(database)
