"""Looks at a database without changing it: which schema it has and which this version wants."""

from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import create_engine
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from lodger.engine.core.errors import InputError
from lodger.engine.store.connection import postgresql
from lodger.engine.store.connection.database import shown, told_of
from lodger.engine.store.migrations.revision import current, head, known


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was found. ``verdict`` is ``current``, ``absent``, ``empty``, ``behind`` or ``newer``."""

    place: str
    revision: str | None
    wanted: str | None
    verdict: str

    def as_dict(self) -> dict[str, str | None]:
        """Give it for ``--json``."""
        return asdict(self)


def inspected(place: str) -> Inspection:
    """Look at a ledger's place.

    Args:
        place: a SQLite file's path or a SQLAlchemy URL.

    Raises:
        InputError: database_url.
        Unavailable: not_a_database, database_unreadable and the other faults of a host.
    """
    wanted = head()
    url: URL | str = place
    if "://" not in place:
        if not Path(place).exists():
            return Inspection(place, None, wanted, "absent")
        # Read-only: looking must not make a file, nor the two files beside it. ? and # are letters of a file's name.
        name = f"file:{quote(str(Path(place).absolute()))}"
        url = URL.create("sqlite", database=name, query={"mode": "ro", "uri": "true"})
    place = shown(place)
    try:
        parsed = make_url(url)
        if parsed.drivername in {"postgresql", "postgres"}:
            parsed = parsed.set(drivername=postgresql.DRIVER)
        engine = create_engine(parsed)
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
        raise InputError("database_url", f"{place!r} names no database that Lodger can open", why=str(error)) from None
    try:
        with engine.connect() as connection:
            revision = current(connection)
    except DBAPIError as error:
        taught = told_of(error, place, of_server=parsed.drivername == postgresql.DRIVER)
        if taught is None:
            raise
        raise taught from None
    finally:
        engine.dispose()
    if revision is None:
        verdict = "empty"
    elif revision not in known():
        verdict = "newer"
    else:
        verdict = "current" if revision == wanted else "behind"
    return Inspection(place, revision, wanted, verdict)
