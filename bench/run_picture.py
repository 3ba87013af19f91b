"""The delays of ``lodger bench runs`` as an SVG picture, by matplotlib: the share of runs that were started and done after a time."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from lodger.bench.rule_picture import svg_text
from lodger.bench.runs import Row

_COLOURS = {"start": "#2a7f62", "done": "#b26a00"}


def picture(rows: Sequence[Row]) -> str:
    """Return an SVG document with one panel a load: cumulative shares over the delay from the slot, in milliseconds."""
    figure = Figure(figsize=(6 * len(rows), 4), layout="constrained")
    for axes, row in zip(figure.subplots(1, len(rows), squeeze=False)[0], rows, strict=True):
        axes.set(xscale="log", xlabel="ms after the slot", ylabel="share of runs", title=f"{row.load}: {row.runs} runs")
        for name, delays in (("start", row.starts_ms), ("done", row.dones_ms)):
            shares = [(number + 1) / len(delays) for number in range(len(delays))]
            axes.plot(
                [max(delay, 0.1) for delay in delays],
                shares,
                label=name,
                color=_COLOURS[name],
                gid=f"{row.load}-{name}",
            )
        axes.legend(loc="lower right")
    return svg_text(figure)
