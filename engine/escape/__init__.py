"""Attacks on the engine's own walls, for ``lodger escape``: data of another tenant, mail, requests, rules. A worker never imports it.

They run in the same suite as the attacks on the sandbox (:mod:`lodger.sandbox.escape`), which knows nothing of the engine.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lodger.sandbox.escape.case import Case

_MODULES = ("tenants", "statements", "letters", "requests", "rules")


def all_cases() -> "tuple[Case, ...]":
    """Give every case, ordered by class and name."""
    found: list[Case] = []
    for name in _MODULES:
        found += import_module(f"{__name__}.{name}").CASES
    return tuple(sorted(found, key=lambda case: (case.letter, case.number, case.id)))
