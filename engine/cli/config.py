"""``lodger config show``: every setting with its value, unit, default and source."""

import typer

from lodger.engine.cli.answer import AsJson, table, write_json

app = typer.Typer(name="config", help="What the operator can set.", no_args_is_help=True)


@app.callback()
def _noun() -> None:
    """What the operator can set."""


@app.command("show")
def show(as_json: AsJson = False) -> None:
    """List every setting: value, unit, default, where it came from, and what it does."""
    from lodger.engine.settings_table import load
    from lodger.engine.settings_table import table as rows_of
    from lodger.sandbox.limits import LIMITS

    rows = rows_of(load())
    limits = [
        {
            "name": spec.name,
            "default": spec.default,
            "minimum": spec.minimum,
            "maximum": spec.maximum,
            "outcome": spec.outcome.value,
            "help": spec.help,
        }
        for spec in LIMITS
    ]
    if as_json:
        write_json({"settings": [row.as_dict() for row in rows], "limits": limits})
        return
    table(
        ("variable", "value", "default", "what"),
        ((row.variable, row.value, row.default if row.source != "default" else "same", row.help) for row in rows),
        title="Settings (environment)",
    )
    table(
        ("limit", "default", "from", "to", "outcome", "what"),
        (
            (each["name"], each["default"], each["minimum"], each["maximum"], each["outcome"], each["help"])
            for each in limits
        ),
        title="Limits of one attempt (tenant and script may only lower them)",
    )
