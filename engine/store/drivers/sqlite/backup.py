"""Backup, restore and inspection of SQLite files, by SQLite's own online backup."""

import os
import sqlite3
from contextlib import closing
from errno import ENOENT
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lodger.engine.core.errors import InputError, Unavailable
from lodger.engine.store.drivers.sqlite.connections import require_regular


def copy(source: Path, target: Path) -> None:
    """Copy a database, which may be written meanwhile, to a file that appears complete or not at all.

    The copy is one snapshot; the source's writers do not wait for it.

    Raises:
        InputError: file_exists.
        Unavailable: backup_failed, database_damaged, not_a_database.
        OSError: a file cannot be read or written.
    """
    if target.exists():
        raise InputError("file_exists", target=target)
    if not source.exists():
        raise FileNotFoundError(ENOENT, "there is no such file")
    require_regular(str(source))
    part = target.with_name(f".{target.name}.part")
    part.unlink(missing_ok=True)
    os.close(os.open(part, os.O_CREAT | os.O_WRONLY, 0o600))
    try:
        with (
            _connected(f"file:{quote(str(source.absolute()))}?mode=ro") as read,
            _connected(f"file:{quote(str(part.absolute()))}") as written,
        ):
            read.backup(written)
            # One file, without the two that WAL adds.
            written.execute("PRAGMA journal_mode = DELETE")
            faults = integrity(written)
        if faults:
            raise Unavailable("database_damaged", place=source, reason=faults[0])  # fmt: skip
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(target)
    except sqlite3.DatabaseError as error:
        if "disk is full" in str(error):  # that of the copy: the source is only read
            raise Unavailable("backup_failed", file=target, reason=str(error)) from error
        raise Unavailable("database_damaged.not_copied", place=source, reason=str(error))  from error  # fmt: skip
    finally:
        part.unlink(missing_ok=True)


def integrity(raw: Any) -> list[str]:
    """Return the findings of SQLite's own checks of pages, indexes and foreign keys."""
    found = [row[0] for row in raw.execute("PRAGMA integrity_check(5)") if row[0] != "ok"]
    return found + [
        f"{row[0]}: row {row[1]} refers to nothing in {row[2]}" for row in raw.execute("PRAGMA foreign_key_check")
    ]


def _connected(uri: str) -> closing[sqlite3.Connection]:
    """Open a database file by its URI, for a block that closes it."""
    return closing(sqlite3.connect(uri, uri=True))
