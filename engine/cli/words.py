"""Arguments that many verbs share, with one description each."""

from typing import Annotated

import typer

TenantId = Annotated[str, typer.Argument(metavar="TENANT", help="The tenant's id.")]
ActionId = Annotated[str, typer.Argument(metavar="ACTION", help="The action's id.")]
ScriptName = Annotated[str, typer.Argument(metavar="SCRIPT", help="The script's name.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
