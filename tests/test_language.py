"""The language of the tree: words that have no place in names and docstrings, and prose commits that change prose only."""

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.same_code import differing_files, prose_commits, same_code

pytestmark = pytest.mark.usefixtures("uncollected")

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("engine", "sandbox", "stdlib", "escape", "bench", "tests", ".ci")
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))

#: Parts of identifiers that name nothing a reader of the glossary (docs/glossary.md) would know.
BANNED_IN_NAMES = {
    *("who", "whose", "whoever", "whom", "somebody", "nobody", "anybody", "stranger", "strangers"),
    *(
        "most",
        "least",
        "letters",
        "door",
        "porter",
        "gate",
        "books",
        "pen",
        "scribe",
        "courier",
        "docket",
        "lots",
        "told",
    ),
    *("shelf", "census", "lookout", "witness", "forerunner", "customs", "remains", "wakes", "rulebook"),
}
#: Words and openings that STYLE-conforming docstrings and comments do without.
BANNED_IN_PROSE = re.compile(
    r"\b(who|whose|whoever|whom|somebody|nobody|anybody|stranger|strangers|docket|rulebook|courier|scribe|forerunner|porter)\b",
    re.IGNORECASE,
)
#: Words and phrases of string constants in :data:`TEXTS` that a reader of plain technical English would stumble over.
BANNED_IN_TEXTS = re.compile(
    r"\b(who|whose|whoever|whom|somebody|nobody|anybody|strangers?|foreseen?|did not foresee|in vain|mend|meanwhile|is told|said by"
    r"|heard of|cannot name|may stand|for ever|of ours|asked of)\b|(?<!there )\bis no (?!longer\b|more\b)|… letters\b",
    re.IGNORECASE,
)
#: Sources with texts for users: messages, help, descriptions.
TEXTS = [path for path in SOURCES if path.relative_to(ROOT).parts[0] in {"engine", "sandbox", "stdlib"}]
BANNED_OPENINGS = re.compile(r"^(Give|Gives|Hear|Tell|Say|Ask whether|Who|Whose)\b(?! up)")
_COMMENT_OPENINGS = re.compile(r"# *(Give|Hear|Tell|Say|Ask|Who)")


def test_no_banned_words() -> None:
    found = {
        str(path.relative_to(ROOT)): words
        for path in SOURCES
        if path.name != "test_language.py"
        and (words := [*banned_names(path.read_text(), path.stem), *banned_prose(path.read_text())])
    }
    assert found == {}


def test_no_banned_words_in_texts_for_users() -> None:
    found = {str(path.relative_to(ROOT)): words for path in TEXTS if (words := banned_texts(path.read_text()))}
    assert found == {}


def test_no_banned_words_in_the_table_of_errors() -> None:
    table = (ROOT / "engine/core/error_table.toml").read_text()
    assert [match.group() for match in BANNED_IN_TEXTS.finditer(table)] == []


def test_banned_words_are_found() -> None:
    assert banned_names("MOST_ROWS = 1", "rows") == ["line 1: MOST_ROWS"]
    assert banned_names("class OutboxCourier: ...", "x") == ["line 1: OutboxCourier"]
    assert banned_names("def f(whose): ...", "docket") == ["file: docket", "line 1: whose"]
    assert banned_names("at_most = 1; utmost = 2", "x") == []
    assert banned_prose('def f():\n    """Give who came."""') == ["line 2: Give", "line 2: who"]
    assert banned_prose("x = 1  # nobody's row") == ["line 1: nobody"]
    assert banned_prose('x = "nobody"') == []
    assert banned_texts('x = f"{y!r} is no day"') == ["line 1: is no "]
    assert banned_texts('f(f"{a} ({len(a)} letters)", help="Whose scripts run.")') == [
        "line 1: Whose",
        "line 1: … letters",
    ]
    assert (
        banned_texts('def f():\n    """Whose."""\n    return "there is no day", "it is no longer here", "nobody"') == []
    )


#: What every banned name contains: most files contain none, and need not be parsed.
_NAME_PARTS = re.compile("|".join(sorted(BANNED_IN_NAMES)), re.IGNORECASE)


def banned_names(source: str, stem: str) -> list[str]:
    """Names that a module declares (itself, classes, functions, parameters, variables) and that hold a banned part."""
    found = [f"file: {stem}"] if _is_banned(stem) else []
    if not _NAME_PARTS.search(source):
        return found
    return found + [f"line {line}: {name}" for line, name in _declared(_parsed(source)) if _is_banned(name)]


def _declared(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def _is_banned(name: str) -> bool:
    if name.startswith(("at_most", "at_least", "AT_MOST", "AT_LEAST", "_AT_LEAST", "test_")):
        return False
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    return any(part.lower() in BANNED_IN_NAMES for part in parts)


def banned_prose(source: str) -> list[str]:
    """Banned words in docstrings and comments, each with its line."""
    found = []
    comments = _comments(source) if BANNED_IN_PROSE.search(source) or _COMMENT_OPENINGS.search(source) else ()
    for line, text in [*_docstrings(_parsed(source)), *comments]:
        opening = BANNED_OPENINGS.match(text)
        words = [opening.group()] if opening else []
        words += [match.group() for match in BANNED_IN_PROSE.finditer(text)]
        found += [f"line {line}: {word}" for word in words]
    return found


def banned_texts(source: str) -> list[str]:
    """Banned words in string constants of two words or more that are not docstrings, each with its line."""
    tree = _parsed(source)
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    inner |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            text = node.value
        else:
            continue
        if " " in text:
            found += [f"line {node.lineno}: {match.group()}" for match in BANNED_IN_TEXTS.finditer(text)]
    return sorted(found)


def _docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield node.body[0].lineno, text


def _comments(source: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith("#:"):
            yield token.start[0], token.string.lstrip("# ")


#: References of docstrings, in Sphinx's form.
_REFERENCE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):`~?([\w.]+)`")
#: Sources by module name.
MODULES = {
    ".".join(
        (*(() if path.is_relative_to(ROOT / "tests") else ("lodger",)), *path.relative_to(ROOT).with_suffix("").parts)
    ): path
    for path in SOURCES
}


def test_references_of_docstrings_name_what_exists() -> None:
    missing = [
        f"{path.relative_to(ROOT)}:{line} {reference}"
        for path in SOURCES
        if path.relative_to(ROOT).parts[0] in {"engine", "sandbox", "stdlib", "escape"}
        for line, text in _docstrings(_tree(path))
        for reference in _REFERENCE.findall(text)
        if not _exists(reference, path)
    ]
    assert missing == []


def test_missing_references_are_found() -> None:
    here = ROOT / "engine/cli/operations.py"
    assert _exists("lodger.engine.cli.inputs", here)
    assert _exists("lodger.engine.store.records.Action.id", here)
    assert _exists("summary", here)
    assert not _exists("lodger.engine.cli.inputs.absent", here)
    assert not _exists("lodger.engine.absent", here)
    assert not _exists("absent", here)


def _exists(reference: str, path: Path) -> bool:
    """Whether a reference in a module's docstring names a module, or names of a module, its own or one that it imports."""
    if reference in MODULES or f"{reference}.__init__" in MODULES or reference == "lodger.bench":
        return True
    module, names = reference, []
    while module:
        module, _, name = module.rpartition(".")
        names.append(name)
        target = MODULES.get(module) or MODULES.get(f"{module}.__init__")
        if target is not None:
            return _declares(target, names)
    first = reference.partition(".")[0]
    return _declares(path, names) or (first not in {"lodger", "tests"} and find_spec(first) is not None)


def _declares(path: Path, names: list[str]) -> bool:
    """Whether a module, or one of those that it imports from, declares all of these names; inherited ones are in the latter."""
    return names[-1] in _names(path) and all(
        any(name in _names(each) for each in (path, *_imported(path))) for name in reversed(names)
    )


@cache
def _imported(path: Path) -> tuple[Path, ...]:
    names = {node.module for node in ast.walk(_tree(path)) if isinstance(node, ast.ImportFrom) and node.module}
    return tuple(found for each in names if (found := MODULES.get(each) or MODULES.get(f"{each}.__init__")))


@cache
def _names(path: Path) -> set[str]:
    tree = _tree(path)
    aliases = {
        a.asname or a.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for a in node.names
    }
    return {name for _line, name in _declared(tree)} | aliases


def _tree(path: Path) -> ast.Module:
    return _parsed(path.read_text())


_parsed = cache(ast.parse)


def test_same_code_ignores_prose_and_nothing_else() -> None:
    assert same_code('def f():\n    """One."""\n    return 1', 'def f():\n    """Two."""\n    # why\n    return 1')
    assert same_code('class A:\n    """One."""', "class A:\n    pass")
    assert not same_code("def f(): return 1", "def f(): return 2")
    assert not same_code('x = "one"', 'x = "two"')


def test_prose_commits_change_prose_only() -> None:
    """The newest; ``python -m tests.same_code`` looks at all."""
    try:
        commits = prose_commits(newest=4)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no git history here")
    if not commits:
        pytest.skip("no commit of this history says that it changes prose only")
    assert {each: files for each in commits if (files := differing_files(f"{each}^", each))} == {}
