"""SQL in files: the statements that stand in a ``.sql`` file beside a module, each below a line ``-- name: NAME``."""

import re
from pathlib import Path

from sqlalchemy import TextClause, text


def statements_of(module: str) -> dict[str, str]:
    """Return the statements of the module with this file, by name."""
    whole = Path(module).with_suffix(".sql").read_text("utf-8")
    _, *parts = re.split(r"^-- name: (.+)\n", whole, flags=re.MULTILINE)
    return {name: statement.strip() for name, statement in zip(parts[::2], parts[1::2], strict=True)}


def clauses_of(module: str, **names: str) -> dict[str, TextClause]:
    """Return the statements of the module with this file for SQLAlchemy, with ``names`` in place of the braces around them."""
    return {name: text(_filled(each, names)) for name, each in statements_of(module).items()}


def _filled(statement: str, names: dict[str, str]) -> str:
    """Return a statement with names in place of the braces around them; other braces stay."""
    for name, value in names.items():
        statement = statement.replace(f"{{{name}}}", value)
    return statement
