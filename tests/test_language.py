"""The language of the tree: words that have no place in names and docstrings, and prose commits that change prose only."""

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.same_code import differing_files, prose_commits, same_code

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
BANNED_OPENINGS = re.compile(r"^(Give|Gives|Hear|Tell|Say|Ask whether|Who|Whose)\b(?! up)")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_banned_words(path: Path) -> None:
    if path.name == "test_language.py":
        return
    source = path.read_text()
    assert [*banned_names(source, path.stem), *banned_prose(source)] == []


def test_banned_words_are_found() -> None:
    assert banned_names("MOST_ROWS = 1", "rows") == ["line 1: MOST_ROWS"]
    assert banned_names("class OutboxCourier: ...", "x") == ["line 1: OutboxCourier"]
    assert banned_names("def f(whose): ...", "docket") == ["file: docket", "line 1: whose"]
    assert banned_names("at_most = 1; utmost = 2", "x") == []
    assert banned_prose('def f():\n    """Give who came."""') == ["line 2: Give", "line 2: who"]
    assert banned_prose("x = 1  # nobody's row") == ["line 1: nobody"]
    assert banned_prose('x = "nobody"') == []


def banned_names(source: str, stem: str) -> list[str]:
    """Names that a module declares (itself, classes, functions, parameters, variables) and that hold a banned part."""
    found = [f"file: {stem}"] if _is_banned(stem) else []
    return found + [f"line {line}: {name}" for line, name in _declared(ast.parse(source)) if _is_banned(name)]


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
    for line, text in [*_docstrings(ast.parse(source)), *_comments(source)]:
        opening = BANNED_OPENINGS.match(text)
        words = [opening.group()] if opening else []
        words += [match.group() for match in BANNED_IN_PROSE.finditer(text)]
        found += [f"line {line}: {word}" for word in words]
    return found


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


def test_same_code_ignores_prose_and_nothing_else() -> None:
    assert same_code('def f():\n    """One."""\n    return 1', 'def f():\n    """Two."""\n    # why\n    return 1')
    assert same_code('class A:\n    """One."""', "class A:\n    pass")
    assert not same_code("def f(): return 1", "def f(): return 2")
    assert not same_code('x = "one"', 'x = "two"')


def test_prose_commits_change_prose_only() -> None:
    """The newest; ``python -m tests.same_code`` looks at all."""
    try:
        commits = prose_commits(newest=8)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no git history here")
    if not commits:
        pytest.skip("no commit of this history says that it changes prose only")
    assert {each: files for each in commits if (files := differing_files(f"{each}^", each))} == {}
