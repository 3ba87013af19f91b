"""What an operator can set: one typed table. ``lodger config show`` and the documentation are read from it.

Every setting has an environment variable ``LODGER_`` + its name in capitals; lists are JSON. Units are in the names.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from lodger.engine.errors import InputError

PREFIX = "LODGER_"


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lodger"


class Settings(BaseSettings):
    """The settings of one node, from the environment, with defaults that run."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", frozen=True)

    database: Annotated[
        str, Field(description="where the ledger is: a SQLite file's path or a SQLAlchemy URL", examples=["ledger.db"])
    ] = "lodger.db"
    cache_dir: Annotated[
        Path, Field(default_factory=_cache, description="where the compiled guest is kept between starts")
    ]
    slots: Annotated[
        int, Field(default_factory=_cores, ge=1, le=1024, description="attempts that this node runs at once")
    ]
    warm_workers: Annotated[
        int,
        Field(
            default_factory=lambda: 2 * _cores(),
            ge=1,
            le=1024,
            description="locked workers kept waiting for an attempt, forked ahead of need",
        ),
    ]
    look_ahead_s: Annotated[
        float, Field(gt=0, le=60, description="how far ahead the node reads which clocks come due, seconds")
    ] = 1.0
    missed_after_s: Annotated[
        float,
        Field(ge=0, le=86_400, description="a tick that comes this long after the slot calls the slot missed, seconds"),
    ] = 10.0
    lease_s: Annotated[
        float,
        Field(ge=2, le=3600, description="how long a node may be silent before others take its attempts, seconds"),
    ] = 8.0
    min_interval_s: Annotated[
        int, Field(ge=1, le=86_400, description="least distance between two slots of a tenant's schedule, seconds")
    ] = 60
    smtp_host: Annotated[
        str, Field(description="SMTP server that the outbox delivers to; empty keeps mails in the outbox")
    ] = ""
    smtp_port: Annotated[int, Field(ge=1, le=65_535, description="its port")] = 25
    smtp_user: Annotated[str, Field(description="its user; empty for none")] = ""
    smtp_password: Annotated[SecretStr, Field(description="its password")] = SecretStr("")
    smtp_starttls: Annotated[bool, Field(description="whether to insist on STARTTLS")] = False
    mail_from: Annotated[str, Field(description="sender of scripts' mails, when the tenant has no own")] = (
        "scripts@localhost"
    )


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table of settings, every value as text; ``source`` is ``default`` or ``environment``."""

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


_UNITS = {"_s": "seconds", "_ms": "milliseconds", "_bytes": "bytes", "_port": "port", "_dir": "path"}


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
    """Every setting as a row, in the order of declaration; secrets are masked."""
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
                source="default" if value == default else "environment",
                help=field.description or "",
            )
        )
    return rows


def _shown(value: object) -> str:
    if isinstance(value, SecretStr):
        return "(set)" if value.get_secret_value() else ""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
