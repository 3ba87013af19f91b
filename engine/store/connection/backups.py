"""Backup, restore and check of a whole ledger; a restored one knows that it is another one than the one before."""

import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection, inspect, text
from sqlalchemy.engine import URL

from lodger.engine.core.clock import from_us
from lodger.engine.core.errors import InputError, Unavailable
from lodger.engine.store.connection import laws
from lodger.engine.store.connection.database import explaining
from lodger.engine.store.drivers import Driver, addresses
from lodger.engine.store.migrations.revision import VERSION_TABLE, current

T = TypeVar("T")
_UNSENT = "state IN ('queued', 'sending')"


@dataclass(frozen=True, slots=True)
class Restored:
    """Result of a restore.

    Attributes:
        last: last sign of a node in the backup: slots after it are missed, or run again; None if no node ever ran.
        running: actions that were running; they run again.
        unsent: mails and webhooks that were waiting; they may have been sent after the backup.
        dropped: whether those are not sent any more.
    """

    revision: str | None
    last: datetime | None
    running: int
    unsent: int
    dropped: bool

    def as_dict(self) -> dict[str, object]:
        """Return the result of the restore as the object that ``--json`` shows."""
        return asdict(self) | {"last": None if self.last is None else self.last.isoformat()}


def backup(place: str, target: Path) -> None:
    """Write a consistent copy of a ledger to a new file, while nodes work on it.

    Raises:
        InputError: database_url, file_exists.
        Unavailable: not_a_ledger, database_damaged, program_missing, backup_failed, and errors of the host.
    """
    driver, url = addresses.ledger_url(place)
    if target.exists():
        raise InputError("file_exists", target=target)
    if not exists(place):
        raise Unavailable("not_a_ledger", place=addresses.mask_password(place))
    _on_disk(lambda: driver.backup(url, target), target)


def restore(place: str, source: Path, *, drop_unsent: bool) -> Restored:
    """Load a backup where no ledger is, and prepare it for nodes.

    Nodes of the time of the backup have lost their leases; actions that were running run again.

    Args:
        drop_unsent: mark messages that were waiting as failed instead of sending them, perhaps again.

    Raises:
        InputError: database_url, ledger_exists, backup_invalid.
        Unavailable: database_damaged, program_missing, backup_failed, and errors of the host.
    """
    driver, url = addresses.ledger_url(place)
    shown = addresses.mask_password(place)
    if exists(place):
        raise InputError("ledger_exists", place=shown)

    def load() -> None:
        """Restore a file of this kind of database."""
        with source.open("rb") as file:
            if file.read(len(driver.backup_begins)) != driver.backup_begins:
                raise InputError("backup_invalid", file=source, place=shown)
        driver.restore(url, source)

    _on_disk(load, source)
    if not exists(place):
        raise InputError("backup_invalid.without_ledger", file=source, place=shown)
    return _with_connection(driver, url, lambda connection: _prepare(connection, drop_unsent=drop_unsent), write=True)


def _prepare(connection: Connection, *, drop_unsent: bool) -> Restored:
    """Prepare a restored copy of a ledger to be used beside the lost one."""

    def query_number(statement: str) -> int:
        """Return the number that a statement selects, 0 for none."""
        return int(connection.scalar(text(statement)) or 0)

    last = query_number("SELECT max(seen_us) FROM lodger_nodes")
    found = Restored(
        current(connection),
        from_us(last) if last else None,
        query_number("SELECT count(*) FROM lodger_actions WHERE state = 'running'"),
        query_number(f"SELECT count(*) FROM lodger_outbox WHERE {_UNSENT}"),  # noqa: S608 - constants
        drop_unsent,
    )
    # The first node's recovery takes back what they held. No node that still lives can renew an old lease.
    connection.execute(text("UPDATE lodger_nodes SET epoch = epoch + 1, lease_until_us = 0 WHERE state = 'alive'"))
    connection.execute(text("UPDATE lodger_ledger SET identity = :identity"), {"identity": str(uuid.uuid4())})
    if drop_unsent:
        dropped = (
            "state = 'failed', next_at_us = NULL, last_error = 'not sent after a restore: it may have been sent before'"
        )
        connection.execute(text(f"UPDATE lodger_outbox SET {dropped} WHERE {_UNSENT}"))  # noqa: S608 - constants
    return found


def check(place: str) -> tuple[list[str], list[dict[str, object]]]:
    """Return the damages that the database finds in itself, and the broken laws of the ledger; changes nothing.

    Raises:
        InputError: database_url.
        Unavailable: errors of the host.
    """
    driver, url = addresses.ledger_url(place)
    return _with_connection(driver, url, lambda connection: (driver.integrity(connection), laws.broken(connection)))


def exists(place: str) -> bool:
    """Whether there is a ledger of any revision.

    Raises:
        Unavailable: errors of the host.
    """
    driver, url = addresses.ledger_url(place)
    if driver.is_absent(url):
        return False
    return _with_connection(driver, url, lambda connection: inspect(connection).has_table(VERSION_TABLE))


def _with_connection(driver: Driver, url: URL, work: Callable[[Connection], T], *, write: bool = False) -> T:
    """Run a function in a transaction on a database that no node has open; raises Unavailable for errors of the host."""
    engine = driver.open(url, synchronous="FULL", patience_s=3600.0)
    try:
        with explaining(driver, str(url.database)), engine.connect() as connection:
            connection = connection.execution_options(**({} if write else driver.read_options))
            with connection.begin():
                return work(connection)
    finally:
        engine.dispose()


def _on_disk(work: Callable[[], None], file: Path) -> None:
    """Do some work and flush the resulting file to the disk."""
    try:
        work()
    except OSError as error:
        raise Unavailable("backup_failed", file=file, reason=error.strerror or error) from None
