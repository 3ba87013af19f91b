"""The file of the setting ``ledgers``: the ledgers of one system by name, as TOML; the first one holds the directory of tenants."""

import re
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

from lodger.engine.core.errors import InputError

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}", re.ASCII)


@dataclass(frozen=True, slots=True)
class NamedLedger:
    """One line of the file: ``NAME = "URL"``, or ``NAME = { url = "URL", room = 20000 }``; a path is from the folder of the file.

    Attributes:
        room: maximum number of tenants; None for no maximum, 0 for no new tenants.
    """

    name: str
    url: str
    room: int | None = None


def read(path: Path) -> tuple[NamedLedger, ...]:
    """Return the ledgers of a file, in its order.

    Raises:
        InputError: ledgers_invalid.
    """
    try:
        body = tomllib.loads(path.read_text())
        found = tuple(_ledger(name, value, path.parent) for name, value in body.items())
    except (OSError, ValueError, TypeError) as error:
        raise InputError("ledgers_invalid", path=path, reason=error) from None
    if not found or len({each.url for each in found}) < len(found):
        raise InputError("ledgers_invalid", path=path, reason="it names no ledger, or one twice")
    return found


def _ledger(name: str, value: object, folder: Path) -> NamedLedger:
    """Return a named ledger of the file, checked."""
    made = NamedLedger(name, value) if isinstance(value, str) else NamedLedger(name, **dict(value))  # type: ignore[call-overload]  # checked below
    if not _NAME.fullmatch(name) or not isinstance(made.url, str) or not made.url:
        raise ValueError(f"{name!r} is not a name with a URL")
    if made.room is not None and (type(made.room) is not int or made.room < 0):
        raise ValueError(f"the room of {name!r} is not a number of tenants")
    # The path of a SQLite file is from the folder of this file, so that every process finds the same ledger.
    return made if "://" in made.url else replace(made, url=str(folder / made.url))
