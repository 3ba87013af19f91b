"""``lodger errors``: what an error code means, and what to do."""

from typing import Annotated

import typer

from lodger.engine.cli.output.answer import AsJson, say, table, write_json
from lodger.engine.cli.output.failure import Usage


def errors(
    code: Annotated[str | None, typer.Argument(help="The code, outcome or reason; all of them when left out.")] = None,
    as_json: AsJson = False,
) -> None:
    """Explain an error code, the outcome of an attempt or the reason of an action, or list all of them."""
    from lodger.engine.cli import error_catalogue

    found = [each for each in error_catalogue.table() if code in {None, each.code}]
    if not found:
        near = [
            each.code
            for each in error_catalogue.table()
            if code is not None and (code in each.code or each.code in code)
        ]
        raise Usage(
            "code_unknown", f"there is no error {code!r}", fix=", ".join(near[:8]) or "lodger errors lists them"
        )
    if as_json:
        write_json({"errors": found} if code is None else found[0])
    elif code is None:
        table(("code", "met", "what happened"), ((each.code, ", ".join(each.met), each.said[0]) for each in found))
    else:
        say(f"{code} ({', '.join(found[0].met)})")
        for what in found[0].said:
            say(f"  {what}")
        for fix in found[0].fixes:
            say(f"  to do: {fix}")
