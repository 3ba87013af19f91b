"""Inspects a database without changing it: the revision of its schema and the revision that this version needs."""

from dataclasses import asdict, dataclass

from sqlalchemy import create_engine, select

from lodger.engine.store.connection.database import explaining
from lodger.engine.store.drivers import addresses
from lodger.engine.store.migrations.revision import current, head, verdict
from lodger.engine.store.schema.nodes import ledger


@dataclass(frozen=True, slots=True)
class Inspection:
    """Result of an inspection.

    ``verdict`` is ``current``, ``absent``, ``empty``, ``behind``, ``ahead`` (newer, and this version can use it) or ``newer``;
    ``name`` the ledger's in the file of ``LODGER_LEDGERS``, None if it was never opened by one.
    """

    place: str
    revision: str | None
    wanted: str | None
    verdict: str
    name: str | None = None

    @property
    def usable(self) -> bool:
        """Whether this version can use the ledger."""
        return self.verdict in {"current", "ahead"}

    def as_dict(self) -> dict[str, str | None]:
        """Return the result of the inspection as the object that ``--json`` shows."""
        return asdict(self)


def inspect_database(place: str) -> Inspection:
    """Inspect the database at an address.

    Args:
        place: path of a SQLite file, or a SQLAlchemy URL.

    Raises:
        InputError: database_url.
        Unavailable: not_a_database, database_unreadable and other errors of the host.
    """
    wanted, shown = head(), addresses.mask_password(place)
    driver, url = addresses.ledger_url(place)
    if driver.is_absent(url):
        return Inspection(shown, None, wanted, "absent")
    engine = create_engine(driver.read_only_url(url))
    try:
        with explaining(driver, shown), engine.connect() as connection:
            revision = current(connection)
            found = verdict(connection, revision)
            name = connection.scalar(select(ledger.c.name)) if found in {"current", "ahead"} else None
    finally:
        engine.dispose()
    return Inspection(shown, revision, wanted, found, name)
