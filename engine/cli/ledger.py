"""Opens the engine of a command: a local ledger, or a server with the same operations."""

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from lodger.engine.cli.place import Place, chosen
from lodger.engine.core import ledger_file
from lodger.engine.core.errors import NotFound, Unavailable, Usage
from lodger.engine.core.partial_answers import sentence, unreachable_ledgers
from lodger.engine.core.settings import load

if TYPE_CHECKING:
    from lodger.engine.store.connection.inspection import Inspection
    from lodger.engine.sync import Engine


@contextmanager
def opened(db: str | None, *, local: str | None = None, creates: bool = False) -> Iterator["Engine"]:
    """Open the ledger at ``--db`` or of profile and settings, the ledgers of the file LODGER_LEDGERS, or the named server; afterwards,
    name on stderr the ledgers that could not be asked.

    Args:
        local: why the command needs a local ledger; None if it works with a server.
        creates: whether a ledger is created where there is none; not by commands that only read.

    Raises:
        InputError, Unavailable: the place is no ledger, or the host refuses.
        Usage: verb_local, place_ambiguous, and errors of the profiles.
    """
    place = chosen(db, local=local)
    with (
        _local(place, creates=creates) if place.server is None else _client(place.server, place.token) as engine,
        unreachable_ledgers() as missing,
    ):
        yield engine
    if missing:
        sys.stderr.write(sentence(missing) + "\n")


@contextmanager
def _local(place: Place, *, creates: bool) -> Iterator["Engine"]:
    """Open the ledger or the ledgers of a place for a block; see :func:`opened`."""
    from lodger.engine.core.access.audit_context import audit_as
    from lodger.engine.store.drivers.addresses import mask_password
    from lodger.engine.sync import Engine

    settings = load(database=place.database)
    several = ledger_file.read(settings.ledgers) if settings.ledgers is not None and place.database is None else ()
    files = [_file(each.url) for each in several] or [_file(settings.database)]
    file = files[0]
    new = all(each is not None and not each.exists() for each in files)
    if not creates and (new if several else _has_none(settings.database)):
        raise Unavailable("not_a_ledger.absent", place=str(file or mask_password(settings.database)))
    engine = Engine.open_all(settings) if several else Engine.open(settings.database, settings=settings)
    if engine.context.database.created:
        sys.stderr.write(f"the ledger is new and empty: {mask_password(settings.database)}\n")
    try:
        with audit_as(via="cli"):
            yield engine
    except NotFound as absent:
        # The thing may be in another ledger than the user expects.
        if file is not None and not absent.why and not several:
            absent.why = f"this is the ledger {file}" + ("; it was created just now and is empty" if new else "")
            absent.fix = (
                f"{absent.fix}, or choose another ledger with --db, LODGER_DATABASE or a profile" if new else absent.fix
            )
        raise
    finally:
        engine.close()


def each_ledger(db: str | None) -> list[tuple[str | None, str]]:
    """Return the name and address of each ledger of this host that a command concerns: those of LODGER_LEDGERS, unless one is chosen.

    Raises:
        Usage: verb_local, and errors of the profiles.
    """
    database = chosen(db, local="it works on the database itself").database
    settings = load(database=database)
    if settings.ledgers is None or database is not None or os.environ.get("LODGER_DATABASE"):
        return [(ledger_file.name_of(settings.ledgers, settings.database), settings.database)]
    return [(each.name, each.url) for each in ledger_file.read(settings.ledgers)]


def inspected(name: str | None, url: str, other: str = "ledger_other") -> "Inspection":
    """Inspect the database of a ledger without changing it; ``other`` is the error for that of another ledger.

    Raises:
        Unavailable: ledger_other, and errors of the host.
    """
    from lodger.engine.store.connection.inspection import inspect_database

    found = inspect_database(url)
    if name is not None and found.name not in {None, name}:
        raise Unavailable(other, ledger=name, name=found.name)
    return found


def _has_none(place: str) -> bool:
    """Whether a database has no ledger.

    Raises:
        InputError: database_url.
        Unavailable: errors of the host.
    """
    from lodger.engine.store.connection.inspection import inspect_database
    from lodger.engine.store.drivers.addresses import ledger_url

    ledger_url(place)
    return inspect_database(place).verdict in {"absent", "empty"}


def _file(place: str) -> Path | None:
    """Return the path of a ledger on SQLite; None for PostgreSQL, whose address may hold a password."""
    place = place.removeprefix("sqlite:///")
    return None if "://" in place or place == ":memory:" else Path(place)


def _client(server: str, token: str | None) -> AbstractContextManager["Engine"]:
    """Return a client of a server, which has the engine's operations."""
    try:
        from lodger.engine.client.blocking import Client
    except ModuleNotFoundError as missing:
        raise Usage("extra_missing.client", name=missing.name) from None
    # A client has the engine's verbs, with the same signatures; a test holds the two together.
    return cast("AbstractContextManager[Engine]", Client(server, token))
