"""``lodger profile``: servers and ledgers by name."""

import sys
from typing import Annotated

import typer

from lodger.engine.cli.place import Profile, Profiles, server_said
from lodger.engine.core.errors import Usage
from lodger.engine.output.result_output import Group, say, table, write_result

app = Group(name="profile", help="Manage profiles: named servers and ledgers.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of the profile.")]


@app.command("set")
def put(
    name: Name,
    address: Annotated[
        str | None, typer.Option("--address", help="Address of a server; its token is read from stdin.")
    ] = None,
    db: Annotated[
        str | None,
        typer.Option("--db", metavar="PLACE", help="SQLite file or database URL of a ledger, instead of a server."),
    ] = None,
    use: Annotated[bool, typer.Option("--use", help="Make this profile the default.")] = False,
) -> None:
    """Store a profile. A token is read from stdin (asked for on a terminal), never from the command line."""
    from lodger.engine.store.connection.database import mask_password

    # --server names a server everywhere else, so it does here.
    address = address or server_said()
    if (address is None) == (db is None):
        raise Usage("place_ambiguous.profile")
    token = _token() if address is not None else None
    if address is not None:
        from lodger.engine.client.requests import connection

        address, _headers = connection(address, token)
    Profiles().put(Profile(name, address, token, db), use=use)
    write_result({"profile": name, "server": address, "db": mask_password(db) if db else db})
    say(f"profile {name} is {mask_password(address or db or '')}")


@app.command("list")
def show_all() -> None:
    """List the profiles, without their tokens."""
    from lodger.engine.store.connection.database import mask_password

    found, current = Profiles().all()
    shown = [
        {
            "name": each.name,
            "server": mask_password(each.server) if each.server else None,
            "db": mask_password(each.db) if each.db else None,
            "token": bool(each.token),
            "current": each.name == current,
        }
        for each in found
    ]
    write_result({"profiles": shown})
    rows = ((each["name"], each["server"] or each["db"], "default" if each["current"] else "") for each in shown)
    table(("profile", "place", ""), rows)


@app.command()
def use(name: Name) -> None:
    """Make a profile the default."""
    Profiles().use(name)
    write_result({"current": name})
    say(f"profile {name} is the default")


@app.command()
def remove(name: Name) -> None:
    """Remove a profile with its token; the token itself stays valid until it is revoked."""
    Profiles().remove(name)
    write_result({"removed": name})
    say(f"profile {name} is removed; to revoke its token: lodger token revoke")


def _token() -> str:
    """Read a token from the terminal or the standard input."""
    if sys.stdin.isatty():
        import getpass

        return getpass.getpass("token: ").strip()
    return sys.stdin.readline(5000).strip()
