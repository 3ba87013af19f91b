"""Backup and restore of PostgreSQL databases, by the server's own programs ``pg_dump`` and ``pg_restore``."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from sqlalchemy.engine import URL

from lodger.engine.core.errors import Unavailable

_FOLDERS = Path("/usr/lib/postgresql")


def dump(url: URL, target: Path) -> None:
    """Write the whole database to a file in pg_dump's custom format: one snapshot, no writer waits.

    Raises:
        Unavailable: program_missing, backup_failed.
    """
    part = target.with_name(f".{target.name}.part")
    try:
        _run(url, "pg_dump", "--format=custom", f"--file={part}")
        part.chmod(0o600)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def load(url: URL, source: Path) -> None:
    """Restore a file of :func:`dump` into a database without a ledger, in one transaction.

    Raises:
        Unavailable: program_missing, backup_failed.
    """
    _run(url, "pg_restore", "--single-transaction", "--exit-on-error", "--no-owner", str(source))


def _run(url: URL, name: str, *arguments: str) -> None:
    """Run a program of PostgreSQL, such as pg_dump, on a database; raises Unavailable (backup_failed)."""
    program = _program(name)
    from psycopg.conninfo import make_conninfo  # psycopg is an extra

    _arguments, given = url.get_dialect()().create_connect_args(url)
    # Not in the arguments, which every user of the machine can read.
    environment = os.environ | {"PGPASSWORD": str(given.pop("password", os.environ.get("PGPASSWORD", "")))}
    place = make_conninfo("", **given)
    done = subprocess.run(  # noqa: S603 - our own arguments
        [program, f"--dbname={place}", "--no-password", *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Unavailable("backup_failed.program", name=name, reason=done.stderr.strip()[-500:])


def _program(name: str) -> str:
    """Return the newest of these programs on this machine: an older one refuses a newer server.

    Raises:
        Unavailable: program_missing.
    """
    installed = sorted(_FOLDERS.glob(f"*/bin/{name}"), key=lambda path: int(re.sub(r"\D", "", path.parts[-3]) or 0))
    found = str(installed[-1]) if installed else shutil.which(name)
    if found is None:
        raise Unavailable("program_missing", name=name)
    return found
