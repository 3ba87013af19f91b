"""Lateness over time as one self-contained picture: a dot for each slot, when it was done against how late that was."""

from collections.abc import Mapping, Sequence
from html import escape

_LEFT, _WIDTH, _TOP, _HEIGHT = 70, 760, 50, 320
_COLOURS = ("#2a7f62", "#b3261e", "#3b5bdb")
#: As many dots of a kind are drawn; more tell nothing more.
_DOTS = 3000

#: (seconds after the first slot, seconds late).
Points = Sequence[tuple[float, float]]


def picture(title: str, kinds: Mapping[str, Points], promised_s: float | None = None) -> str:
    """Return an SVG document; the scales end at the largest value."""
    every = [point for points in kinds.values() for point in points] or [(0.0, 0.0)]
    wide, high = max(at for at, _late in every) or 1.0, max(promised_s or 0.0, *(late for _at, late in every)) or 1.0
    body = "".join(_grid(wide, high))
    if promised_s is not None:
        y = _y(promised_s / high)
        body += f'<line x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{y}" y2="{y}" stroke="#b3261e" stroke-dasharray="6 4"/>'
        body += f'<text x="{_LEFT + _WIDTH - 4}" y="{y - 5}" text-anchor="end">promised: {promised_s:g} s</text>'
    for number, (name, points) in enumerate(kinds.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        body += f'<text x="{_LEFT + 10 + 220 * number}" y="40" fill="{colour}">{escape(name)}: {_spread(points)}</text>'
        for at, late in points[:: max(1, len(points) // _DOTS)]:
            body += f'<circle cx="{_x(at / wide)}" cy="{_y(late / high)}" r="2" fill="{colour}" fill-opacity="0.4"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 30}" height="{_TOP + _HEIGHT + 50}" font-family="sans-serif"'
        f' font-size="12" fill="#202020"><rect width="100%" height="100%" fill="#ffffff"/>'
        f'<text x="12" y="20" font-size="15">{escape(title)}</text>{body}'
        f'<text x="{_LEFT + _WIDTH // 2}" y="{_TOP + _HEIGHT + 40}" text-anchor="middle">'
        f"seconds after the first slot; upwards: seconds late</text></svg>\n"
    )


def _spread(points: Points) -> str:
    late = sorted(each for _at, each in points)
    if not late:
        return "none"
    return f"p50 {late[len(late) // 2]:.2f}, p99 {late[len(late) * 99 // 100]:.2f}, last {late[-1]:.2f} s"


def _grid(wide: float, high: float) -> list[str]:
    marks = []
    for part in range(6):
        x, y = _x(part / 5), _y(part / 5)
        marks.append(f'<line x1="{x}" x2="{x}" y1="{_TOP}" y2="{_TOP + _HEIGHT}" stroke="#e4e4e4"/>')
        marks.append(f'<text x="{x}" y="{_TOP + _HEIGHT + 18}" text-anchor="middle">{wide * part / 5:.2g}</text>')
        marks.append(f'<line x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{y}" y2="{y}" stroke="#e4e4e4"/>')
        marks.append(f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{high * part / 5:.2g}</text>')
    return marks


def _x(share: float) -> float:
    return round(_LEFT + _WIDTH * share, 1)


def _y(share: float) -> float:
    return round(_TOP + _HEIGHT * (1 - share), 1)
