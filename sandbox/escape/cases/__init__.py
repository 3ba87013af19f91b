"""The attacks, one module for each part of the catalogue. A module's ``CASES`` is all that is taken from it."""

from importlib import import_module
from pkgutil import iter_modules

from lodger.sandbox.escape.case import Case


def all_cases() -> tuple[Case, ...]:
    """Give every case, ordered by class and name. Raises ValueError when two are the same attack."""
    found: list[Case] = []
    for module in iter_modules(__path__):
        found += import_module(f"{__name__}.{module.name}").CASES
    seen: dict[object, Case] = {}
    for case in found:
        for mark in (case.id, case.triple):
            if mark in seen:
                raise ValueError(f"{seen[mark].id} and {case.id} are one attack: {mark}")
            seen[mark] = case
    return tuple(sorted(found, key=lambda case: (case.letter, case.number, case.id)))
