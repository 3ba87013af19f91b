"""Checks of names: ids of tenants, names of scripts and schedules, and the reasons people give."""

import unicodedata

from lodger.engine.core.errors import InputError

NAME_LENGTH = 200
REASON_LENGTH = 1000
#: Folder in which package managers put packages.
PACKAGES = "node_modules"


def check(name: str, code: str) -> None:
    """Check a name under which something is addressed.

    Raises:
        InputError: ``code``.
    """
    good = 1 <= len(name) <= NAME_LENGTH and name.isprintable() and name == name.strip()
    if not good or not is_segment(name):
        raise InputError(code, name=name, maximum=NAME_LENGTH)
    composed = unicodedata.normalize("NFC", name)
    if composed != name:
        raise InputError(f"{code}.composed", name=name, composed=composed)


def is_segment(text: str) -> bool:
    """Whether a text can be one segment of an address or a path: it may not climb out of it, on this side or behind a proxy."""
    return text not in {"", ".", ".."} and "/" not in text and "\\" not in text


def check_path_part(name: str, code: str) -> None:
    """Check a name that also becomes a file or folder, where tools would read some names as their own settings.

    Raises:
        InputError: ``code``.
    """
    check(name, code)
    if is_of_tools(name):
        raise InputError(f"{code}.of_tools", name=name)


def is_of_tools(part: str) -> bool:
    """Whether a part of a path is one that tools keep settings or packages under, on file systems of either case."""
    return part.startswith(".") or part.casefold() == PACKAGES


def reason(why: str | None) -> str | None:
    """Check the reason that is given for a version.

    Raises:
        InputError: why_invalid.
    """
    if why is None:
        return None
    if len(why) > REASON_LENGTH or any(not char.isprintable() and char != "\n" for char in why):
        raise InputError("why_invalid", maximum=REASON_LENGTH)
    return why.strip() or None


def ordinal(number: int) -> int:
    """Return the number of a version, revision or attempt in the database's range; 0, which none of them has, for one beyond it."""
    return number if 0 < number < 2**31 and not isinstance(number, bool) else 0


def label(name: str) -> str:
    """Check a name for people, under which nothing is addressed.

    Raises:
        InputError: name_invalid.
    """
    if len(name) > NAME_LENGTH or not name.isprintable():
        raise InputError("name_invalid", name=name[:50], name_length=NAME_LENGTH)
    return name
