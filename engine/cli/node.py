"""``lodger node``: the engine's processes at work."""

import typer

from lodger.engine.cli.of_verb import Command, add

app = typer.Typer(name="node", help="The engine's processes at work.", no_args_is_help=True)


@app.callback()
def _noun() -> None:
    """The engine's processes at work."""


add(app, Command("list", "nodes.list", wrap="nodes"))
