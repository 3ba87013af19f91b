"""``lodger secret``: secrets that scripts use and never see."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from lodger.engine.cli.ledger import opened
from lodger.engine.core.errors import Usage
from lodger.engine.output.result_output import Database, Group, TenantId, say, write_result

app = Group(no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of the secret, such as STRIPE_KEY.")]


@app.command()
def put(
    tenant: TenantId,
    name: Name,
    host: Annotated[
        list[str] | None,
        typer.Option(help="Host to which it may be sent in a header, such as api.example.com; may be repeated."),
    ] = None,
    grant: Annotated[bool, typer.Option("--grant", help="Also grant secret:NAME to the tenant.")] = False,
    db: Database = None,
) -> None:
    """Store a secret or its new value, read from stdin (prompted on a terminal), never from the command line."""
    with opened(db, creates=True) as engine:
        made = engine.secrets.put(tenant, name, _value(name), hosts=host or (), grant=grant)
    write_result(made)
    say(f"secret {name} of {tenant} is stored; allowed hosts: {', '.join(made.hosts) or 'none'}")


@app.command()
def keygen(
    file: Annotated[Path, typer.Argument(help="Path of the new key file, for the setting LODGER_SECRET_KEYS.")],
) -> None:
    """Create a key file with a first key. Keep a copy apart from the ledger: without it no secret can be decrypted."""
    from lodger.engine.vault.keyring import Keyring, refuse_existing

    refuse_existing(file)
    made = Keyring(file).add()
    write_result({"file": str(file), "key": made})
    say(f"key {made} is in {file}; set LODGER_SECRET_KEYS={file} on every node")


def _value(name: str) -> str:
    """Read the value of a secret from the terminal or the standard input."""
    if sys.stdin.isatty():
        import getpass

        return getpass.getpass(f"{name}: ")
    raw = sys.stdin.buffer.read(1 << 20)
    try:
        return raw.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise Usage("not_text.secret") from None
