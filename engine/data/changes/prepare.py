"""Creates Lodger's objects in databases with exposed tables: tables for receipts, and roles, views and policies for row security.

Reading needs none of them. A user with the right to create tables and roles runs it once, and again when exposed tables change; a node
never creates any of them by itself.
"""

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import CreateIndex, CreateTable
from sqlalchemy.sql.ddl import ExecutableDDLElement

from lodger.engine.core.errors import Unavailable
from lodger.engine.data.changes import triggers
from lodger.engine.data.sets import tenant_views
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.data.sets.foreign import ForeignDatabase, outside
from lodger.engine.store.connection.database import Database
from lodger.engine.store.drivers import driver_of


def statements(
    datasets: Datasets, database: ForeignDatabase | None, connection: Connection, user: str | None = None
) -> list[str]:
    """Return the statements to run in a database, in order; running them again changes nothing.

    Args:
        database: None is the ledger's own, which has its tables already.
        connection: a connection to that database, as the user that Lodger connects as: all objects become this user's, whoever
            runs the statements.
        user: another user to whom they shall belong.
    """
    made: list[str] = []
    driver = driver_of(connection)
    security = driver.row_security(connection)
    if security is not None and user is not None:
        security = security.for_user(user)
    if database is not None:
        for table in outside.sorted_tables:
            made.append(_text(CreateTable(table, if_not_exists=True), database))
            if security is not None:
                made.append(security.own_table(table.name))
            made += [
                _text(CreateIndex(index, if_not_exists=True), database) for index in sorted(table.indexes, key=str)
            ]
    sets = datasets.tables(database)
    if security is not None:
        made += tenant_views.statements(security, sets, connection, ledger=database is None)
        made += security.feed_statements() if database is not None else ()
        made.append(security.trigger_function())
    # A table that several sets show has its triggers when one of them asks for them.
    asked = {rows.origin: rows for rows in sorted(sets, key=lambda rows: rows.feed == "trigger")}
    return made + [each for rows in asked.values() for each in triggers.statements(rows, driver, security)]


def _text(statement: ExecutableDDLElement, database: ForeignDatabase) -> str:
    """Return a statement as SQL text on one line."""
    return " ".join(str(statement.compile(database.engine)).split())


def printed(
    datasets: Datasets, database: ForeignDatabase | None, connection: Connection, user: str | None = None
) -> list[str]:
    """Return the statements of a database in a form that a session of any user can run."""
    security = driver_of(connection).row_security(connection)
    made = statements(datasets, database, connection, user)
    return made if security is None else [security.search_path(connection), *made]


def prepare(datasets: Datasets, ledger: Database) -> None:
    """Run the statements in the ledger's database and in every other one with exposed tables.

    Raises:
        Unavailable: database_refused: this user may not, or one of the databases cannot be reached.
    """
    for database in (None, *datasets.databases):
        place = ledger if database is None else database
        try:
            with place.write() as connection:
                driver = driver_of(connection)
                for statement in statements(datasets, database, connection):
                    driver.execute_text(connection, statement)
        except (DBAPIError, Unavailable) as error:
            if isinstance(error, Unavailable) and error.code != "database_privilege_missing":
                raise
            said = error.why if isinstance(error, Unavailable) else str(error.orig).strip().splitlines()[0]
            raise Unavailable(
                "database_refused", place="the ledger" if database is None else database.place, reason=said
            ) from error
        datasets.unknown(database)
