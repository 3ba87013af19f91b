"""``lodger bench``: what this host really does, measured; with --check the promises are asserted."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from lodger.engine.cli import bench_rules
from lodger.engine.cli.answer import AsJson, say, write_json

app = typer.Typer(name="bench", help="Measure this host.", no_args_is_help=True)


class Runtime(StrEnum):
    """What can be measured."""

    QUICKJS = "quickjs"
    NATIVE = "quickjs-native"


@app.callback()
def _bench() -> None:
    """Measure this host."""


@app.command("walls")
def walls(
    runtime: Annotated[list[Runtime] | None, typer.Option(help="Which; may be said twice. Unless told, both.")] = None,
    samples: Annotated[int, typer.Option(min=1, max=100_000, help="Of each script.")] = 100,
    check: Annotated[bool, typer.Option("--check", help="Exit 1 unless every promise holds.")] = False,
    as_json: AsJson = False,
) -> None:
    """How far beyond its limit a script gets before it is stopped, while every core is busy."""
    from lodger.engine.bench.walls import MOST_MIB, MOST_MS, P99_MS, Figure, overshoot

    def show(figure: Figure) -> None:
        if not as_json:
            words = f"{figure.p50:9.2f} {figure.p99:9.2f} {figure.most:9.2f} {figure.unit:3}"
            say(f"{figure.runtime:15} {figure.case:28} {words}  {'holds' if figure.holds else 'TOO FAR'}")

    if not as_json:
        say(f"beyond the limit, {samples} of each:              median       p99      most")
    figures: list[Figure] = []
    for each in runtime or list(Runtime):
        figures += overshoot(each.value, samples, show)
    kept = all(figure.holds for figure in figures)
    if as_json:
        body: dict[str, Any] = {"figures": [figure.as_dict() for figure in figures], "holds": kept}
        body["promised"] = {"p99_ms": P99_MS, "most_ms": MOST_MS, "most_mib": MOST_MIB}
        write_json(body)
    if check and not kept:
        raise typer.Exit(1)


app.command("rules")(bench_rules.rules)
