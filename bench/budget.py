"""What is promised of a measurement, and by how much it is missed."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Budget:
    """One promise.

    Attributes:
        peer: what it is measured beside; "" for a number that is promised by itself.
        bound: the promised ratio; ``at_least`` says in which direction.
        ratio: the measured one, None if its peer is not installed.
    """

    name: str
    peer: str
    bound: float
    at_least: bool
    ratio: float | None

    @property
    def missed(self) -> float | None:
        """By which share of the bound it is missed, or by which number if the bound is 0; 0 if it is kept, None if not measured."""
        if self.ratio is None:
            return None
        beyond = self.bound - self.ratio if self.at_least else self.ratio - self.bound
        return max(0.0, beyond / (self.bound or 1.0))

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON output."""
        return asdict(self) | {"missed": self.missed}

    def line(self) -> str:
        """Return the promise, what was measured, and whether it is kept."""
        verdict = "" if self.missed is None else f"missed by {self.missed:.0%}" if self.missed else "kept"
        sign = "at least" if self.at_least else "at most"
        unit = "x" if self.peer else " "
        found = "no peer here" if self.ratio is None else f"{self.ratio:9.3g} {unit}  "
        return f"{self.name:60} {sign} {self.bound:4g} {unit} {self.peer:18} {found:12} {verdict}"
