"""``lodger bench walls``: how far beyond its limit a program gets, as a table with the spread of each row, and as a picture."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lodger.engine.cli.answer import AsJson, say, write_json
from lodger.engine.cli.failure import demand_matplotlib

if TYPE_CHECKING:
    from lodger.engine.bench.walls import Figure

#: Of a promise's --check: fewer say nothing of one in a hundred.
FEWEST = 100
_COLUMNS = 30
_HEIGHTS = " ▁▂▃▄▅▆▇█"


class Runtime(StrEnum):
    """What can be measured."""

    QUICKJS = "quickjs"
    NATIVE = "quickjs-native"
    WASM = "wasm"


def walls(
    runtime: Annotated[list[Runtime] | None, typer.Option(help="Which; may be said again. Unless told, all.")] = None,
    samples: Annotated[int, typer.Option(min=1, max=100_000, help="Of each program.")] = FEWEST,
    check: Annotated[
        bool, typer.Option("--check", help=f"Exit 1 unless every promise holds, of at least {FEWEST} samples each.")
    ] = False,
    svg: Annotated[Path | None, typer.Option(metavar="FILE", help="Also draw every sample into a picture.")] = None,
    as_json: AsJson = False,
) -> None:
    """How far beyond its limit a program gets before it is stopped, while every core is busy."""
    from lodger.engine.bench.wall_cases import MOST_MIB
    from lodger.engine.bench.walls import MOST_MS, P99_MS, overshoot
    from lodger.engine.cli.failure import Usage

    if svg is not None:
        demand_matplotlib()
    if check and samples < FEWEST:
        raise Usage("too_few_samples", f"--check needs --samples {FEWEST} or more", fix=f"--samples {FEWEST}")
    if not as_json:
        say(f"Beyond the limit, {samples} of each, every core busy. The spread is drawn from the limit to the promise.")
        say(f"{'':45}   median       p99      most      │{'spread':^{_COLUMNS}}│")
    figures: list[Figure] = []
    for each in runtime or list(Runtime):
        figures += overshoot(each.value, samples, (lambda _figure: None) if as_json else _show)
    kept = all(figure.holds for figure in figures)
    if svg is not None:
        from lodger.engine.bench.wall_picture import picture

        svg.write_text(picture(figures), encoding="utf-8")
    if as_json:
        body: dict[str, Any] = {"figures": [figure.as_dict() for figure in figures], "holds": kept}
        body["promised"] = {"p99_ms": P99_MS, "most_ms": MOST_MS, "most_mib": MOST_MIB}
        write_json(body)
    else:
        worst = max((each.p99 for each in figures if each.unit == "ms"), default=0.0)
        say(f"promised: 99 of 100 within {P99_MS:g} ms, all within {MOST_MS:g} ms; worst p99 {worst:.1f} ms")
    if check and not kept:
        raise typer.Exit(1)


def _show(figure: "Figure") -> None:
    words = f"{figure.p50:9.2f} {figure.p99:9.2f} {figure.most:9.2f} {figure.unit:3}"
    mark = "holds" if figure.holds else "TOO FAR"
    say(f"{figure.runtime:15} {figure.case:28} {words}  │{spread(figure)}│  {mark}")


def spread(figure: "Figure") -> str:
    """Draw how the samples lie between the limit and what is promised; what is outside stands at the ends."""
    from lodger.engine.bench.wall_cases import MOST_MIB
    from lodger.engine.bench.walls import P99_MS

    end = MOST_MIB[figure.runtime] if figure.unit == "MiB" else P99_MS
    counts = [0] * _COLUMNS
    for value in figure.values:
        counts[max(0, min(_COLUMNS - 1, int(value / end * _COLUMNS)))] += 1
    highest = max(counts)
    return "".join(_HEIGHTS[-(-count * (len(_HEIGHTS) - 1) // highest)] for count in counts)
