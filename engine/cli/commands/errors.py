"""``lodger errors``: the meaning of codes, and how to fix them."""

from typing import Annotated

import typer

from lodger.engine.core.errors import Usage
from lodger.engine.output.result_output import say, table, write_result


def errors(
    code: Annotated[str | None, typer.Argument(help="Code of an error, outcome or reason. Default: list all.")] = None,
) -> None:
    """Explain an error, an outcome or a reason, or list all of them."""
    from lodger.engine.core.error_table import error_table, similar_codes
    from lodger.sandbox.limits import LIMITS

    rows = error_table()
    if code is None:
        write_result({"errors": list(rows.values())})
        table(("code", "met", "what happened"), ((row.code, ", ".join(row.met), row.what) for row in rows.values()))
        return
    row = rows.get(code)
    if row is None:
        raise Usage("code_unknown", given=code, near=", ".join(similar_codes(code)[:8]))
    write_result(row)
    say(f"{code} ({', '.join(row.met)})")
    for each in (row, *row.causes):
        say(f"  what happened: {each.what}")
        if each.why:
            say(f"  why: {each.why}")
        if each is row:
            for spec in LIMITS:
                if str(spec.outcome) == code:
                    say(f"  limit: {spec.name} ({spec.help}; default {spec.default})")
        if each.fix:
            say(f"  fix: {each.fix}")
