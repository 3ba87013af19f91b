"""What every file keeps to: a sentence on its package, no leftovers, reasons for exceptions, public interfaces in tests."""

import ast
import re
from pathlib import Path

import pytest
from tests.longest_first import LONGEST_FIRST

pytestmark = pytest.mark.usefixtures("uncollected")

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("engine", "sandbox", "stdlib", "escape", "bench")
SOURCES = sorted(path for package in (*PACKAGES, "tests") for path in (ROOT / package).rglob("*.py"))


#: Exceptions and leftovers, which few files have.
MARKED = re.compile(r"# (?:noqa|type: ignore)|\b(?:TODO|FIXME|XXX|HACK)\b")


def test_files_are_tidy() -> None:
    for path in SOURCES:
        where = path.relative_to(ROOT)
        text = path.read_text()
        assert path.stem not in {"utils", "common", "helpers", "manager", "misc"}, f"{where}: name the thing in it"
        if path.name == "test_tidy.py" or not MARKED.search(text):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if re.search(r"# (noqa|type: ignore)", line):
                reasoned = re.search(r"# noqa: [A-Z0-9, ]+ - \w|# type: ignore\[[\w, -]+\]  # \w", line)
                assert reasoned, f"{where}:{number}: an exception without its reason"
            assert not re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line), f"{where}:{number}: a leftover"


@pytest.mark.parametrize(
    "package", [path.parent for name in PACKAGES for path in (ROOT / name).rglob("__init__.py")], ids=str
)
def test_package_says_what_it_is(package: Path) -> None:
    first = (package / "__init__.py").read_text().splitlines()[0]
    assert first.startswith('"""'), "one sentence at the top: what it is and what it must never do"
    assert len(first) > 20


def test_every_folder_is_a_package() -> None:
    for name in PACKAGES:
        for path in (each for each in (ROOT / name).rglob("*.py") if each.parent.name != "developer"):
            assert (path.parent / "__init__.py").exists(), f"{path.parent} has no __init__.py"


def test_what_takes_longest_is_there() -> None:
    assert [name for name in LONGEST_FIRST if not (ROOT / "tests" / name).exists()] == []


#: Underscored names that libraries document.
DOCUMENTED = {"_asdict", "_replace", "_fields", "_make", "_mapping", "_exit"}
#: Underscored names of the standard library's, for which it has no public ones: an event loop of one's own, and what outlives a pool.
STANDARD_LIBRARY = {
    *("_get_running_loop", "_set_running_loop", "_run", "_context", "_log_destroy_pending"),
    *("_resource_tracker", "_stop"),
}


def test_tests_use_the_public_interface() -> None:
    tests = [path for path in SOURCES if path.is_relative_to(ROOT / "tests")]
    found = {str(path.relative_to(ROOT)): uses for path in tests if (uses := private_accesses(path.read_text()))}
    assert found == {}


def test_test_modules_are_imported_by_none() -> None:
    """Helpers have modules of their own, so that a test can move without its neighbours; and benchmarks are no helpers."""
    direct = re.compile(r"^\s*(?:from|import) (?:tests\.\S*\btest_|bench\b)", re.MULTILINE)
    among = re.compile(r"^\s*from tests\S* import (.*)$", re.MULTILINE)
    modules = {path.stem for path in SOURCES if path.stem.startswith("test_")}
    sources = {str(path.relative_to(ROOT)): path.read_text() for path in SOURCES if path.name != "test_tidy.py"}
    imported = {name: set(re.findall(r"\w+", " ".join(among.findall(text)))) for name, text in sources.items()}
    assert [name for name, text in sources.items() if direct.search(text) or imported[name] & modules] == []


def test_a_private_access_is_found() -> None:
    assert private_accesses("engine._pool") == ["line 1: ._pool"]
    assert private_accesses("from lodger.engine.core.ids import _new") == ["line 1: import _new"]
    assert private_accesses("if True:\n    from lodger.engine.core.ids import (\n  Ids, _MAX)") == [
        "line 2: import _MAX"
    ]
    assert private_accesses("ids._MAX") == ["line 1: ._MAX"]
    assert private_accesses("self._x\nsuper()._x\nrow._asdict()\nengine.__class__") == []


#: What a module with a private access has: parsing it takes a hundred times as long.
SUSPECT = re.compile(r"(?<!\bself)(?<!\bcls)\._(?!_)|^\s*from lodger\S* import (?:\([^)]*|.*)\b_(?!_)", re.MULTILINE)


def private_accesses(source: str) -> list[str]:
    """Attributes and imports with a leading underscore, apart from a test's own, its base class's and documented ones.

    Its own are ``self._x``, ``cls._x``, and ``Name._x`` of a class in the same module; its base class's are ``super()._x``.
    """
    if not SUSPECT.search(source):
        return []
    tree = ast.parse(source)
    own_names = {"self", "cls"} | {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _private(node.attr):
            of = node.value.func if isinstance(node.value, ast.Call) else node.value
            own = isinstance(of, ast.Name) and of.id in own_names | {"super"}
            if not own and node.attr not in DOCUMENTED | STANDARD_LIBRARY:
                found.append(f"line {node.lineno}: .{node.attr}")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lodger"):
            found += [f"line {node.lineno}: import {each.name}" for each in node.names if _private(each.name)]
    return found


def _private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def test_nothing_of_the_workplace() -> None:
    words = re.compile(r"/work/|/tmp/v\b|/\.library|farm-|/opt/(pypi|wheels)")
    for path in [*SOURCES, *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "pyproject.toml"]:
        if path.name != "test_tidy.py":
            assert not words.search(path.read_text()), f"{path} names a place that only this machine has"
