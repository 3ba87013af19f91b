"""The table of settings, as ``lodger config show`` and the documentation have it: every value as text, secrets masked."""

import ast
import inspect
import os
from dataclasses import dataclass
from itertools import pairwise
from urllib.parse import urlsplit

from lodger.engine.core.settings import PREFIX, Settings


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table of settings, every value as text; ``source`` is ``default``, ``environment`` or ``given``."""

    name: str
    variable: str
    unit: str
    value: str
    default: str
    source: str
    help: str


_UNITS = {"_per_s": "per second", "_s": "seconds", "_ms": "milliseconds", "_bytes": "bytes", "_dir": "path"}


def table(settings: Settings) -> list[Row]:
    """Every setting as a row, in the order of declaration."""
    rows, helps = [], _helps()
    for name, field in Settings.model_fields.items():
        default = field.get_default(call_default_factory=True, validated_data={})
        unit = next((unit for suffix, unit in _UNITS.items() if name.endswith(suffix)), "")
        value = getattr(settings, name)
        rows.append(
            Row(
                name=name,
                variable=PREFIX + name.upper(),
                unit=unit,
                value=_shown(name, value),
                default=_shown(name, default),
                source=_source(name, settings, is_set=value != default),
                help=helps[name],
            )
        )
    return rows


def _helps() -> dict[str, str]:
    """Return the text below each setting in the source of the class, by the setting's name."""
    (settings,) = ast.parse(inspect.getsource(Settings)).body
    assert isinstance(settings, ast.ClassDef)
    return {
        ast.unparse(above.target): " ".join(str(below.value.value).split())
        for above, below in pairwise(settings.body)
        if isinstance(above, ast.AnnAssign) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
    }


def _source(name: str, settings: Settings, *, is_set: bool) -> str:
    """Return where the value of a setting comes from: environment, given or default."""
    # The names of environment variables are read without regard to their case.
    if name in settings.model_fields_set and PREFIX + name.upper() in map(str.upper, os.environ):
        return "environment"
    return "given" if is_set else "default"


def _shown(name: str, value: object) -> str:
    """Return the value of a setting without passwords."""
    if name == "heartbeat_url" and value is not None:
        # The path of such a URL is a password: a request to it keeps the alarm silent.
        parts = urlsplit(str(value))
        return f"{parts.scheme}://{parts.hostname or ''}/***"
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
