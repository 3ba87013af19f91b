"""The table of codes holds what the sources raise, and nothing else; the page and the command come from it."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from tests.e2e.command import inside

from lodger.engine.core.error_table import error_table, page
from lodger.sandbox.outcome import Outcome

pytestmark = pytest.mark.usefixtures("uncollected")

ROOT = Path(__file__).resolve().parents[2]
CODE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", re.ASCII)
#: Exceptions and functions that take a code which is not shown as it is.
INTERNAL = {"JsonRefused"}
#: Given to a helper that puts ``expose_`` before them.
PARTS = {"feed", "source", "name", "ledger", "tenant", "computed", "write_only", "insert", "column", "key", "type"}
#: Folders that no user's error comes from.
LEFT_OUT = {"escape", "sim", "bench", "testing"}


@cache
def trees() -> tuple[ast.Module, ...]:
    """Every module of the engine and the sandbox."""
    return tuple(
        ast.parse(path.read_text())
        for package in ("engine", "sandbox")
        for path in sorted((ROOT / package).rglob("*.py"))
        if not LEFT_OUT & set(path.relative_to(ROOT).parts)
    )


@cache
def shared_takers() -> dict[str, int]:
    """Callables by name with the position at which they take a code: a parameter ``code``, inherited by subclasses."""
    found: dict[str, int] = {}
    bases: dict[str, list[str]] = {}
    for tree in trees():
        found |= {name: position for name, position in takers(tree).items() if not name.startswith("_")}
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                bases[node.name] = [base.id for base in node.bases if isinstance(base, ast.Name)]
    for _ in bases:
        for name, parents in bases.items():
            for parent in parents:
                if parent in found:
                    found.setdefault(name, found[parent])
    return {name: position for name, position in found.items() if name not in INTERNAL}


def takers(tree: ast.Module) -> dict[str, int]:
    """Classes and functions of one module that take a code and a message, with the position of the code."""
    found = {}
    for node in ast.walk(tree):
        functions = [node] if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else []
        if isinstance(node, ast.ClassDef):
            functions = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
        for function in functions:
            names = [each.arg for each in function.args.args if each.arg not in {"self", "cls"}]
            if "code" in names and {"what", "message"} & set(names):
                found[node.name] = names.index("code")
    return found


@cache
def raised() -> set[str]:
    """Codes that are written where an error is made; ``*`` stands for what is put in at run time."""
    found: set[str] = set()
    for tree in trees():
        known = shared_takers() | takers(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                if name in known and name not in INTERNAL:
                    given = [each.value for each in node.keywords if each.arg == "code"] + node.args[known[name] :]
                    found |= set(_codes(given[0])) if given else set()
    return found


def _codes(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from _codes(node.body)
        yield from _codes(node.orelse)
    elif isinstance(node, ast.JoinedStr):
        text = "".join(str(part.value) if isinstance(part, ast.Constant) else "*" for part in node.values)
        if text.strip("*"):
            yield text


@cache
def written() -> set[str]:
    """Every text of the sources that could be a code or a part of one."""
    scripts = (path.read_text() for path in (ROOT / "stdlib").rglob("*.js"))
    return {code for script in scripts for code in re.findall(r"""["'](\w+)["']""", script)} | {
        node.value
        for tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isascii()
    }


def test_the_scan_finds_the_ways_in_which_errors_are_made() -> None:
    assert {"InputError", "NotFound", "Conflict", "Unavailable", "CallRefused", "Usage", "RuleInvalid"} <= set(
        shared_takers()
    )
    assert len(raised()) > 200


def test_every_code_that_is_raised_stands_in_the_table() -> None:
    absent = {code for code in raised() - PARTS if "*" not in code and code not in error_table()}
    assert absent == set(), "add them to engine/core/error_table.toml"
    composed = {code for code in raised() if "*" in code}
    unmatched = {
        code for code in composed if not any(re.fullmatch(code.replace("*", ".+"), row) for row in error_table())
    }
    assert unmatched == set()


def test_no_code_of_the_table_is_unused() -> None:
    texts = written()
    composed = [code.split("*") for code in raised() if "*" in code]
    unused = {
        code
        for code in set(error_table()) - texts
        if not any(
            code.startswith(before) and code.endswith(after) and code[len(before) : len(code) - len(after)] in texts
            for before, after in composed
        )
    }
    assert unused == set(), "remove them from engine/core/error_table.toml"


def test_every_outcome_is_explained_and_every_row_is_whole() -> None:
    outcomes = {code for code, row in error_table().items() if "outcome" in row.met}
    assert outcomes == set(Outcome)
    for code, row in error_table().items():
        assert CODE.fullmatch(code)
        assert row.met
        assert row.what
        assert row.fix or set(row.met) == {"script"}, code


def test_the_page_is_made_of_the_table() -> None:
    text = (ROOT / "docs/reference/errors.md").read_text()
    assert text == page(), "python -m lodger.engine.core.error_table > docs/reference/errors.md"


@pytest.mark.parametrize("code", ["call_limit", "wall_limit", "memory_limit", "no_node", "rule_too_frequent"])
def test_the_command_explains_codes_of_every_kind(code: str) -> None:
    shown = inside("errors", code)
    row = error_table()[code]
    assert row.what in shown.out
    assert row.fix in shown.out
    assert inside("errors", code, "--json").json == {
        "code": code, "met": list(row.met), "what": row.what, "why": row.why, "fix": row.fix
    }  # fmt: skip


def test_a_misspelt_code_is_answered_with_similar_ones() -> None:
    refused = inside("errors", "call_limi", "--json")
    assert refused.code == 2
    assert refused.json["error"]["code"] == "code_unknown"
    assert "call_limit" in refused.json["error"]["fix"]
