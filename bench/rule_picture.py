"""The figures of ``lodger bench rules`` as an SVG picture, by matplotlib: a row for each rule, a mark for each library."""

from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

#: Colour of each library, in the order of the key.
COLOURS = {"lodger": "#2a7f62", "dateutil": "#b3261e", "cronsim": "#b26a00"}
#: Smallest time that is drawn apart from zero, microseconds.
_MIN_US = 0.1
#: Typical and worst that the engine promises, microseconds.
_PROMISED = (20, 1000)


def picture(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return an SVG document of rows as ``lodger bench rules --json`` has them; the axis is logarithmic."""
    figure = Figure(figsize=(12, 1.5 + 0.3 * len(rows)), layout="constrained")
    axes = figure.subplots()
    axes.set(xscale="log", xlabel="µs; lines end at Lodger's worst result; the full lines are the promised bounds")
    axes.set_title("Time to find the next slot of a rule, from any instant")
    axes.set_yticks(range(len(rows)), [_short(str(row["rule"])) for row in rows], parse_math=False)
    axes.invert_yaxis()
    for us in _PROMISED:
        axes.axvline(us, color="#b0b0b0")
    for name, colour in COLOURS.items():
        measured = [(_drawn(row[name]), y) for y, row in enumerate(rows) if row.get(name) is not None]
        axes.scatter(*_columns(measured), color=colour, label=name, gid=name, zorder=3)
    ours = [_drawn(row["lodger"]) for row in rows]
    axes.hlines(range(len(rows)), ours, [_drawn(row["lodger_worst"]) for row in rows], color=COLOURS["lodger"])
    axes.legend(loc="upper right")
    return svg_text(figure)


def svg_text(figure: Figure) -> str:
    """Return a figure as SVG with its texts as text elements."""
    out = StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "lodger"}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _drawn(us: float) -> float:
    return max(float(us), _MIN_US)


def _short(text: str) -> str:
    return text if len(text) <= 58 else f"{text[:57]}…"
