"""SQLite ledgers that tests make begin as copies of one that is set up, as those on the server do.

The migrations are most of what a small test would cost. What tests them takes an ``empty_url``; commands run as processes of their
own migrate, too, but for those that begin ready (:mod:`tests.e2e.ready`).
"""

import os
import shutil
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.engine import URL

from lodger.engine.store.connection.database import Database
from lodger.engine.store.drivers.sqlite import SqliteDriver

#: What it is called in its folder.
TEMPLATE = "template.db"
#: Files that begin empty all the same.
EMPTY: set[str] = set()
#: Where the processes of a test run keep the PostgreSQL cluster that their servers begin as copies of; without, each makes its own.
CLUSTERS: list[Path] = []


@contextmanager
def copied_clusters(folder: Path) -> Iterator[None]:
    """For the block, servers begin as copies of a cluster in a folder that other processes use, too."""
    CLUSTERS.append(folder / "cluster")
    try:
        yield
    finally:
        CLUSTERS.pop()


@contextmanager
def copied_ledgers(folder: Path) -> Iterator[None]:
    """For the block, a ledger on a SQLite file that is not there yet begins as a copy; the template is made when first needed."""
    opened, template = SqliteDriver.open, folder / TEMPLATE

    def prepared(driver: SqliteDriver, url: URL, **options: Any) -> Engine:
        place = Path(str(url.database))
        if place != template and str(place) not in EMPTY and not os.path.lexists(place) and place.parent.is_dir():
            if not template.exists():
                Database(f"sqlite:///{template}").close()
            with suppress(
                OSError
            ):  # no space, no permission, or already there: opening the database reports it, or uses the file
                _copy(template, place)
        return opened(driver, url, **options)

    SqliteDriver.open = prepared  # type: ignore[method-assign]  # that is the idea
    try:
        yield
    finally:
        SqliteDriver.open = opened  # type: ignore[method-assign]  # as it was


def _copy(template: Path, place: Path) -> None:
    """Atomic: a concurrent reader finds nothing, or the whole. The copy has an identity of its own."""
    part = place.with_name(f".{place.name}-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        shutil.copyfile(template, part)
        with closing(sqlite3.connect(part, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("UPDATE lodger_ledger SET identity = ?", (str(uuid.uuid4()),))
        os.link(part, place)
    finally:
        part.unlink(missing_ok=True)
