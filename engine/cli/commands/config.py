"""``lodger config show``: every setting with its value, unit, default and source."""

from dataclasses import replace

from lodger.engine.output.result_output import Database, Group, table, write_result

app = Group(name="config", help="Show the settings.", no_args_is_help=True)


@app.callback()
def _noun() -> None:
    """Settings of the engine."""


@app.command("show")
def show(db: Database = None) -> None:
    """List every setting with its value, unit, default, source and description, and the server or ledger that commands use."""
    from lodger.engine.cli.place import chosen
    from lodger.engine.core.settings import load
    from lodger.engine.core.settings_table import table as rows_of
    from lodger.engine.store.connection.database import mask_password
    from lodger.engine.store.tenants import tokens
    from lodger.sandbox.limits import LIMITS

    place = chosen(db)
    settings = load(database=place.database)
    places = [
        {"name": "server", "value": mask_password(place.server or "none"), "source": place.server_source},
        {"name": "token", "value": tokens.shown(place.token) if place.token else "none", "source": place.token_source},
        {"name": "database", "value": mask_password(settings.database), "source": place.database_source},
    ]
    rows = [
        replace(
            row, value=mask_password(row.value), source=place.database_source if row.name == "database" else row.source
        )
        for row in rows_of(settings)
    ]
    names = ("name", "default", "minimum", "maximum", "outcome", "help")
    limits = [{name: getattr(spec, name) for name in names} for spec in LIMITS]
    write_result({"places": places, "settings": rows, "limits": limits})
    table(
        ("target", "value", "source"),
        (each.values() for each in places),
        title=f"Target of commands (profile {place.profile})" if place.profile else "Target of commands",
    )
    table(
        ("variable", "value", "source", "default", "description"),
        (
            (row.variable, row.value, row.source, row.default if row.source != "default" else "same", row.help)
            for row in rows
        ),
        title="Settings (environment)",
    )
    table(
        ("limit", "default", "from", "to", "outcome", "description"),
        (each.values() for each in limits),
        title="Limits of one attempt (tenants and scripts can only lower them)",
    )
