"""The figures of ``lodger bench rules`` as one self-contained picture: a row for each rule, a mark for each library."""

from collections.abc import Mapping, Sequence
from html import escape
from math import log10
from typing import Any

_LEFT, _WIDTH, _ROW, _TOP = 420, 560, 24, 74
#: Powers of ten, in microseconds, between which everything is drawn.
_FIRST, _LAST = -1, 7
_LINE, _TEXT = "#b0b0b0", "#202020"
#: Colour of each library, in the order of the key.
COLOURS = {"lodger": "#2a7f62", "dateutil": "#b3261e", "cronsim": "#b26a00"}
_UNITS = ((1e6, "s"), (1e3, "ms"), (1.0, "µs"))
#: Typical and worst that the engine promises, microseconds.
_PROMISED = (20, 1000)


def picture(rows: Sequence[Mapping[str, Any]]) -> str:
    """Give an SVG document of rows as ``lodger bench rules --json`` has them; the axis is logarithmic."""
    height = _TOP + _ROW * len(rows) + 40
    marks = "".join(_mark(10.0**power, height, "3 3") for power in range(_FIRST, _LAST + 1))
    marks += "".join(_mark(float(us), height, "none") for us in _PROMISED)
    key = "".join(
        f'<circle cx="{_LEFT + 110 * i}" cy="36" r="5" fill="{colour}"/><text x="{_LEFT + 110 * i + 10}" y="40">{name}</text>'
        for i, (name, colour) in enumerate(COLOURS.items())
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 150}" height="{height}" font-family="sans-serif"'
        f' font-size="12" fill="{_TEXT}"><rect width="100%" height="100%" fill="#ffffff"/>'
        f'<text x="12" y="20" font-size="15">Time to the next slot of a rule, asked anywhere</text>{key}'
        f'<text x="12" y="{height - 12}">a dot is the median of a library, a line leads to our worst; the full lines are what is promised: '
        f"typical {_said(_PROMISED[0])}, worst {_said(_PROMISED[1])}</text>"
        f"{marks}{''.join(_row(number, row) for number, row in enumerate(rows))}</svg>\n"
    )


def _x(us: float) -> float:
    power = min(max(log10(max(us, 1e-9)), _FIRST), _LAST)
    return round(_LEFT + _WIDTH * (power - _FIRST) / (_LAST - _FIRST), 1)


def _said(us: float) -> str:
    size, unit = next(((size, unit) for size, unit in _UNITS if us >= size), _UNITS[-1])
    return f"{us / size:.3g} {unit}"


def _mark(us: float, height: int, dashes: str) -> str:
    label = "" if dashes == "none" else f'<text x="{_x(us)}" y="{_TOP - 14}" text-anchor="middle">{_said(us)}</text>'
    return (
        f'<line x1="{_x(us)}" y1="{_TOP - 8}" x2="{_x(us)}" y2="{height - 34}" stroke="{_LINE}" stroke-dasharray="{dashes}"/>'
        f"{label}"
    )


def _row(number: int, row: Mapping[str, Any]) -> str:
    y = _TOP + _ROW * number + _ROW // 2
    text = str(row["rule"])
    shown = text if len(text) <= 58 else f"{text[:57]}…"
    dots = "".join(
        f'<circle class="{name}" cx="{_x(row[name])}" cy="{y}" r="5" fill="{colour}"/>'
        for name, colour in COLOURS.items()
        if row.get(name) is not None
    )
    ours, worst = float(row["lodger"]), float(row["lodger_worst"])
    return (
        f'<text x="12" y="{y + 4}">{escape(shown)}<title>{escape(text)}</title></text>'
        f'<line x1="{_x(ours)}" y1="{y}" x2="{_x(worst)}" y2="{y}" stroke="{COLOURS["lodger"]}" stroke-width="2"/>{dots}'
        f'<text x="{_LEFT + _WIDTH + 20}" y="{y + 4}">{_said(ours)}, worst {_said(worst)}</text>'
    )
