"""The page on security agrees with the installation: pinned engine versions, an explanation of every wall, existing tests for promises."""

import re
import tomllib
from datetime import date
from importlib.metadata import version
from pathlib import Path

from lodger.escape.cases import all_cases
from lodger.escape.catalogue import CLASSES, letter
from lodger.sandbox.doctor import WALLS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()
#: Names of the kernel's walls on the page.
CALLED = {
    "rlimits": "rlimits",
    "seccomp": "seccomp",
    "landlock": "Landlock",
    "namespaces": "namespaces",
    "root": "empty root",
    "uid": "uid of its own",
    "no_new_privs": "no_new_privs",
    "undumpable": "undumpable",
    "death_signal": "death signal",
    "oom": "OOM score",
    "cpu_timer": "CPU timer",
    "cgroup": "control group",
}


def section(title: str) -> str:
    """Return the text of a section of the page."""
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_the_engines_on_the_page_are_the_pinned_and_the_installed_ones() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = dict(
        re.findall(
            r"([a-z-]+)==([0-9.]+)", " ".join([*project["dependencies"], *project["optional-dependencies"]["native"]])
        )
    )
    engines = section("Engine versions")
    for name in ("wasmtime", "quickjs-rs", "quickjs-ng"):
        assert version(name) == pinned[name], "what stands in the wall is pinned exactly"
        assert pinned[name] in engines, f"{name} on the page is another one"


def test_the_table_of_known_errors_has_its_date_and_names_cases_that_exist() -> None:
    engines = section("Engine versions")
    reported = date.fromisoformat(re.search(r"State of\s+(\d{4}-\d\d-\d\d)", engines)[1])
    assert reported >= date(2026, 11, 20)
    ids = {case.id for case in all_cases()}
    for prefix in re.findall(r"`([A-I]\d+-)…`", engines):
        assert any(case.startswith(prefix) for case in ids), prefix


def test_every_wall_of_the_kernel_is_explained() -> None:
    walls = section("Walls, and what each one stops")
    assert {wall.name for wall in WALLS} == set(CALLED)
    for wall in WALLS:
        assert CALLED[wall.name] in walls, wall.name


def test_a_promise_names_classes_that_are_attacked_and_tests_that_exist() -> None:
    promises = section("Promises")
    attacked = {case.number for case in all_cases()}
    named = [(text, int(number)) for text, number in re.findall(r"\b([A-I])(\d+)\b", promises)]
    assert len(named) >= 15
    for chapter, number in named:
        assert number in CLASSES
        assert letter(number) == chapter
        assert number in attacked, f"{chapter}{number} is promised and not attacked"
    for place in re.findall(r"`(tests/[a-z_/]+(?:\.py)?)`", PAGE):
        assert (ROOT / place).exists(), place
