"""``lodger version``: Lodger's version and those of what stands in the wall."""

import platform
import sqlite3
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed

import typer

from lodger.engine.cli.answer import AsJson, say, write_json
from lodger.engine.core.version import VERSION

_PARTS = ("wasmtime", "quickjs-rs", "quickjs-ng", "SQLAlchemy", "tzdata")


def show(asked: bool) -> None:
    """Answer ``--version`` and end."""
    if asked:
        say(f"lodger {VERSION}")
        raise typer.Exit


def version(as_json: AsJson = False) -> None:
    """Show the versions of Lodger and of the parts that matter."""
    parts = {"lodger": VERSION, "python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    for name in _PARTS:
        try:
            parts[name] = installed(name)
        except PackageNotFoundError:
            parts[name] = "missing"
    if as_json:
        write_json(parts)
    else:
        for name, text in parts.items():
            say(f"{name:12} {text}")
