"""Cases that a run of whole files leaves out, always the same ones; every test keeps one.

* ``quickjs-native`` is optional, and no tenant can choose it: one case in ten is everyday, with ``LODGER_RUNTIMES=all`` each.
* A table of cases that runs on both databases is whole on SQLite, and a quarter of it on PostgreSQL, as of the files whose promises
  are decisions of the engine; whole there, too, with ``LODGER_DATABASES=all``.
"""

import os
import zlib
from pathlib import Path

import pytest

from lodger.sandbox.runtimes.native_libraries import has_native

NATIVE = "quickjs-native"
ONE_IN, ONE_IN_ON_POSTGRESQL = 10, 4
#: Files that test what the engine decides, by statements that tests of the databases send as well.
DECISIONS = {
    "store": (
        "activity", "audit", "budgets", "cancel_other", "claims", "conduct", "day_budgets", "every_node", "grants", "inputs", "labels",
        "last_runs", "later_runs", "leases", "lost_runs", "mailer", "narrowing", "pausing", "placement", "platform_scripts",
        "real_rules", "retries", "run_history", "schedules", "sealed_budgets", "seals", "searches", "secrets", "steps", "stops", "tick",
        "versions", "wasm_scripts", "watching", "what_if", "wrong_clock",
    ),
    "unit/capabilities": ("attempt", "bulk", "finding", "grants", "kv", "related"),
    "features/alerts": ("rules",), "features/archive": ("archives", "bent_archives", "renamed"), "features/backfills": ("backfills",),
    "features/batches": ("batches",), "features/connections": ("connections",), "features/documents": ("documents",),
    "features/locks": ("locks",), "features/plans": ("plans",),
}  # fmt: skip
_DECIDED = {Path(__file__).parent / folder / f"test_{name}.py" for folder, names in DECISIONS.items() for name in names}


def runs_all() -> bool:
    """Whether every case of the optional runtime is wanted: ``LODGER_RUNTIMES=all``."""
    return os.environ.get("LODGER_RUNTIMES") == "all"


def left_out(items: list[pytest.Item]) -> set[pytest.Item]:
    """Return the cases that a run leaves out; those of a runtime that is not installed are marked as skipped."""
    found = _on_postgresql(items) if os.environ.get("LODGER_DATABASES") != "all" else set()
    native = [item for item in items if NATIVE in item.name]
    if not has_native():
        for item in native:
            item.add_marker(
                pytest.mark.skip(f"NOT TESTED on {NATIVE}: it is not installed (pip install 'lodger[native]')")
            )
    elif not runs_all():
        found |= {item for item in native if _turn(item, ONE_IN)}
    return found


def _on_postgresql(items: list[pytest.Item]) -> set[pytest.Item]:
    """Return the tests on PostgreSQL that are left out: their twins on SQLite are run, and here the first of each function, or of a
    file of decisions, and a share of the rest."""
    found, names, seen = set(), {item.nodeid for item in items}, set()
    for item in items:
        given = getattr(getattr(item, "callspec", None), "params", {})
        if (
            given.get("kind") != "postgresql"
            or item.nodeid.replace("postgresql", "sqlite") not in names
            or (len(given) < 2 and item.path not in _DECIDED)
        ):
            continue
        test = item.nodeid.partition("[")[0] if len(given) > 1 else str(item.path)
        if test in seen and _turn(item, ONE_IN_ON_POSTGRESQL):
            found.add(item)
        seen.add(test)
    return found


def _turn(item: pytest.Item, one_in: int) -> int:
    """Return a number below ``one_in`` that a test always has; tests with 0 are run."""
    return zlib.crc32(item.nodeid.encode()) % one_in
