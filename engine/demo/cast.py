"""Schedules of the demo: scripts, rules and policies of both shops, as demo.toml has them."""

from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from lodger.engine.demo.shops import DATA

#: For how long the demo's engine was off before its first second.
OFF_DAYS = 100
#: How long after the start the one-off comes.
ONCE_AFTER_S = 8


@dataclass(frozen=True, slots=True)
class Part:
    """One schedule of the demo.

    Attributes:
        rule: an RRULE; None for the one-off, which comes :data:`ONCE_AFTER_S` after the start.
        missed: policy for slots that were due while the engine was off.
        limits: the script's own, lower than the shop's.
    """

    shop: str
    name: str
    script: str
    missed: str
    rule: str | None = None
    tz: str = "UTC"
    params: dict[str, Any] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)

    def source(self) -> str:
        """Return the script's text."""
        return (files("lodger.engine.demo") / "scripts" / f"{self.script}.js").read_text(encoding="utf-8")


CAST = tuple(Part(**each) for each in DATA["schedules"])
