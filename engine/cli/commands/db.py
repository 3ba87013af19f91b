"""``lodger db``: the ledger's schema, backups and health."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import lodger.engine.features  # noqa: F401 - the wings' tables: to be created, checked, and brought back from the future
from lodger.engine.cli.platform import Expose, File, preparation
from lodger.engine.core.errors import Usage
from lodger.engine.output.result_output import AsJson, Database, say, write_json

if TYPE_CHECKING:
    from lodger.engine.store.connection.inspection import Inspection

app = typer.Typer(name="db", help="Manage the ledger's database.", no_args_is_help=True)
#: An upgrade that does not get a lock in time, because nodes are at work, is begun again: so often, and after such a rest, seconds.
TRIES, REST_S = 10, 0.5


@app.command()
def upgrade(
    backup: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Back up the database to this new file first.")
    ] = None,
    without_backup: Annotated[
        bool, typer.Option("--without-backup", help="Upgrade without a backup, because a recent one exists.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the migrations, and change nothing.")] = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Upgrade the database to this version's schema; create it if it does not exist."""
    from lodger.engine.core.settings import load
    from lodger.engine.store.connection import backups
    from lodger.engine.store.connection.inspection import inspect_database

    place = load(database=db).database
    found = inspect_database(place)
    body: dict[str, object] = {"applied": []}
    if dry_run:
        _announce(found, as_json=as_json)
        return
    if found.verdict == "behind":
        if backup is None and not without_backup:
            raise Usage("backup_missing", revision=found.revision, wanted=found.wanted)
        if not as_json:
            _announce(found, as_json=False)
        if backup is not None:
            backups.backup(place, backup)
            body["backup"] = str(backup)
            if not as_json:
                say(f"backed up to {backup}")
    body["applied"] = _upgraded(place, as_json=as_json)
    elsewhere = found.verdict == "behind" and not body["applied"]
    if as_json:
        write_json(body | ({"upgraded_elsewhere": True} if elsewhere else {}))
    elif elsewhere:
        say("another process has upgraded the database at the same time")
    elif not body["applied"]:
        say("the database is up to date")


def _announce(found: "Inspection", *, as_json: bool) -> None:
    """Show what an upgrade would do."""
    from lodger.engine.store.migrations.revision import compatible_with
    from lodger.engine.store.migrations.upgrade import pending

    steps = pending(found.revision) if found.verdict in {"absent", "empty", "behind"} else []
    oldest = compatible_with()
    if as_json:
        listed = [{"revision": step.revision, "sentence": step.sentence} for step in steps]
        write_json({"revision": found.revision, "wanted": found.wanted, "pending": listed, "compatible_with": oldest})
        return
    say(f"{found.place}: schema {found.revision or 'none'}, {len(steps)} migrations to {found.wanted}")
    for step in steps:
        say(f"  {step.revision}  {step.sentence}")
    if found.revision is not None:
        say(f"nodes of releases with schema {oldest} or later can use the new schema")


def _upgraded(place: str, *, as_json: bool) -> list[dict[str, object]]:
    """Upgrade, and return the migrations that were applied; waits for locks that nodes hold."""
    import time

    from lodger.engine.core.errors import Unavailable
    from lodger.engine.store.connection.database import Database as Ledger

    for left in reversed(range(TRIES)):
        done: list[dict[str, object]] = []

        def show_step(revision: str, sentence: str, number: int, total: int, done: list[Any] = done) -> None:
            """Print one step of the upgrade, and keep it for ``--json``."""
            done.append({"revision": revision, "sentence": sentence})
            if not as_json:
                say(f"{number}/{total}  {revision}  {sentence}")

        try:
            Ledger(place, progress=show_step, upgrade=True).close()
        except Unavailable as error:
            if error.code != "database_busy" or not left:
                raise
            if not as_json:
                say("the tables are in use; nothing was changed, and the upgrade is tried again")
            time.sleep(REST_S)
        else:
            return done
    raise AssertionError


@app.command()
def check(
    schema_only: Annotated[
        bool, typer.Option("--schema-only", help="Only compare the schema's revision; do not check the data.")
    ] = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Check the schema's revision, the database's integrity and the laws of the ledger; change nothing."""
    from lodger.engine.core.settings import load
    from lodger.engine.store.connection import backups
    from lodger.engine.store.connection.inspection import inspect_database

    place = load(database=db).database
    found = inspect_database(place)
    usable = found.verdict in {"current", "ahead"}
    damages, broken = backups.check(place) if usable and not schema_only else ([], [])
    if as_json:
        write_json(found.as_dict() | {"damages": damages, "broken": broken})
    else:
        say(f"{found.place}: schema {found.revision or 'none'}, expected {found.wanted}: {found.verdict}")
        for damage in damages:
            say(f"damaged: {damage}")
        for law in broken:
            say(f"broken: {law['law']}: {law['rows']}")
    if not usable or damages or broken:
        raise typer.Exit(1)


@app.command(name="repair-clock")
def repair_clock(
    yes: Annotated[bool, typer.Option("--yes", help="Bring the rows back; without it they are only listed.")] = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """List what a clock that was ahead has written in the future: slots, retries, leases, expiries; with --yes, bring it back."""
    from lodger.engine.cli.ledger import opened
    from lodger.engine.store.lifecycle import wrong_clock

    with opened(db) as engine:
        context, now_us = engine.context, engine.context.ledger_us()
        if yes:
            with context.database.write() as connection:
                found = wrong_clock.bring_back(context, connection, now_us)
            engine.changed()
        else:
            with context.database.read() as connection:
                context.database.driver.allow_scans(connection)
                found = wrong_clock.find(connection, now_us)
    if as_json:
        write_json({"tables": {each.table: each.rows for each in found}, "brought_back": yes})
    elif not found:
        say("no row was written in the future")
    else:
        for each in found:
            say(f"{each.table}: {each.rows} {'brought back' if yes else 'in the future'}")
        if not yes:
            say("to bring them back, once this host's clock is right: lodger db repair-clock --yes")


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Path of the new file.")],
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Write a consistent copy of the database to a new file, while nodes work on it."""
    from lodger.engine.core.settings import load
    from lodger.engine.store.connection import backups

    backups.backup(load(database=db).database, file)
    if as_json:
        write_json({"backup": str(file), "bytes": file.stat().st_size})
    else:
        say(f"{file}: {file.stat().st_size} bytes; encryption keys (LODGER_SECRET_KEYS) are not included")


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File that `lodger db backup` wrote.")],
    drop_unsent: Annotated[
        bool,
        typer.Option(
            "--drop-unsent", help="Do not send mails and webhooks that were waiting at the time of the backup."
        ),
    ] = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Load a backup where no ledger is. Slots since the backup are missed slots; what was running runs again."""
    from lodger.engine.core.settings import load
    from lodger.engine.store.connection import backups

    found = backups.restore(load(database=db).database, file, drop_unsent=drop_unsent)
    if as_json:
        write_json(found.as_dict())
        return
    say(f"restored: schema {found.revision}, last used {found.last.isoformat() if found.last else 'never'}")
    say("slots since then are missed; the policy missed of each schedule decides whether they run")
    if found.running:
        say(f"{found.running} actions were running, and will run again")
    if found.unsent:
        fate = "will not be sent" if found.dropped else "will be sent now, with their original ids"
        say(f"{found.unsent} mails and webhooks were waiting, may have been sent since, and {fate}")


@app.command()
def prepare(
    expose: Expose = None,
    platform: File = None,
    sql: Annotated[bool, typer.Option("--sql", help="Print the statements and change nothing.")] = False,
    user: Annotated[
        str | None,
        typer.Option(help="With --sql: database user that Lodger will connect as. Default: the user of --db."),
    ] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Create Lodger's objects in databases with exposed tables: receipts, and on PostgreSQL views and a role."""
    from lodger.engine.cli.ledger import opened
    from lodger.engine.data.changes.prepare import printed

    prepare_engine = preparation(expose, platform)
    if prepare_engine is None:
        raise Usage("expose_missing")
    with opened(db, creates=not sql) as engine:
        prepare_engine(engine)
        if not sql:
            engine.prepare()
        planned = {}
        for each in (None, *engine.datasets.databases):
            with (each or engine.context.database).read() as connection:
                place = "the ledger" if each is None else each.place
                planned[place] = printed(engine.datasets, each, connection, user)
    if as_json:
        write_json({"prepared": not sql, "statements": planned})
        return
    for place, listed in planned.items():
        if sql:
            say(f"-- {place}")
            for statement in listed:
                say(*f"{statement};".splitlines())
        else:
            say(f"{place}: {len(listed)} statements" if listed else f"{place}: nothing to change")
