"""SQL in files: the statements that stand in a ``.sql`` file beside a module, each below a line ``-- name: NAME``."""

import re
from pathlib import Path


def statements_of(module: str) -> dict[str, str]:
    """Return the statements of the module with this file, by name."""
    text = Path(module).with_suffix(".sql").read_text("utf-8")
    _, *parts = re.split(r"^-- name: (.+)\n", text, flags=re.MULTILINE)
    return {name: statement.strip() for name, statement in zip(parts[::2], parts[1::2], strict=True)}
