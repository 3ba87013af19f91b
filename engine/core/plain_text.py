"""Text of scripts as people may see it: without invisible characters, and as a code frame with a caret beneath the place of an error."""

import re
from typing import Any

#: What could repaint or turn a line of a terminal, or stands in it unseen: control and format characters (escape sequences, direction, zero
#: width), separators of lines and paragraphs, fillers, halves of surrogate pairs, tags. Line feeds and tabs stay.
UNSEEN = (
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u180b-\u180f\u200b-\u200f"
    r"\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_WIDTH = 100


def visible(text: str) -> str:
    """Return text with its invisible and control characters escaped as in JSON."""
    return re.sub(UNSEEN, _escaped, text)


def one_line(text: str) -> str:
    """Return text on one line: invisible characters are escaped as in JSON, and so are its line ends."""
    return visible(text).replace("\n", "\\n")


def marked(text: str) -> str:
    """Return text of one event: each further line is marked, so that none looks like the line of another event."""
    return visible(text).replace("\n", "\n  | ")


def code_frame(source: str, line: int | None, column: int | None = None, *, before: int = 2) -> list[str]:
    """Return the code frame of a place in a source.

    Args:
        source: the whole text.
        line: 1-based; None or out of range gives no lines at all.
        column: 1-based; None points at the first character of the line that is no space.
        before: number of lines shown above it.

    Returns:
        Lines such as ``  4 | return a.b`` and one with the caret; tabs and control characters are spaces.
    """
    lines = source.split("\n")
    if line is None or not 1 <= line <= len(lines):
        return []
    text = _plain(lines[line - 1])
    at = column - 1 if column is not None and 1 <= column <= len(text) + 1 else len(text) - len(text.lstrip())
    start = max(0, at - _WIDTH * 2 // 3) if len(text) > _WIDTH else 0
    gutter = len(str(line))
    shown = [
        f"  {number:>{gutter}} | {_plain(lines[number - 1])[start : start + _WIDTH]}"
        for number in range(max(1, line - before), line + 1)
    ]
    return [*shown, f"  {' ' * gutter} | {' ' * (at - start)}^"]


def detail_lines(details: dict[str, Any] | None, indent: str = "  ") -> list[str]:
    """Return the parts of an error besides its message, one line each: own fields, and causes and errors below one another."""
    lines = []
    for name, value in (details or {}).items():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict):
                lines.append(f"{indent}{name}: {_plain(str(each.get('name')))}: {_plain(str(each.get('message')))}")
                lines.extend(f"{indent}{_plain(frame)}" for frame in str(each.get("stack")).split("\n")[:3] if frame)
                lines.extend(detail_lines(each.get("details"), indent + "  "))
            else:
                lines.append(f"{indent}{_plain(name)}: {_plain(str(each))}")
    return lines


def _plain(text: str) -> str:
    """Return a line with spaces in place of unprintable characters."""
    return "".join(char if char.isprintable() else " " for char in text.rstrip("\r"))


def _escaped(found: re.Match[str]) -> str:
    """Return a character as escape sequences of JSON."""
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
