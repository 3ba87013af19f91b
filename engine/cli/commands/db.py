"""``lodger db``: the ledger's schema."""

from typing import Annotated

import typer

from lodger.engine.cli.output.result_output import AsJson, Database, say, write_json

app = typer.Typer(name="db", help="Manage the ledger's database.", no_args_is_help=True)


@app.command()
def upgrade(db: Database = None, as_json: AsJson = False) -> None:
    """Upgrade the database to this version's schema; create it if it does not exist."""
    from lodger.engine.core.settings import load
    from lodger.engine.store.connection.database import Database as Ledger

    done: list[dict[str, object]] = []

    def show_step(revision: str, sentence: str, number: int, total: int) -> None:
        done.append({"revision": revision, "sentence": sentence})
        if not as_json:
            say(f"{number}/{total}  {revision}  {sentence}")

    Ledger(load(database=db).database, progress=show_step).close()
    if as_json:
        write_json({"applied": done})
    elif not done:
        say("the database is up to date")


@app.command()
def check(db: Database = None, as_json: AsJson = False) -> None:
    """Check that the database can be opened and has this version's schema; change nothing."""
    from lodger.engine.core.settings import load
    from lodger.engine.store.connection.inspection import inspect_database

    found = inspect_database(load(database=db).database)
    if as_json:
        write_json(found)
    else:
        say(f"{found.place}: schema {found.revision or 'none'}, expected {found.wanted}: {found.verdict}")
    if found.verdict != "current":
        raise typer.Exit(1)


@app.command()
def prepare(
    expose: Annotated[
        str,
        typer.Option(
            metavar="MODULE:FUNCTION", help="Function that is called with the engine and exposes the platform's tables."
        ),
    ],
    sql: Annotated[bool, typer.Option("--sql", help="Print the statements and change nothing.")] = False,
    user: Annotated[
        str | None,
        typer.Option(help="With --sql: database user that Lodger connects as, if another user runs the statements."),
    ] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Create Lodger's objects in databases with exposed tables: receipts, and on PostgreSQL views and a role."""
    from lodger.engine.cli.ledger import opened
    from lodger.engine.cli.up import named
    from lodger.engine.data.changes.prepare import statements

    tell = named(expose)
    with opened(db) as engine:
        tell(engine)
        planned = {"the ledger": statements(engine.datasets, None, engine.context.database.driver, user)}
        for each in engine.datasets.databases:
            planned[each.place] = statements(engine.datasets, each, each.driver, user)
        if not sql:
            engine.prepare()
    if as_json:
        write_json({"prepared": not sql, "statements": planned})
        return
    for place, listed in planned.items():
        if sql:
            say(f"-- {place}")
            for statement in listed:
                say(statement + ";")
        else:
            say(f"{place}: {len(listed)} statements" if listed else f"{place}: nothing to change")
