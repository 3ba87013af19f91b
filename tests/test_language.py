"""Words that names and prose of the tree do without: a reader of the glossary (docs/glossary.md) would not know what they mean."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted(
    p for folder in ("engine", "sandbox", "stdlib", "escape", "bench", "tests") for p in (ROOT / folder).rglob("*.py")
)
#: Parts of names.
NAMES = re.compile(
    r"(?<![a-z])(who|whose|whoever|whom|somebody|nobody|anybody|strangers?|porter|scribe|courier|lookout|witness|forerunner"
    r"|rulebook)(?![a-z])"
)
#: Words of docstrings, comments and texts for users.
PROSE = re.compile(
    r"\b(somebody|nobody|anybody|rulebook|courier|scribe|forerunner|porter)\b",
)
#: First words of docstrings.
OPENINGS = re.compile(r"(Give|Gives|Hear|Tell|Say|Ask whether|Who|Whose)\b(?! up)")
#: Strings and comments, which have no names.
TEXTS = re.compile(r'"""[\s\S]*?"""|"(?:\\.|[^"\\\n])*"|#[^\n]*')
#: What a module with a banned word has somewhere: reading its tokens costs a hundred times as much.
ANY, ANY_NAME = (
    re.compile(PROSE.pattern + rf'|"""{OPENINGS.pattern}', re.IGNORECASE),
    re.compile(NAMES.pattern, re.IGNORECASE),
)


def found(source: str, *, texts: bool = True) -> list[str]:
    """Banned words of a module, each with its line; with ``texts`` also those of strings."""
    lines: list[str] = []
    if not (ANY.search(source) or ANY_NAME.search(TEXTS.sub("", source))):
        return lines
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        banned = {tokenize.NAME: NAMES, tokenize.COMMENT: PROSE, tokenize.STRING: PROSE}.get(token.type)
        text = (
            re.sub(r"(?<=[a-z])(?=[A-Z])", "_", token.string).lower() if token.type == tokenize.NAME else token.string
        )
        if token.type == tokenize.STRING and not texts:
            continue
        if banned and not text.startswith("test_") and " " in (text + " " * (token.type == tokenize.NAME)):
            lines += [f"{token.start[0]}: {match.group()}" for match in banned.finditer(text)]
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = (ast.get_docstring(node) for node in ast.walk(ast.parse(source)) if isinstance(node, documented))
    return lines + [f"docstring: {match.group()}" for text in docstrings if text and (match := OPENINGS.match(text))]


@pytest.mark.parametrize("folder", ["engine", "sandbox", "stdlib", "escape", "bench", "tests"])
def test_no_banned_words(folder: str) -> None:
    sources = [path for path in SOURCES if path.relative_to(ROOT).parts[0] == folder and path != Path(__file__)]
    assert {str(path): words for path in sources if (words := found(path.read_text(), texts=folder != "tests"))} == {}


def test_banned_words_are_found() -> None:
    assert found("class OutboxCourier: ...\ndef f(whose, at_most): ...\n") == ["1: courier", "2: whose"]
    assert found('def f():\n    """Give the rows."""  # nobody\'s row\n') == ["2: nobody", "docstring: Give"]
    assert found('x = "nobody", "somebody came", "Give up"\n') == ["1: somebody"]
