"""The settings as rows, for ``lodger config show`` and the documentation, and the way to load them with errors that teach."""

import os
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from lodger.engine.core.errors import InputError
from lodger.engine.core.settings import Settings

PREFIX = "LODGER_"


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

    def as_dict(self) -> dict[str, str]:
        """Give the row for ``--json``."""
        return {name: getattr(self, name) for name in self.__slots__}


_UNITS = {"_s": "seconds", "_ms": "milliseconds", "_bytes": "bytes", "_dir": "path"}


def load(**overrides: Any) -> Settings:
    """Read the settings; ``overrides`` (by field name) win over the environment.

    Raises:
        InputError: ``setting_invalid``, naming the variable.
    """
    try:
        return Settings(**{name: value for name, value in overrides.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]).lower()
        name = name.removeprefix(PREFIX.lower())
        raise InputError(
            "setting_invalid",
            f"setting {PREFIX}{name.upper()} cannot be {first['input']!r}",
            why=first["msg"],
            fix="lodger config show lists every setting with its unit and default",
            setting=name,
        ) from None


def table(settings: Settings) -> list[Row]:
    """Every setting as a row, in the order of declaration."""
    rows = []
    for name, field in Settings.model_fields.items():
        default = field.get_default(call_default_factory=True, validated_data={})
        unit = next((unit for suffix, unit in _UNITS.items() if name.endswith(suffix)), "")
        value = getattr(settings, name)
        rows.append(
            Row(
                name=name,
                variable=PREFIX + name.upper(),
                unit=unit,
                value=_shown(value),
                default=_shown(default),
                source=_source(PREFIX + name.upper(), told=value != default),
                help=field.description or "",
            )
        )
    return rows


def _source(variable: str, *, told: bool) -> str:
    # The names of environment variables are read without regard to their case.
    if any(name.upper() == variable for name in os.environ):
        return "environment"
    return "given" if told else "default"


def _shown(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
