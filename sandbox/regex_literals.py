"""Search for regular expressions that the engine of runtime quickjs would execute wrongly. Pure.

quickjs-ng 0.15 accepts the flag v and ignores it, and keeps what a group has captured in an earlier round of a repetition.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lodger.sandbox.job import ScriptError
from lodger.sandbox.source_tokens import tokens

FLAG_V = "runtime quickjs does not support regular expressions with the flag v; use the flag u, without sets and \\q{}"
OLD_CAPTURES = (
    "runtime quickjs would keep what this regular expression's group captured in an earlier round, where JavaScript forgets it; "
    "write the groups inside the repeated alternatives as (?:…), or match one round at a time with matchAll"
)
_SUSPECT = re.compile(r"/[dgimsuy]*v[dgimsy]*(?![\w$])|RegExp|\)[*+{]")
_MADE = re.compile(
    r"""\bRegExp\s*\((?:[^()'"`\n]|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`$]*`)*,\s*(["'`])[dgimsy]*v[dgimsy]*\1"""
)
_PART = re.compile(
    r"""\\.|\[(?:\\.|[^\]\\])*+\]?|(?P<opens>\()(?:\?(?:[:=!]|<[=!]|<(?P<name>\w{1,99})>))?
      |(?P<closes>\))(?:(?P<sign>[*+?])|\{(?P<least>\d+)(?:(?P<open>,)(?P<most>\d*))?\})?|\|""",
    re.VERBOSE | re.DOTALL,
)
_REFERENCE = re.compile(r"\\(?=k<|[1-9])(?:k<)?(\w+)")


def misread(files: Mapping[str, str]) -> ScriptError | None:
    """Return the error of the first file of code with a regular expression that the runtime reads as another; None without one."""
    for file, text in files.items():
        if not file.endswith((".json", ".map", "map:")) and (found := misread_expression(text)) is not None:
            return ScriptError("SyntaxError", found[1], file=file, line=found[0])
    return None


def misread_expression(text: str) -> tuple[int, str] | None:
    """Return line and fault of the first regular expression that is executed wrongly: a literal, or a call of ``RegExp`` with literal
    flags; None without one."""
    if _SUSPECT.search(text) is None:
        return None
    made = _MADE.search(text)
    places = [(made.start(), FLAG_V)] if made else []
    for kind, at, end in tokens(text):
        if kind == "regex":
            pattern, _, flags = text[at + 1 : end].rpartition("/")
            if "v" in flags:
                places.append((at, FLAG_V))
            elif keeps_captures(pattern):
                places.append((at, OLD_CAPTURES))
    if not places:
        return None
    at, fault = min(places)
    return text.count("\n", 0, at) + 1, fault


def keeps_captures(pattern: str) -> bool:
    """Return whether a group that captures stands in one of the alternatives of a group that is repeated.

    An optional group between the two forgets. A group that the pattern refers to itself is left out: it serves the reference.
    """
    referred = set(_REFERENCE.findall(pattern))
    number = 0
    opened: list[_Group] = []
    for part in _PART.finditer(pattern):
        if part["opens"]:
            captures = part[0] == "(" or part["name"] is not None
            number += captures
            opened.append(_Group(captures and referred.isdisjoint((str(number), part["name"]))))
        elif part[0] == "|" and opened:
            opened[-1].alternatives = True
        elif part["closes"] and opened:
            inner = opened.pop()
            kept = inner.kept or (inner.alternatives and inner.captures)
            most = part["most"] or part["open"] or part["least"] or part["sign"] or "1"
            if kept and most not in ("?", "0", "1"):
                return True
            if opened:
                opened[-1].captures |= inner.captures or inner.is_capture
                opened[-1].kept |= kept and part["sign"] != "?" and part["least"] != "0"
    return False


@dataclass
class _Group:
    """An open group: whether it captures, has alternatives, contains groups that capture, and ones in alternatives."""

    is_capture: bool
    alternatives: bool = False
    captures: bool = False
    kept: bool = False
