"""``lodger secret``: what scripts use and never see."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from lodger.engine.cli.answer import AsJson, Database, say, table, write_json, zulu
from lodger.engine.cli.failure import Usage
from lodger.engine.cli.ledger import opened
from lodger.engine.cli.of_verb import confirm
from lodger.engine.cli.words import Yes

app = typer.Typer(name="secret", help="What scripts use and never see.", no_args_is_help=True)

Tenant = Annotated[str, typer.Argument(help="The tenant's id.")]
Name = Annotated[str, typer.Argument(help="Its name, like STRIPE_KEY.")]


@app.command()
def put(
    tenant: Tenant,
    name: Name,
    host: Annotated[
        list[str] | None, typer.Option(help="Where it may be sent in a header: api.example.com; several may be given.")
    ] = None,
    grant: Annotated[bool, typer.Option("--grant", help="Also give the tenant the grant secret:NAME.")] = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Store a secret, or its new value, which is read from stdin (asked for on a terminal): never from the command line."""
    with opened(db) as engine:
        made = engine.secrets.put(tenant, name, _value(name), hosts=host or (), grant=grant)
    if as_json:
        write_json(made)
    else:
        say(f"secret {name} of {tenant} is stored; it may go to: {', '.join(made.hosts) or 'no host'}")


@app.command("list")
def show_all(tenant: Tenant, db: Database = None, as_json: AsJson = False) -> None:
    """List a tenant's secrets: names and hosts, never values."""
    with opened(db) as engine:
        found = engine.secrets.list(tenant)
    if as_json:
        write_json({"secrets": found})
    else:
        rows = ((each.name, ", ".join(each.hosts), each.key_id, zulu(each.updated_at)) for each in found)
        table(("secret", "may go to", "key", "stored"), rows)


@app.command()
def delete(tenant: Tenant, name: Name, yes: Yes = False, db: Database = None, as_json: AsJson = False) -> None:
    """Delete a secret."""
    confirm("delete secret {name} of {tenant}", {"name": name, "tenant": tenant}, yes=yes, as_json=as_json)
    with opened(db) as engine:
        engine.secrets.delete(tenant, name)
    if as_json:
        write_json({"deleted": name})
    else:
        say(f"secret {name} of {tenant} is gone")


@app.command()
def keygen(
    file: Annotated[Path, typer.Argument(help="Where the keys shall be; LODGER_SECRET_KEYS names it then.")],
    as_json: AsJson = False,
) -> None:
    """Make a file of keys with its first key. Keep a copy of it apart from the ledger: without it no secret can be read."""
    from lodger.engine.vault.keyring import Keyring, refuse_existing

    refuse_existing(file)
    made = Keyring(file).add()
    if as_json:
        write_json({"file": str(file), "key": made})
    else:
        say(f"key {made} is in {file}; set LODGER_SECRET_KEYS={file} on every node")


@app.command()
def rotate(
    new_key: Annotated[bool, typer.Option("--new-key", help="Make a new key first.")] = False,
    drop: Annotated[bool, typer.Option("--drop", help="Forget the keys that nothing needs any more.")] = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Encrypt every secret with the newest key; what was encrypted with it already stays as it is."""
    with opened(db) as engine:
        done = engine.secrets.rotate(new_key=new_key, drop=drop)
    if as_json:
        write_json(done)
        return
    say(f"{done.renewed} encrypted anew with key {done.key_id}")
    if done.dropped:
        say("forgotten: " + ", ".join(done.dropped))


def _value(name: str) -> str:
    if sys.stdin.isatty():
        import getpass

        return getpass.getpass(f"{name}: ")
    raw = sys.stdin.buffer.read(1 << 20)
    try:
        return raw.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise Usage(
            "not_text", "the secret on stdin is not UTF-8", fix="encode it as text, such as base64, first"
        ) from None
