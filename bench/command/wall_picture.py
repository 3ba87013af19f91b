"""The samples of ``lodger bench walls`` as one self-contained picture: a row for each program, a dot for each sample."""

from collections.abc import Sequence
from html import escape

from lodger.bench.wall_cases import MOST_MIB
from lodger.bench.walls import MOST_MS, P99_MS, Figure

_LEFT, _WIDTH, _ROW, _TOP = 330, 560, 24, 56
_GOOD, _BAD, _LINE, _TEXT = "#2a7f62", "#b3261e", "#b0b0b0", "#202020"


def picture(figures: Sequence[Figure]) -> str:
    """Give an SVG document. Times are drawn to the worst that is promised, memory to its own bound."""
    height = _TOP + _ROW * len(figures) + 40
    rows = "".join(_row(number, figure) for number, figure in enumerate(figures))
    marks = "".join(
        f'<line x1="{_x(ms / MOST_MS)}" y1="{_TOP - 8}" x2="{_x(ms / MOST_MS)}" y2="{height - 34}" stroke="{_LINE}"'
        f' stroke-dasharray="3 3"/><text x="{_x(ms / MOST_MS)}" y="{_TOP - 14}" text-anchor="middle">{ms:g} ms</text>'
        for ms in (0, 50, P99_MS, 150, 200, MOST_MS)
    )
    said = f"{figures[0].samples if figures else 0} samples of each program, every core busy"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 170}" height="{height}" font-family="sans-serif"'
        f' font-size="12" fill="{_TEXT}"><rect width="100%" height="100%" fill="#ffffff"/>'
        f'<text x="12" y="20" font-size="15">How far beyond its limit a program gets before it is stopped</text>'
        f'<text x="12" y="{height - 12}">{said}; promised: 99 of 100 within {P99_MS:g} ms, all within {MOST_MS:g} ms</text>'
        f"{marks}{rows}</svg>\n"
    )


def _x(share: float) -> float:
    return round(_LEFT + _WIDTH * min(max(share, -0.02), 1.02), 1)


def _row(number: int, figure: Figure) -> str:
    y = _TOP + _ROW * number + _ROW // 2
    end = MOST_MIB[figure.runtime] if figure.unit == "MiB" else MOST_MS
    colour = _GOOD if figure.holds else _BAD
    dots = "".join(
        f'<circle cx="{_x(value / end)}" cy="{y}" r="3" fill="{colour}" fill-opacity="0.35"/>'
        for value in figure.values
    )
    bound = f" (drawn to {end:g} MiB)" if figure.unit == "MiB" else ""
    return (
        f'<text x="12" y="{y + 4}">{escape(figure.runtime)} · {escape(figure.case)}{bound}</text>{dots}'
        f'<text x="{_LEFT + _WIDTH + 20}" y="{y + 4}">p99 {figure.p99:g}, most {figure.most:g} {figure.unit}</text>'
    )
