"""The attack cases as tables: JavaScript, WebAssembly, and the engine behind the sandbox.

Each module's ``CASES`` is used, and the tables of each file that no module reads.
"""

from importlib import import_module
from pathlib import Path

from lodger.escape.attack_files import cases_of
from lodger.escape.case import Case

#: Folders in the order of execution.
PARTS = ("scripts", "commands", "tenants")


def all_cases(*parts: str) -> tuple[Case, ...]:
    """Return the cases of the given parts, or of all, ordered by class and name.

    Raises:
        ValueError: two cases have the same class, wall and mechanism.
    """
    seen: dict[object, Case] = {}
    sandbox, engine = list[Case](), list[Case]()
    for part in parts or PARTS:
        for place in sorted((Path(__file__).parent / part).glob("[!_]*.*")):
            if place.suffix == ".py":
                found = getattr(import_module(f"{__name__}.{part}.{place.stem}"), "CASES", ())
            else:
                found = () if place.with_suffix(".py").exists() else cases_of(str(place), place.suffix)
            for case in found:
                for mark in (case.id, case.triple):
                    if mark in seen:
                        raise ValueError(f"{seen[mark].id} and {case.id} are one attack: {mark}")
                    seen[mark] = case
                (engine if part == "tenants" else sandbox).append(case)
    return (*sorted(sandbox, key=_order), *sorted(engine, key=_order))


def _order(case: Case) -> tuple[str, int, str]:
    """Return the sort key of a case."""
    return case.letter, case.number, case.id
