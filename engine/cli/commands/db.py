"""``lodger db``: the ledger's schema, backups and health."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import lodger.engine.features  # noqa: F401 - the wings' tables: to be created, checked, and brought back from the future
from lodger.engine.cli.ledger import each_ledger, inspected, opened
from lodger.engine.cli.platform import Expose, File, preparation
from lodger.engine.core.errors import Usage
from lodger.engine.output.result_output import Database, Group, say, write_result

if TYPE_CHECKING:
    from collections.abc import Callable

    from lodger.engine.store.connection.inspection import Inspection

app = Group(name="db", help="Manage the ledger's database.", no_args_is_help=True)
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
) -> None:
    """Upgrade the database to this version's schema; create it if it does not exist."""
    from lodger.engine.store.connection import backups

    if backup is not None:
        _one(db)

    def upgrade_one(name: str | None, place: str) -> dict[str, object]:
        """Upgrade one ledger."""
        found = inspected(name, place)
        if dry_run:
            return _announced(found)
        body: dict[str, object] = {}
        if found.verdict == "behind":
            if backup is None and not without_backup:
                raise Usage("backup_missing", revision=found.revision, wanted=found.wanted)
            _announced(found)
            if backup is not None:
                backups.backup(place, backup)
                body["backup"] = str(backup)
                say(f"backed up to {backup}")
        body["applied"] = _upgraded(place)
        if found.verdict == "behind" and not body["applied"]:
            say("another process has upgraded the database at the same time")
            body["upgraded_elsewhere"] = True
        elif not body["applied"]:
            say("the database is up to date")
        return body

    # The first one last: it is asked for the tenants of the others.
    _each(db, upgrade_one, last_first=True)


def _one(db: str | None) -> tuple[str | None, str]:
    """Return the name and address of the one ledger of a command.

    Raises:
        Usage: ledgers_several.
    """
    found = each_ledger(db)
    if len(found) > 1:
        raise Usage("ledgers_several", names=[name for name, _ in found])
    return found[0]


def _each(db: str | None, work: "Callable[[str | None, str], dict[str, Any]]", *, last_first: bool = False) -> None:
    """Call a function with the name and address of each ledger, go on after one that fails, and write the results.

    Args:
        work: returns the JSON of a ledger; False for ``ok`` in it ends the command with 1.
    """
    from lodger.engine.core.errors import Explained

    found = each_ledger(db)
    results: list[dict[str, Any]] = []
    for name, place in found[::-1] if last_first else found:
        of = {"ledger": name} if len(found) > 1 else {}
        if of:
            say(f"ledger {name}:")
        try:
            results.append(of | work(name, place))
        except Explained as error:
            if not of:
                raise
            results.append(of | {"ok": False, "error": error.as_dict()})
            say(f"{error.what} ({error.why}); {error.fix}")
    states = [each.pop("ok", True) for each in results]
    write_result({"ledgers": results} if len(found) > 1 else results[0])
    if not all(states):
        raise typer.Exit(1)


def _announced(found: "Inspection") -> dict[str, object]:
    """Show what an upgrade would do; return it as JSON."""
    from lodger.engine.store.migrations.revision import compatible_with
    from lodger.engine.store.migrations.upgrade import pending

    steps = pending(found.revision) if found.verdict in {"absent", "empty", "behind"} else []
    oldest = compatible_with()
    for line in (
        f"{found.place}: schema {found.revision or 'none'}, {len(steps)} migrations to {found.wanted}",
        *(f"  {step.revision}  {step.sentence}" for step in steps),
        *([f"nodes of releases with schema {oldest} or later can use the new schema"] if found.revision else []),
    ):
        say(line)
    listed = [{"revision": step.revision, "sentence": step.sentence} for step in steps]
    return {"revision": found.revision, "wanted": found.wanted, "pending": listed, "compatible_with": oldest}


def _upgraded(place: str) -> list[dict[str, object]]:
    """Upgrade, and return the migrations that were applied; waits for locks that nodes hold."""
    import time

    from lodger.engine.core.errors import Unavailable
    from lodger.engine.store.connection.database import Database as Ledger

    for left in reversed(range(TRIES)):
        done: list[dict[str, object]] = []

        def show_step(revision: str, sentence: str, number: int, total: int, done: list[Any] = done) -> None:
            """Print one step of the upgrade, and keep it for ``--json``."""
            done.append({"revision": revision, "sentence": sentence})
            say(f"{number}/{total}  {revision}  {sentence}")

        try:
            Ledger(place, progress=show_step, upgrade=True).close()
        except Unavailable as error:
            if error.code != "database_busy" or not left:
                raise
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
) -> None:
    """Check the schema's revision, the database's integrity and the laws of the ledger; change nothing."""
    from lodger.engine.store.connection import backups

    def check_one(name: str | None, place: str) -> dict[str, Any]:
        """Check one ledger."""
        found = inspected(name, place)
        damages, broken = backups.check(place) if found.usable and not schema_only else ([], [])
        for line in (
            f"{found.place}: schema {found.revision or 'none'}, expected {found.wanted}: {found.verdict}",
            *(f"damaged: {damage}" for damage in damages),
            *(f"broken: {law['law']}: {law['rows']}" for law in broken),
        ):
            say(line)
        ok = found.usable and not damages and not broken
        return found.as_dict() | {"damages": damages, "broken": broken, "ok": ok}

    _each(db, check_one)


@app.command(name="repair-clock")
def repair_clock(
    yes: Annotated[bool, typer.Option("--yes", help="Bring the rows back; without it they are only listed.")] = False,
    db: Database = None,
) -> None:
    """List what a clock that was ahead has written in the future: slots, retries, leases, expiries; with --yes, bring it back."""
    from lodger.engine.store.lifecycle import wrong_clock

    def repair_one(name: str | None, _place: str) -> dict[str, Any]:
        """List or repair one ledger."""
        with opened(name or db) as engine:
            context, now_us = engine.context, engine.context.ledger_us()
            if yes:
                with context.database.write() as connection:
                    found = wrong_clock.bring_back(context, connection, now_us)
                engine.changed()
            else:
                with context.database.read() as connection:
                    context.database.driver.allow_scans(connection)
                    found = wrong_clock.find(connection, now_us)
        if not found:
            say("no row was written in the future")
        for each in found:
            say(f"{each.table}: {each.rows} {'brought back' if yes else 'in the future'}")
        if found and not yes:
            say("to bring them back, once this host's clock is right: lodger db repair-clock --yes")
        return {"tables": {each.table: each.rows for each in found}, "brought_back": yes}

    _each(db, repair_one)


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Path of the new file.")],
    db: Database = None,
) -> None:
    """Write a consistent copy of the database to a new file, while nodes work on it."""
    from lodger.engine.store.connection import backups

    name, place = _one(db)
    inspected(name, place)
    backups.backup(place, file)
    write_result({"backup": str(file), "bytes": file.stat().st_size})
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
) -> None:
    """Load a backup where no ledger is. Slots since the backup are missed slots; what was running runs again."""
    from lodger.engine.store.connection import backups

    name, place = _one(db)
    found = backups.restore(place, file, drop_unsent=drop_unsent)
    inspected(name, place, other="ledger_other.restored")
    write_result(found.as_dict())
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
) -> None:
    """Create Lodger's objects in databases with exposed tables: receipts, and on PostgreSQL views and a role."""
    from lodger.engine.data.changes.prepare import printed

    prepare_engine = preparation(expose, platform)
    if prepare_engine is None:
        raise Usage("expose_missing")

    def prepare_one(name: str | None, _place: str) -> dict[str, Any]:
        """Prepare the databases of one ledger, or print the statements."""
        with opened(name or db, creates=not sql) as engine:
            prepare_engine(engine)
            if not sql:
                engine.prepare()
            planned = {}
            for each in (None, *engine.datasets.databases):
                with (each or engine.context.database).read() as connection:
                    place = "the ledger" if each is None else each.place
                    planned[place] = printed(engine.datasets, each, connection, user)
        for place, listed in planned.items():
            if sql:
                say(f"-- {place}")
                for statement in listed:
                    for line in f"{statement};".splitlines():
                        say(line)
            else:
                done = f"{place}: {len(listed)} statements" if listed else f"{place}: nothing to change"
                say(done)
        return {"prepared": not sql, "statements": planned}

    _each(db, prepare_one)
