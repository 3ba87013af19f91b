"""The settings as rows, for ``lodger config show`` and the documentation, and the way to load them with errors that teach."""

import logging
import os
import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from lodger.engine.core.errors import InputError
from lodger.engine.core.settings import Settings

PREFIX = "LODGER_"
#: Variables of the command line, which are no settings of an engine.
OF_THE_COMMAND_LINE = frozenset({"PROFILE", "PROFILES", "READY_FD", "SERVER", "TOKEN", "TRACEBACK"})
#: What Kubernetes sets for a service of that name.
_OF_A_SERVICE = re.compile(r"_SERVICE_(HOST|PORT)|_PORT_\d+_(TCP|UDP)|PORT$", re.ASCII)
_journal = logging.getLogger("lodger")
_told: set[str] = set()


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
    for name, nearest in unknown_variables():
        if name not in _told:
            _told.add(name)
            meant = f"; did you mean {nearest}?" if nearest else ""
            _journal.warning("the environment variable %s is no setting and changes nothing%s", name, meant)
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


def unknown_variables() -> list[tuple[str, str | None]]:
    """Environment variables that begin as settings do and are none, each with the nearest setting, or None when none is near."""
    known = {name.upper() for name in Settings.model_fields} | OF_THE_COMMAND_LINE
    found = []
    for variable, value in sorted(os.environ.items()):
        name = variable.upper().removeprefix(PREFIX)
        if not variable.upper().startswith(PREFIX) or name in known:
            continue
        if _OF_A_SERVICE.search(name) and ("://" in value or "SERVICE" in name):
            continue
        near = get_close_matches(name, known, 1)
        found.append((variable, PREFIX + near[0] if near else None))
    return found


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
