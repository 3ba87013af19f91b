"""Checks of names: ids of tenants, names of scripts and schedules, and the reasons people give."""

import unicodedata

from lodger.engine.core.errors import InputError

NAME_LENGTH = 200
REASON_LENGTH = 1000
#: Folder in which package managers put packages.
PACKAGES = "node_modules"


def check(name: str, code: str, what: str, fix: str) -> None:
    """Check a name under which something is addressed.

    Raises:
        InputError: ``code``.
    """
    good = 1 <= len(name) <= NAME_LENGTH and name.isprintable() and name == name.strip()
    # A name is one segment of an address and perhaps of a path: it may not climb out of it, on this side or behind a proxy.
    if not good or name in {".", ".."} or "/" in name or "\\" in name:
        raise InputError(
            code,
            f"{name!r} cannot be the name of {what}",
            why=f"a name has 1 to {NAME_LENGTH} printable characters, no space around it, no / or \\, and is not . or ..",
            fix=fix,
        )
    composed = unicodedata.normalize("NFC", name)
    if composed != name:
        raise InputError(
            code,
            f"{name!a} cannot be the name of {what}",
            why="it is not in Unicode's composed form (NFC), so two names could look the same",
            fix=f"write it as {composed!a}",
        )


def check_path_part(name: str, code: str, what: str, fix: str) -> None:
    """Check a name that also becomes a file or folder, where tools would read some names as their own settings.

    Raises:
        InputError: ``code``.
    """
    check(name, code, what, fix)
    if is_of_tools(name):
        raise InputError(
            code,
            f"{name!r} cannot be the name of {what}",
            why="names that begin with a dot, and node_modules, belong to tools such as git, which run commands from there",
            fix=fix,
        )


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
        raise InputError(
            "why_invalid",
            "this reason is too long or not printable",
            why=f"a reason has at most {REASON_LENGTH} printable characters",
            fix="give a shorter reason",
        )
    return why.strip() or None


def ordinal(number: int) -> int:
    """Return the number of a version or revision in the database's range; 0, which no version has, for a number beyond it."""
    return number if 0 < number < 2**31 and not isinstance(number, bool) else 0


def label(name: str) -> str:
    """Check a name for people, under which nothing is addressed.

    Raises:
        InputError: name_invalid.
    """
    if len(name) > NAME_LENGTH or not name.isprintable():
        raise InputError(
            "name_invalid",
            f"{name[:50]!r} cannot be displayed as a name",
            why=f"a name has at most {NAME_LENGTH} printable characters",
            fix="use a shorter name, on one line",
        )
    return name
