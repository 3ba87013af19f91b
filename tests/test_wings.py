"""Each wing can be removed: its folder, the folder of its tests, and the lines of the list that name it.

No module outside a wing's folders names it, other wings included. In a copy without any wing, the packages import, an engine opens
a ledger, types are right and the tests are collected; with ``LODGER_WINGS=all`` also in copies without each wing alone.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FEATURES = ROOT / "engine" / "features"
WINGS = sorted(path.parent.name for path in FEATURES.glob("*/__init__.py"))
#: The wings that a wing builds on: it is removed with them. The contract of independence names the same ties.
BUILDS_ON = {"ledgers": ["archive"], "shadows": ["replays"]}
TAKEN_OUT = [WINGS, *([wing] for wing in WINGS if os.environ.get("LODGER_WINGS") == "all")]
_CACHES = shutil.ignore_patterns(".venv", ".git", ".mypy_cache", ".ruff_cache", ".hypothesis", "npm")
COLLECT_AND_IMPORT = """
import importlib, pkgutil, sys
import pytest

collected = pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"])
import lodger.engine, lodger.sandbox, lodger.stdlib, lodger.escape

for package in (lodger.engine, lodger.sandbox, lodger.stdlib, lodger.escape):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith(("__main__", ".env")) and ".versions." not in module.name:
            importlib.import_module(module.name)
from lodger.engine.sync import Engine

with Engine.open(sys.argv[1]) as engine:
    engine.tenants.create("acme")
assert lodger.engine.__file__.startswith(sys.argv[2]), lodger.engine.__file__
sys.exit(collected)
"""


def copy_without(folder: Path, *wings: str) -> Path:
    """Return a copy of the tree without these wings."""
    copy = folder / "tree"
    shutil.copytree(ROOT, copy, symlinks=True, ignore=_CACHES)
    (copy / "stdlib" / "npm").symlink_to(ROOT / "stdlib" / "npm")
    gone = {*wings, *(each for each, needed in BUILDS_ON.items() if {*needed} & {*wings})}
    for wing in gone:
        shutil.rmtree(copy / "engine" / "features" / wing)
        shutil.rmtree(copy / "tests" / "features" / wing)
    module = copy / "engine" / "features" / "__init__.py"
    named = re.compile(rf"\b({'|'.join(gone)})\b")
    module.write_text("".join(line for line in module.read_text().splitlines(keepends=True) if not named.search(line)))
    return copy


def run(copy: Path, *command: str) -> None:
    """Run a Python command in the copy, with its packages."""
    env = os.environ | {"PYTHONPATH": str(copy)}
    done = subprocess.run([sys.executable, *command], cwd=copy, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


def check_types(copy: Path) -> None:
    if (ROOT / ".mypy_cache").exists():
        of_users = shutil.ignore_patterns("of_users")  # tests/test_front_door.py
        shutil.copytree(ROOT / ".mypy_cache", copy / ".mypy_cache", dirs_exist_ok=True, ignore=of_users)
        run(copy, "-m", "mypy")
    else:
        run(copy, "-m", "mypy", "--no-incremental")


def test_no_wing_is_named_outside() -> None:
    named = re.compile(rf"\bfeatures(?:\.| import )({'|'.join(WINGS)})\b")
    for folder in ("engine", "sandbox", "stdlib", "escape", "bench", "tests", "examples"):
        for path in (ROOT / folder).rglob("*.py"):
            place = path.relative_to(ROOT).parts
            own = place[2] if place[1] == "features" and len(place) > 3 else ""
            if path != FEATURES / "__init__.py":
                assert set(named.findall(path.read_text())) <= {own, *BUILDS_ON.get(own, ())}, path


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("wings", TAKEN_OUT, ids=",".join)
def test_a_tree_without_wings_is_whole(wings: list[str], tmp_path: Path) -> None:
    copy = copy_without(tmp_path, *wings)
    run(copy, "-c", COLLECT_AND_IMPORT, str(copy / "ledger.db"), str(copy))
    check_types(copy)
