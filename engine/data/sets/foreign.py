"""A platform's database other than the ledger's: its exposed tables are read, and written with receipts.

A transaction cannot span two databases, so a run's changes there are applied in three stages: seal, apply, settle
(:mod:`lodger.engine.effects.foreign_commit`). They need Lodger's table ``lodger_receipts`` in that database; without it
the database is read-only.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy import Connection, Engine
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from lodger.engine.core.errors import InputError
from lodger.engine.data.sets.reads import ThreadReads
from lodger.engine.store.drivers import Driver, addresses, driver_named, driver_of
from lodger.engine.store.schema.feeds import changes_table, forgotten_table

#: Of tables that Lodger has in a platform's own database; no migrations, each is made once and read by every version.
outside = sa.MetaData()

#: That a step of an action was applied here, or never will be. One row per step, made in the transaction of its effects.
receipts = sa.Table(
    "lodger_receipts",
    outside,
    sa.Column("action_id", sa.String(36), primary_key=True),
    sa.Column("step", sa.Integer, primary_key=True),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("verdict", sa.String(16), nullable=False),
    sa.Column("detail", sa.Text),
    sa.Column("made_us", sa.BigInteger, nullable=False),
)

changes_table(outside)
forgotten_table(outside)


class ForeignDatabase:
    """One database of the platform's. Made by :meth:`lodger.engine.data.sets.datasets.Datasets.attach`.

    Args:
        source: an address, or an engine of the platform's own, which is used and never closed.

    Raises:
        InputError: database_url; it is neither SQLite nor PostgreSQL.
    """

    def __init__(self, source: str | URL | Engine) -> None:
        self._own = not isinstance(source, Engine)
        self.driver, self.engine = _resolved(source)
        #: Runs a query in a thread, with a time limit.
        self.ask = ThreadReads(self)
        self._receipts = False

    @property
    def place(self) -> str:
        """The address of the database for people, without its password."""
        return self.engine.url.render_as_string(hide_password=True)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open one consistent snapshot; nothing may be written in it."""
        with self._begun(write=False) as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Open one transaction that may write; commits at the end, rolls back on any exception."""
        with self._begun(write=True) as connection:
            yield connection

    @contextmanager
    def _begun(self, *, write: bool) -> Iterator[Connection]:
        """Open a transaction for a block; with ``write``, one that may write and commits at the end."""
        with self.engine.connect() as connection:
            if options := self.driver.platform_options(write=write):
                connection = connection.execution_options(**options)
            with connection.begin():
                self.driver.begin_platform(connection, write=write)
                yield connection

    def receives(self, connection: Connection) -> bool:
        """Whether Lodger's tables exist, so that this database may be written and its changes read."""
        if not self._receipts:  # once there, they stay: a commit without them fails and is tried again
            inspector = sa.inspect(connection)
            self._receipts = all(inspector.has_table(table.name) for table in outside.sorted_tables)
        return self._receipts

    def close(self) -> None:
        """End the query threads and close Lodger's own connections; safe to call twice."""
        self.ask.close()
        if self._own:
            self.engine.dispose()


def _resolved(source: str | URL | Engine) -> tuple[Driver, Engine]:
    """Return the driver and the pool of a database from its address or a platform's engine."""
    try:
        if isinstance(source, Engine):
            return driver_of(source), source
        url = addresses.parse(source, absolute=False)
        driver = driver_named(url.get_backend_name())
        return driver, driver.open_platform(url)
    except LookupError:
        name = source.name if isinstance(source, Engine) else url.get_backend_name()
        raise InputError("database_url.foreign", name=name) from None
    except addresses.UNOPENABLE as error:
        raise InputError("database_url.unopened", reason=str(error)) from error


def state_of(error: DBAPIError) -> str | None:
    """Return the SQLSTATE of a driver's error, None if it has none."""
    found = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None)
    return str(found) if found else None
