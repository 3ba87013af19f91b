"""Code frames: a script's line with a caret beneath the place of an error."""

_WIDTH = 100


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
        f"  {number:>{gutter}} | {_cut(_plain(lines[number - 1]), start)}"
        for number in range(max(1, line - before), line + 1)
    ]
    return [*shown, f"  {' ' * gutter} | {' ' * (at - start)}^"]


def _plain(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text.rstrip("\r"))


def _cut(text: str, start: int) -> str:
    return text[start : start + _WIDTH]
