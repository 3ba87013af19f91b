"""The place where commands are carried out, a local ledger or a server, and the source of that choice."""

import json
import os
import re
import shlex
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lodger.engine.core.errors import Usage

FILE = "LODGER_PROFILES"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Profile:
    """A place by name: a server with its token, or a ledger."""

    name: str
    server: str | None = None
    token: str | None = None
    db: str | None = None


class Profiles:
    """The file: ``LODGER_PROFILES``, else ``lodger/profiles.toml`` in the user's configuration folder."""

    def __init__(self, path: Path | None = None) -> None:
        folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
        self.path = path or Path(os.environ.get(FILE) or folder / "lodger" / "profiles.toml")

    def read(self) -> dict[str, Any]:
        """Return the file's content; an absent one is empty.

        Raises:
            Usage: profiles_readable, profiles_invalid.
        """
        try:
            text, mode = self.path.read_text(), self.path.stat().st_mode
        except FileNotFoundError:
            return {"profiles": {}}
        except (OSError, UnicodeDecodeError) as error:
            raise Usage("profiles_invalid", path=self.path, reason=error) from None
        try:
            body = tomllib.loads(text)
            known = {name: Profile(name, **fields) for name, fields in body.get("profiles", {}).items()}
        except (tomllib.TOMLDecodeError, TypeError, AttributeError) as error:
            raise Usage("profiles_invalid", path=self.path, reason=str(error)) from None
        if mode & 0o077 and any(profile.token for profile in known.values()):
            raise Usage("profiles_readable", path=self.path)
        return body | {"profiles": known}

    def all(self) -> tuple[list[Profile], str | None]:
        """Return every profile by name, and the name of the default."""
        body = self.read()
        return sorted(body["profiles"].values(), key=lambda profile: profile.name), body.get("current")

    def get(self, name: str) -> Profile:
        """Return the profile of this name.

        Raises:
            Usage: profile_unknown.
        """
        found: Profile | None = self.read()["profiles"].get(name)
        if found is None:
            raise Usage("profile_unknown", name=name)
        return found

    def current(self) -> Profile | None:
        """Return the default profile, None if there is none."""
        body = self.read()
        name = body.get("current")
        return body["profiles"].get(name) if name else None

    def put(self, profile: Profile, *, use: bool) -> None:
        """Store a profile; the first one, or with ``use``, becomes the default.

        Raises:
            Usage: profile_name_invalid.
        """
        if not _NAME.fullmatch(profile.name):
            raise Usage("profile_name_invalid", name=profile.name)
        body = self.read()
        first = not body["profiles"]
        body["profiles"][profile.name] = profile
        self._write(body["profiles"], profile.name if use or first else body.get("current"))

    def use(self, name: str) -> None:
        """Make a profile the default."""
        profile, body = self.get(name), self.read()
        self._write(body["profiles"], profile.name)

    def remove(self, name: str) -> None:
        """Remove a profile with its token."""
        self.get(name)
        body = self.read()
        del body["profiles"][name]
        self._write(body["profiles"], None if body.get("current") == name else body.get("current"))

    def _write(self, profiles: dict[str, Profile], current: str | None) -> None:
        """Write the profiles file anew, with these profiles and the name of the default one."""
        lines = [f"current = {json.dumps(current)}", ""] if current else []
        for profile in sorted(profiles.values(), key=lambda each: each.name):
            lines.append(f"[profiles.{json.dumps(profile.name)}]")
            for name in ("server", "token", "db"):
                value = getattr(profile, name)
                if value:
                    lines.append(f"{name} = {json.dumps(value)}")
            lines.append("")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        waiting = self.path.with_suffix(".new")
        # Readable by its owner only, from the first byte on; an interrupted write leaves the old file.
        descriptor = os.open(waiting, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write("\n".join(lines))
        waiting.replace(self.path)


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
    profile = _profile()
    if "--server" in _said:
        server, server_source = _said["--server"], "option"
    elif db is not None:
        server, server_source = None, "option"
    elif "--profile" not in _said and os.environ.get("LODGER_SERVER"):
        server, server_source = os.environ["LODGER_SERVER"], "environment"
    elif profile is not None and profile.server:
        server, server_source = profile.server, f"profile {profile.name}"
    else:
        server, server_source = None, "default"
    if local is not None and server is not None:
        raise Usage("verb_local", reason=local)
    token, token_source = _token(server, profile)
    if db is not None:
        database, database_source = db, "option"
    elif "--profile" in _said and profile is not None and profile.db:
        database, database_source = profile.db, f"profile {profile.name}"
    elif os.environ.get("LODGER_DATABASE") or os.environ.get("LODGER_LEDGERS"):
        database, database_source = None, "environment"
    elif profile is not None and profile.db:
        database, database_source = profile.db, f"profile {profile.name}"
    else:
        database, database_source = None, "default"
    return Place(
        server, server_source, token, token_source, database, database_source, profile.name if profile else None
    )


def _profile() -> Profile | None:
    """Return the profile that the command line or environment names, else the default one; None without any."""
    profiles = Profiles()
    name = _said.get("--profile") or os.environ.get(PROFILE)
    if name:
        return profiles.get(name)
    return profiles.current()


def _token(server: str | None, profile: Profile | None) -> tuple[str | None, str]:
    """Return the token for a server, and where it comes from. A profile's token is only sent to that profile's server."""
    if server is None:
        return None, "default"
    if os.environ.get("LODGER_TOKEN"):
        return os.environ["LODGER_TOKEN"], "environment"
    if profile is not None and profile.token and profile.server and profile.server.rstrip("/") == server.rstrip("/"):
        return profile.token, f"profile {profile.name}"
    return None, "default"
