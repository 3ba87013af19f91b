"""Runs the developers' commands (``python -m tests.…``) with the exit codes and error objects of ``lodger``."""

import sys

import typer

from lodger.engine.core.errors import Usage
from lodger.engine.output.failure import tell


def run(app: typer.Typer, name: str, arguments: list[str]) -> int:
    """Carry out one command line and return its exit code."""
    as_json = "--json" in arguments
    try:
        try:
            ended = app(args=arguments, prog_name=name, standalone_mode=not as_json)
        finally:
            sys.stdout.flush()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception as error:
        usage = hasattr(error, "format_message")
        return tell(Usage("usage", error.format_message()) if usage else error, as_json=as_json)
    return ended if isinstance(ended, int) else 0
