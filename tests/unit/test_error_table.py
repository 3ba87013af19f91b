"""The table of codes holds what the sources raise, and nothing else; each raise gives the values of its row's placeholders."""

import ast
import re
import string
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from tests.e2e.command import inside

from lodger.engine.cli.entry import add_commands, all_nouns
from lodger.engine.cli.entry import app as command_line
from lodger.engine.core.error_table import error_table, lines, row_of, texts
from lodger.engine.core.errors import InputError
from lodger.engine.core.settings import Settings
from lodger.sandbox.outcome import Outcome

pytestmark = pytest.mark.usefixtures("uncollected")

ROOT = Path(__file__).resolve().parents[2]
CODE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*(\.[a-z0-9_]+)*", re.ASCII)
#: Errors whose texts stand in the table, with the position of the code among their arguments.
EXPLAINED = {
    "InputError": 0, "NotFound": 0, "Conflict": 0, "Unavailable": 0, "Usage": 0, "RuleInvalid": 0, "RuleNeverFires": 0,
    "Repeated": 0, "Stale": 0, "Refused": 1,
}  # fmt: skip
#: Modules that they are imported from; the same words name other things elsewhere.
HOMES = ("core.errors", "rule_errors", "failure", "problems")
#: Arguments that are no values of placeholders.
OTHER = {"near", "index", "details", "headers"}


def raising_places(path: Path, tree: ast.Module) -> Iterator[tuple[str, ast.expr, set[str]]]:
    """Every place of one module where an error of the table is made: its line, the expression of the code, the names of its values."""
    of_others = {
        each.asname or each.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and not str(node.module).endswith(HOMES)
        for each in node.names
    }
    for node in ast.walk(tree):
        name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
        if not isinstance(node, ast.Call) or name not in EXPLAINED or name in of_others:
            continue
        where, at = f"{path.relative_to(ROOT)}:{node.lineno}", EXPLAINED[name]
        assert len(node.args) == at + 1, f"{where} gives a text"
        assert None not in {each.arg for each in node.keywords}, f"{where} hides its values"
        yield where, node.args[at], {str(each.arg) for each in node.keywords} - OTHER


@cache
def trees() -> dict[Path, ast.Module]:
    """Every module of the engine, the sandbox and the measurements."""
    return {
        path: ast.parse(path.read_text())
        for package in ("engine", "sandbox", "bench")
        for path in sorted((ROOT / package).rglob("*.py"))
    }


@cache
def raises() -> list[tuple[str, ast.expr, set[str]]]:
    """Every place where an error of the table is made."""
    return [each for path, tree in trees().items() for each in raising_places(path, tree)]


@cache
def literals() -> set[str]:
    """Every text of the sources that could be a code."""
    scripts = (path.read_text() for path in (ROOT / "stdlib" / "js").rglob("*.js"))
    return {code for script in scripts for code in re.findall(r"""["'](\w+)["']""", script)} | {
        node.value
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isascii()
    }


def codes(node: ast.expr) -> Iterator[str]:
    """Rows that an expression names by literals."""
    if isinstance(node, ast.Constant):
        yield str(node.value)
    elif isinstance(node, ast.IfExp):
        yield from codes(node.body)
        yield from codes(node.orelse)


def fitting(node: ast.expr) -> set[str]:
    """Rows that an expression that is no literal may name."""
    if not isinstance(node, ast.JoinedStr):
        return set(lines()) & literals()
    form = "".join(re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".+" for part in node.values)
    return {row for row in lines() if re.fullmatch(form, row)}


def placeholders(code: str) -> set[str]:
    """Names of the placeholders of a row."""
    row = row_of(code)
    return {
        name
        for part in ("what", "why", "fix")
        for _text, name, _spec, _conversion in string.Formatter().parse(row.get(part, ""))
        if name is not None
    }


def test_each_raise_gives_exactly_the_placeholders_of_its_row() -> None:
    assert len(raises()) > 350
    wrong = [
        f"{where}: {code} has {sorted(placeholders(code))}, the raise gives {sorted(given)}"
        for where, node, given in raises()
        for code in codes(node)
        if code in lines() and placeholders(code) != given
    ]
    assert wrong == []


def test_every_code_that_is_raised_stands_in_the_table() -> None:
    absent = {code for _where, node, _given in raises() for code in codes(node) if code not in lines()}
    assert absent == set(), "add them to engine/core/error_table.toml"


def test_codes_of_the_sandbox_and_of_host_calls_stand_in_the_table() -> None:
    takers = {"SandboxError", "WallUnavailable", "ZygoteFailed", "LimitInvalid", "CallRefused"}
    given = {
        node.args[0].value
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in takers
        if node.args and isinstance(node.args[0], ast.Constant)
    }
    assert len(given) > 40
    assert given - set(error_table()) == set(), "add them to engine/core/error_table.toml"


def test_a_code_from_a_variable_has_rows_with_the_values_that_the_raise_gives() -> None:
    others = [(where, fitting(node), given) for where, node, given in raises() if not list(codes(node))]
    wrong = [where for where, found, given in others if not any(placeholders(row) == given for row in found)]
    assert wrong == []


def test_the_lines_are_the_rows_of_the_file() -> None:
    written = tomllib.loads((ROOT / "engine/core/error_table.toml").read_text())
    assert {code: row_of(code) for code in lines()} == written


def test_every_row_renders_with_values_of_its_placeholders() -> None:
    for code in lines():
        values = {name: Sample() for name in placeholders(code)}
        what, _why, _fix = texts(code, values)
        assert what
        assert "{" not in what.replace('{ from: "start" }', "").replace("{}", "")


class Sample(int):
    """A value that every format of the table takes, even that of an instant."""

    def __format__(self, form: str) -> str:
        return "sample"


def test_a_value_that_is_missing_or_misspelt_is_a_fault() -> None:
    with pytest.raises(KeyError, match="tenant"):
        InputError("tenant_unknown", tennant="a")


def test_lists_are_joined_and_names_are_quoted_on_one_line() -> None:
    refused = InputError("hook_unknown", name="a\nb", hooks=("one", "two"))
    assert (refused.what, refused.fix) == (r"there is no hook 'a\nb'", "use one of: one, two")


def test_a_cause_has_the_code_of_its_row_and_a_similar_name_is_proposed() -> None:
    refused = InputError("script_unknown.folder", script="reprot", near="report")
    assert (refused.code, refused.fix.partition("?")[0]) == ("script_unknown", "did you mean report")


def test_no_row_of_the_table_is_unused() -> None:
    used = {code for _where, node, _given in raises() for code in codes(node)} | literals()
    used |= {code for code in lines() if code.endswith(".composed") and code.removesuffix(".composed") in literals()}
    causes = {code.partition(".")[0] for code in lines() if "." in code}
    composed = {row for _where, node, _given in raises() if isinstance(node, ast.JoinedStr) for row in fitting(node)}
    unused = set(lines()) - used - causes - composed
    assert unused == set(), "remove them from engine/core/error_table.toml"


def test_every_outcome_is_explained_and_every_row_is_whole() -> None:
    outcomes = {code for code, row in error_table().items() if "outcome" in row.met}
    assert outcomes == set(Outcome)
    for code, row in error_table().items():
        assert row.met
        assert row.fix or set(row.met) == {"script"}, code
        assert all(cause.fix for cause in row.causes if set(row.met) != {"script"}), code
    for code in lines():
        assert CODE.fullmatch(code)
        assert row_of(code)["what"]


@pytest.mark.parametrize("code", ["call_limit", "wall_limit", "memory_limit", "no_node", "rule_too_frequent"])
def test_the_command_explains_codes_of_every_kind(code: str) -> None:
    shown = inside("errors", code)
    row = error_table()[code]
    assert row.what in shown.out
    assert row.fix in shown.out
    answer = inside("errors", code, "--json").json
    assert (answer["code"], answer["what"], answer["why"], answer["fix"]) == (code, row.what, row.why, row.fix)


def test_the_command_shows_every_cause_of_a_code() -> None:
    shown = inside("errors", "database_busy").out
    assert all(cause.what in shown and cause.fix in shown for cause in error_table()["database_busy"].causes)


def test_a_misspelt_code_is_answered_with_similar_ones() -> None:
    refused = inside("errors", "call_limi", "--json")
    assert refused.code == 2
    assert refused.json["error"]["code"] == "code_unknown"
    assert "call_limit" in refused.json["error"]["fix"]


def test_every_variable_that_a_row_or_a_message_names_is_read() -> None:
    """A setting, or a variable that a source reads by its whole name."""
    sources = [path.read_text() for folder in ("engine", "sandbox") for path in (ROOT / folder).rglob("*.py")]
    sources.append((ROOT / "engine/core/error_table.toml").read_text())
    named = {each for text in sources for each in re.findall(r"\bLODGER_[A-Z_]+[A-Z]\b", text)}
    read = {each for text in sources for each in re.findall(r"\"(LODGER_[A-Z_]+)\"", text)}
    assert named - read - {f"LODGER_{name.upper()}" for name in Settings.model_fields} == set()


def test_every_command_that_a_fix_names_exists() -> None:
    commands: dict[str, set[str]] = {}
    for noun in all_nouns():
        add_commands([noun])
        (group,) = [each for each in command_line.registered_groups if each.name == noun]
        assert group.typer_instance is not None
        commands[noun] = {
            str(each.name or each.callback.__name__).replace("_", "-")  # type: ignore[union-attr]  # every one has one
            for each in group.typer_instance.registered_commands
        }
    add_commands([])
    alone = {each.name for each in command_line.registered_commands}
    page_of_commands = (ROOT / "docs/reference/command-line.md").read_text()
    groups = {
        "db": set(re.findall(r"^\| `([a-z-]+)", page_of_commands.split("## lodger db")[1].split("\n## ")[0], re.MULTILINE)),
        "config": {"show"},
    }  # fmt: skip
    known = commands | groups
    unknown = [
        f"{code}: lodger {first} {second}"
        for code in lines()
        for first, second in re.findall(
            r"(?<!install )lodger ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?", row_of(code).get("fix", "")
        )
        if first not in alone and second not in known.get(first, set())
    ]
    assert unknown == []
