"""The samples of ``lodger bench walls`` as an SVG picture, by matplotlib: a row for each program, a dot for each sample."""

from collections.abc import Sequence

from matplotlib.figure import Figure as Drawing

from lodger.bench.rule_picture import svg_text
from lodger.bench.wall_cases import MAX_MIB
from lodger.bench.walls import MAX_MS, P99_MS, Figure

_GOOD, _BAD = "#2a7f62", "#b3261e"


def picture(figures: Sequence[Figure]) -> str:
    """Return an SVG document. Everything is drawn as a share of its own bound: times of the worst promised, memory of the most."""
    drawing = Drawing(figsize=(12, 1.5 + 0.3 * len(figures)), layout="constrained")
    axes = drawing.subplots()
    axes.set_title("Use beyond the limit before a program is stopped")
    samples = figures[0].samples if figures else 0
    axes.set_xlabel(
        f"fraction of the bound; {samples} samples of each program, every core busy; "
        f"bounds: 99 of 100 within {P99_MS:g} ms, all within {MAX_MS:g} ms"
    )
    axes.set_yticks(range(len(figures)), [_label(figure) for figure in figures], parse_math=False)
    axes.invert_yaxis()
    axes.axvline(P99_MS / MAX_MS, color="#b0b0b0", linestyle="dashed")
    axes.axvline(1, color="#b0b0b0")
    for y, figure in enumerate(figures):
        shares = [value / _bound(figure) for value in figure.values]
        axes.scatter(
            shares, [y] * len(shares), s=12, alpha=0.35, color=_GOOD if figure.holds else _BAD, gid=f"samples-{y}"
        )
    return svg_text(drawing)


def _bound(figure: Figure) -> float:
    return MAX_MIB[figure.runtime] if figure.unit == "MiB" else MAX_MS


def _label(figure: Figure) -> str:
    return f"{figure.runtime} · {figure.case}: p99 {figure.p99:g}, max {figure.maximum:g} of {_bound(figure):g} {figure.unit}"
