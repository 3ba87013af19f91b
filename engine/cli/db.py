"""``lodger db``: the ledger's schema."""

import typer

from lodger.engine.cli.answer import AsJson, Database, say, write_json

app = typer.Typer(name="db", help="The ledger's database.", no_args_is_help=True)


@app.command()
def upgrade(db: Database = None, as_json: AsJson = False) -> None:
    """Bring the database to this version's schema; makes it when it is absent."""
    from lodger.engine.ledger.database import Database as Ledger
    from lodger.engine.settings_table import load

    done: list[dict[str, object]] = []

    def told(revision: str, sentence: str, number: int, total: int) -> None:
        done.append({"revision": revision, "sentence": sentence})
        if not as_json:
            say(f"{number}/{total}  {revision}  {sentence}")

    Ledger(load(database=db).database, progress=told).close()
    if as_json:
        write_json({"applied": done})
    elif not done:
        say("the database is up to date")


@app.command()
def check(db: Database = None, as_json: AsJson = False) -> None:
    """Say whether the database can be opened and has this version's schema; changes nothing."""
    from lodger.engine.ledger.inspection import inspected
    from lodger.engine.settings_table import load

    found = inspected(load(database=db).database)
    if as_json:
        write_json(found)
    else:
        say(f"{found.place}: schema {found.revision or 'none'}, wanted {found.wanted}: {found.verdict}")
    if found.verdict != "current":
        raise typer.Exit(1)
