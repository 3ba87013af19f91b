"""Search for regular expressions with the flag v, which the engine of runtime quickjs would execute wrongly. Pure.

quickjs-ng 0.15 accepts the flag and ignores it. Whether a slash begins an expression or divides depends on the token before it; after
``)`` and ``}`` it is taken to divide, which only misses an expression that is not used. The search ends at a syntax error, and after a
bounded number of tokens.
"""

import re
from collections.abc import Iterator, Mapping

from lodger.sandbox.job import ScriptError

FLAG_V = "runtime quickjs does not support regular expressions with the flag v; use the flag u, without sets and \\q{}"
_SUSPECT = re.compile(r"/[dgimsuy]*v[dgimsy]*(?![\w$])|RegExp")
_TOKEN = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*.*?(?:\*/|\Z))
      | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<word>[\w$]+)
      | (?P<regex>/(?:[^\\/\[\n]|\\[^\n]|\[(?:[^\]\\\n]|\\[^\n])*+\])++/(?P<flags>[A-Za-z]*))
      | (?P<mark>.)""",
    re.VERBOSE | re.DOTALL,
)
_TEMPLATE = re.compile(r"(?:[^`\\$]|\\.|\$(?!\{))*(?P<end>`|\$\{|\Z)", re.DOTALL)
_MADE = re.compile(
    r"""\bRegExp\s*\((?:[^()'"`\n]|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`$]*`)*,\s*(["'`])[dgimsy]*v[dgimsy]*\1"""
)
#: The scan of this many tokens takes about half a second.
MAX_TOKENS = 200_000
#: Words after which an operand follows, so that a slash begins an expression.
_OPERATORS = frozenset({
    "await", "case", "default", "delete", "do", "else", "extends", "in", "instanceof", "new", "of", "return", "throw", "typeof", "void",
    "yield",
})  # fmt: skip


def misread(files: Mapping[str, str]) -> ScriptError | None:
    """Return the error of the first file of code with such an expression; None without one."""
    for file, text in files.items():
        if not file.endswith((".json", ".map", "map:")) and (line := line_with_flag_v(text)) is not None:
            return ScriptError("SyntaxError", FLAG_V, file=file, line=line)
    return None


def line_with_flag_v(text: str) -> int | None:
    """Return the first line number of such an expression, a literal or a call of ``RegExp`` with literal flags; None without one."""
    if _SUSPECT.search(text) is None:
        return None
    made = _MADE.search(text)
    places = [at for at, flags in _expressions(text) if "v" in flags] + ([made.start()] if made else [])
    return text.count("\n", 0, min(places)) + 1 if places else None


def _expressions(text: str) -> Iterator[tuple[int, str]]:
    at, operand = 0, True  # whether an operand is expected
    if text.startswith("#!"):
        at = len(text.partition("\n")[0])
    nested: list[int] = []  # open braces of each template's expression
    for _ in range(MAX_TOKENS):
        token = _TOKEN.match(text, at)
        if token is None or token["mark"] in ("'", '"') or (token["mark"] == "/" and operand):
            return
        if token["regex"] is not None and not operand:
            at, operand = at + 1, True  # a division
            continue
        start, at = at, token.end()
        if token["blank"] is not None:
            continue
        if token["regex"] is not None:
            yield start, token["flags"]
            operand = False
        elif token["mark"] is None:
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
        else:
            if nested and token["mark"] in "{}":
                nested[-1] += 1 if token["mark"] == "{" else -1
            operand = token["mark"] not in ")]}"
