"""The place where commands are carried out, a local ledger or a server, and the source of that choice."""

import os
import re
import shlex
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lodger.engine.core.errors import Usage

#: Environment variable with the path of the file of profiles; by default ``lodger/profiles.toml`` in the configuration folder.
FILE = "LODGER_PROFILES"


@dataclass(frozen=True, slots=True)
class Profile:
    """A place by name: a server with its token, or a ledger."""

    name: str
    server: str | None = None
    token: str | None = None
    db: str | None = None


def profile_named(name: str | None) -> Profile | None:
    """Return a profile of the file, by default that which ``current`` names in it; None if it names none, or there is no file.

    Raises:
        Usage: profile_unknown, profiles_readable, profiles_invalid.
    """
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    path = Path(os.environ.get(FILE) or folder / "lodger" / "profiles.toml")
    try:
        text, mode = path.read_text(), path.stat().st_mode
        current, known = _read(tomllib.loads(text))
    except FileNotFoundError:
        current, mode, known = "", 0, {}
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise Usage("profiles_invalid", path=path, reason=error) from None
    if mode & 0o077 and any(each.token for each in known.values()):
        raise Usage("profiles_readable", path=path)
    name = name or current
    found = known.get(name)
    if found is None and name:
        raise Usage("profile_unknown", name=name, path=path, known=", ".join(known) or "none")
    if found is not None and found.server and found.db:
        raise Usage("place_ambiguous.profile", name=name, path=path)
    return found


def _read(body: dict[str, Any]) -> tuple[str, dict[str, Profile]]:
    """Return the name of the default profile and the profiles by name of a file's content; raises TypeError or ValueError."""
    current, profiles = body.get("current", ""), body.get("profiles", {})
    if not isinstance(current, str) or not isinstance(profiles, dict):
        raise TypeError("current is a text, and profiles are tables")
    for name, fields in profiles.items():
        if not isinstance(fields, dict) or not fields.keys() <= {"server", "token", "db"}:
            raise ValueError(f"profile {name} has other fields than server, token and db")
        if not all(isinstance(each, str) for each in fields.values()):
            raise TypeError(f"the fields of profile {name} are texts")
    return current, {name: Profile(name, **fields) for name, fields in profiles.items()}


#: Options that may stand anywhere on the command line, before the noun or after the verb.
EVERYWHERE = ("--server", "--profile", "--tz")
#: Commands whose own option ``--tz`` is the zone of a rule.
OF_RULES = {
    ("next",),
    ("schedule", "create"),
    ("schedule", "edit"),
    ("schedule", "preview"),
    ("schedule", "what-if"),
    ("alert", "put"),
}
PROFILE = "LODGER_PROFILE_NAME"


@dataclass(frozen=True, slots=True)
class Place:
    """A ledger or server, and the source of the choice (``option``, ``environment``, ``profile NAME`` or ``default``).

    Attributes:
        server: the server's address; None for a local ledger.
        database: the database's address; None for the one of the settings.
    """

    server: str | None
    server_source: str
    token: str | None
    token_source: str
    database: str | None
    database_source: str
    profile: str | None


_said: dict[str, str] = {}
#: Commands of a text that open a ledger, beside those of nouns.
_OPENS = "up|doctor|db [a-z-]+"
#: Commands of nouns that open none.
_OPENS_NONE = "(?!secret keygen|grant table)"


def given() -> str:
    """Return the options of the present command line that choose its place, as text for another command; empty without any.

    Errors go to logs: an address is shown without its password.
    """
    said = {name: _said[name] for name in ("--db", "--server", "--profile") if name in _said}
    if "--db" in said:
        from lodger.engine.store.drivers.addresses import mask_password

        said["--db"] = mask_password(said["--db"])
    return "".join(f" {name} {shlex.quote(value)}" for name, value in said.items())


def to_copy(fix: str, nouns: Iterable[str]) -> str:
    """Return a fix whose commands go to the place that the present command line names."""
    server, options = "--server" in _said, given()
    opens_none = _OPENS_NONE + ("(?!ledger list)" if "--db" in _said else "")  # it reads LODGER_LEDGERS
    found = rf"\blodger (?:{opens_none}(?:{'|'.join(nouns)}) [a-z-]+{'' if server else '|' + _OPENS})\b"
    return re.sub(found, lambda command: command[0] + options, fix)


def taken(arguments: list[str]) -> list[str]:
    """Take the global options (``--server``, ``--profile``, ``--tz``) out of a command line, and note ``--db``; return the other arguments.

    Raises:
        Usage: option_empty.
    """
    _said.clear()
    left, waiting = [], iter(enumerate(arguments))
    values = {at + 1 for at, each in enumerate(arguments) if each in EVERYWHERE}
    words = [at for at, each in enumerate(arguments) if at not in values and not each.startswith("-")]
    own = any(tuple(arguments[at] for at in words[:count]) in OF_RULES for count in (1, 2))
    for place, argument in waiting:
        name, equals, value = argument.partition("=")
        if argument == "--":
            left += arguments[place:]
            break
        if name in EVERYWHERE and (name != "--tz" or not own or place < words[0]):
            value = value if equals else next(waiting, (0, ""))[1]
            if not value or value.startswith("--"):
                raise Usage("option_empty", option=name, example=_EXAMPLES[name])
            _said[name] = value
        else:
            left.append(argument)
            if name == "--db":
                _said[name] = value if equals else "".join(arguments[place + 1 : place + 2])
    return left


def server_said() -> str | None:
    """Return the server that the option ``--server`` names, or None."""
    return _said.get("--server")


def zone_said() -> str | None:
    """Return the zone of the option ``--tz`` in which times are shown, or None for UTC."""
    return _said.get("--tz")


_EXAMPLES = {"--server": "https://lodger.example.com", "--profile": "NAME", "--tz": "Europe/Berlin"}


def chosen(db: str | None, *, local: str | None = None) -> Place:
    """Return where a command is carried out: by the command line, else the environment, else the profile, else the default.

    Args:
        local: why the command needs a local ledger; None if it works with a server.

    Raises:
        Usage: verb_local, place_ambiguous, profile_unknown, profiles_readable, profiles_invalid.
    """
    if db is not None and "--server" in _said:
        raise Usage("place_ambiguous")
    asked, option, environment = "--profile" in _said, _said.get("--server"), os.environ.get
    profile = profile_named(_said.get("--profile") or environment(PROFILE)) or Profile("")
    of_profile = f"profile {profile.name}"
    server, server_source = _first(
        (option, option, "option"),
        (db is not None, None, "option"),
        (not asked and environment("LODGER_SERVER"), environment("LODGER_SERVER"), "environment"),
        (profile.server, profile.server, of_profile),
    )
    if local is not None and server is not None:
        raise Usage("verb_local", reason=local)
    # A profile's token is sent to that profile's server only.
    is_own = server is not None and (profile.server or "").rstrip("/") == server.rstrip("/")
    token, token_source = _first(
        (server is None, None, "default"),
        (environment("LODGER_TOKEN"), environment("LODGER_TOKEN"), "environment"),
        (is_own and profile.token, profile.token, of_profile),
    )
    database, database_source = _first(
        (db is not None, db, "option"),
        (asked and profile.db, profile.db, of_profile),
        (environment("LODGER_DATABASE") or environment("LODGER_LEDGERS"), None, "environment"),
        (profile.db, profile.db, of_profile),
    )
    return Place(server, server_source, token, token_source, database, database_source, profile.name or None)


def _first(*ways: tuple[object, str | None, str]) -> tuple[str | None, str]:
    """Return the value and the source of the first way, (whether it applies, value, source) each, that applies; else the default."""
    return next(((value, source) for applies, value, source in ways if applies), (None, "default"))
