"""The tokens of a JavaScript text, and its text without comments and the contents of literals. Pure.

Whether a slash begins an expression or divides depends on the token before it; after ``)`` and ``}`` it is taken to divide. Reading ends at
a syntax error, and after a bounded number of tokens.
"""

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*.*?(?:\*/|\Z))
      | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<word>[\w$]+)
      | (?P<regex>/(?:[^\\/\[\n]|\\[^\n]|\[(?:[^\]\\\n]|\\[^\n])*+\])++/[A-Za-z]*)
      | (?P<mark>.)""",
    re.VERBOSE | re.DOTALL,
)
_TEMPLATE = re.compile(r"(?:[^`\\$]|\\.|\$(?!\{))*(?P<end>`|\$\{|\Z)", re.DOTALL)
#: The scan of this many tokens takes about half a second.
MAX_TOKENS = 200_000
_NOT_LINE, _BRACKET = re.compile(r"[^\n]"), re.compile(r"[][(){}]")
#: Words after which an operand follows, so that a slash begins an expression.
_OPERATORS = frozenset({
    "await", "case", "default", "delete", "do", "else", "extends", "in", "instanceof", "new", "of", "return", "throw", "typeof", "void",
    "yield",
})  # fmt: skip


def tokens(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield kind, start and end of each token: blank, string, word, regex, mark, or template (its text between expressions)."""
    at, operand = 0, True  # whether an operand is expected
    if text.startswith("#!"):
        at = len(text.partition("\n")[0])
    nested: list[int] = []  # open braces of each template's expression
    for _ in range(MAX_TOKENS):
        token = _TOKEN.match(text, at)
        if token is None or token["mark"] in ("'", '"') or (token["mark"] == "/" and operand):
            return
        if token["regex"] is not None and not operand:
            yield "mark", at, at + 1  # a division
            at, operand = at + 1, True
            continue
        start, at = at, token.end()
        if token["blank"] is not None or token["regex"] is not None:
            yield ("regex" if token["blank"] is None else "blank"), start, at
            operand = operand and token["regex"] is None
        elif token["mark"] is None:
            yield ("word" if token["string"] is None else "string"), start, at
            operand = token["word"] in _OPERATORS
        elif token["mark"] == "`" or (token["mark"] == "}" and nested and nested[-1] == 0):
            if token["mark"] == "}":
                nested.pop()
            part = _TEMPLATE.match(text, at)
            assert part is not None
            at = part.end()
            if part["end"] == "${":
                nested.append(0)
            operand = part["end"] == "${"
            yield "template", start, at
        else:
            if nested and token["mark"] in "{}":
                nested[-1] += 1 if token["mark"] == "{" else -1
            yield "mark", start, at
            operand = token["mark"] not in ")]}"


def code_of(text: str) -> str:
    """Return a text of the same length: comments and the contents of literals are spaces, lines stay; cut at the last read character."""
    parts = []
    if text.startswith("#!"):
        parts.append(" " * len(text.partition("\n")[0]))
    for kind, start, end in tokens(text):
        token = text[start:end]
        if kind in ("word", "mark"):
            parts.append(token)
        elif kind == "template":
            opened, closed = token[0], "${" if token.endswith("${") else token[-1]
            parts.append(opened + _spaces(token[1 : len(token) - len(closed)]) + closed if len(token) > 1 else token)
        elif kind == "blank":
            parts.append(_spaces(token))
        else:
            parts.append(token[0] + _spaces(token[1:-1]) + token[-1])
    return "".join(parts)


def _spaces(text: str) -> str:
    """Return a text with all characters but line ends as spaces."""
    return _NOT_LINE.sub(" ", text)


def line_and_column(text: str, at: int) -> tuple[int, int]:
    """Return line and column of a position, from 1."""
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def outermost(code: str) -> str:
    """Return a text of :func:`code_of` in which everything inside brackets is spaces, too."""
    depth, parts, at = 0, [], 0
    for found in _BRACKET.finditer(code):
        inner = code[at : found.start()]
        parts.append(_spaces(inner) if depth else inner)
        at = found.end()
        opens = found[0] in "([{"
        depth = depth + 1 if opens else max(depth - 1, 0)
        parts.append(found[0] if depth == int(opens) else " ")
    return "".join(parts) + (_spaces(code[at:]) if depth else code[at:])


def unclosed(text: str) -> tuple[str, int] | None:
    """Return the innermost bracket, comment or literal that is open at the end of a text, and its place; None if all are closed."""
    opened: list[tuple[str, int]] = []
    end = 0
    for kind, start, end in tokens(text):
        part = text[start:end]
        if kind == "blank" and part.startswith("/*") and (len(part) < 4 or not part.endswith("*/")):
            return "/*", start
        if kind == "template":
            if part[0] == "}" and opened:
                opened.pop()
            if part.endswith("${"):
                opened.append(("${", end - 2))
            elif part == "`" or (end == len(text) and not part.endswith("`")):
                return "`", start
        elif kind == "mark" and part in "([{":
            opened.append((part, start))
        elif kind == "mark" and part in ")]}":
            if not opened:
                return None
            opened.pop()
    if text[end : end + 1] in ("'", '"'):
        return text[end], end
    return opened[-1] if opened and end == len(text) else None
