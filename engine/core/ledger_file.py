"""The file of the setting ``ledgers``: the ledgers of one system by name, as TOML; the first one holds the directory of tenants."""

import os
import re
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

from lodger.engine.core.errors import InputError

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}", re.ASCII)
MAX_LENGTH = 256 * 1024


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
    if path.exists() and not path.is_file():  # to open a pipe would wait for its writer
        raise InputError("ledgers_invalid", path=path, reason="it is not a regular file")
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(MAX_LENGTH)
        body = tomllib.loads(text)
        found = tuple(_ledger(name, value, path.parent) for name, value in body.items())
    except (OSError, ValueError) as error:
        raise InputError("ledgers_invalid", path=path, reason=error) from None
    except RecursionError:
        raise InputError("ledgers_invalid", path=path, reason="it is nested too deeply") from None
    if len(text) == MAX_LENGTH:
        raise InputError("ledgers_invalid", path=path, reason=f"it has {MAX_LENGTH} characters or more")
    if not found or len({_place(each.url) for each in found}) < len(found):
        raise InputError("ledgers_invalid", path=path, reason="it names no ledger, or one twice")
    return found


def name_of(path: Path | None, url: str) -> str | None:
    """Return the name that a file gives to the ledger at a URL; None if it gives none, or if there is no file."""
    return next((each.name for each in (read(path) if path else ()) if _place(each.url) == _place(url)), None)


def _place(url: str) -> str:
    """Return the URL of a ledger; of a file of SQLite the path, without links."""
    file = url.removeprefix("sqlite:///")
    return url if "://" in file else os.path.realpath(file)


def _ledger(name: str, value: object, folder: Path) -> NamedLedger:
    """Return one line of the file as a ledger, checked; a relative path is from ``folder``."""
    keys = {"url": value} if isinstance(value, str) else value
    if (
        not NAME.fullmatch(name)
        or not isinstance(keys, dict)
        or not isinstance(keys.get("url"), str)
        or not keys["url"]
    ):
        raise ValueError(f"{name!r} is not a name with a URL")
    if unknown := keys.keys() - {"url", "room"}:
        raise ValueError(f"{name!r} has the unknown key {min(unknown)!r}; the keys are url and room")
    made = NamedLedger(name, **keys)
    if made.room is not None and (type(made.room) is not int or made.room < 0):
        raise ValueError(f"the room of {name!r} is not a number of tenants")
    # The path of a SQLite file is from the folder of this file, so that every process finds the same ledger.
    if "\0" in made.url:
        raise ValueError(f"the URL of {name!r} has a NUL")
    file = made.url.removeprefix("sqlite:///")
    return made if "://" in file else replace(made, url=os.path.normpath(folder / file))
