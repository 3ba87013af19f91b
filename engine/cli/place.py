"""Where commands are carried out: a ledger that is opened here, or a server that is asked; and where that was said."""

import os
from dataclasses import dataclass

from lodger.engine.cli.failure import Usage
from lodger.engine.cli.profiles import Profile, Profiles

#: Options that may stand anywhere on the command line, before the noun or after the verb.
EVERYWHERE = ("--server", "--profile")
PROFILE = "LODGER_PROFILE"


@dataclass(frozen=True, slots=True)
class Place:
    """Where, and who said so (``option``, ``environment``, ``profile NAME`` or ``default``).

    Attributes:
        server: the address to ask; None for a ledger of one's own.
        database: None for what the settings say.
    """

    server: str | None
    server_source: str
    token: str | None
    token_source: str
    database: str | None
    database_source: str
    profile: str | None


_said: dict[str, str] = {}


def taken(arguments: list[str]) -> list[str]:
    """Take the options that may stand anywhere off a command line; give what is left.

    Raises:
        Usage: option_empty.
    """
    _said.clear()
    left, waiting = [], iter(arguments)
    for argument in waiting:
        name, equals, value = argument.partition("=")
        if argument == "--":
            left += [argument, *waiting]
        elif name in EVERYWHERE:
            value = value if equals else next(waiting, "")
            if not value or value.startswith("--"):
                raise Usage("option_empty", f"{name} needs a value", fix=f"{name} {_EXAMPLES[name]}")
            _said[name] = value
        else:
            left.append(argument)
    return left


def server_said() -> str | None:
    """Give the server that this command line names, whatever else says where."""
    return _said.get("--server")


_EXAMPLES = {"--server": "https://lodger.example.com", "--profile": "NAME"}


def chosen(db: str | None) -> Place:
    """Decide where: what was said on the command line, then the environment, then the profile, then the default.

    Raises:
        Usage: place_ambiguous, profile_unknown, profiles_readable, profiles_invalid.
    """
    if db is not None and "--server" in _said:
        raise Usage("place_ambiguous", "--db and --server are two places", fix="give one of them")
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
    token, token_source = _token(server, profile)
    if db is not None:
        database, database_source = db, "option"
    elif "--profile" in _said and profile is not None and profile.db:
        database, database_source = profile.db, f"profile {profile.name}"
    elif "LODGER_DATABASE" in os.environ:
        database, database_source = None, "environment"
    elif profile is not None and profile.db:
        database, database_source = profile.db, f"profile {profile.name}"
    else:
        database, database_source = None, "default"
    return Place(
        server, server_source, token, token_source, database, database_source, profile.name if profile else None
    )


def _profile() -> Profile | None:
    profiles = Profiles()
    name = _said.get("--profile") or os.environ.get(PROFILE)
    if name:
        return profiles.get(name)
    return profiles.current()


def _token(server: str | None, profile: Profile | None) -> tuple[str | None, str]:
    """Give the token for a server. A profile's goes to that profile's server and to no other."""
    if server is None:
        return None, "default"
    if os.environ.get("LODGER_TOKEN"):
        return os.environ["LODGER_TOKEN"], "environment"
    if profile is not None and profile.token and profile.server and profile.server.rstrip("/") == server.rstrip("/"):
        return profile.token, f"profile {profile.name}"
    return None, "default"
