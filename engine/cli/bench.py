"""``lodger bench``: what this host really does, measured; with --check the promises are asserted."""

import typer

from lodger.engine.cli import bench_attempts, bench_frames, bench_rules, bench_walls

app = typer.Typer(name="bench", help="Measure this host.", no_args_is_help=True)


@app.callback()
def _bench() -> None:
    """Measure this host."""


app.command("walls")(bench_walls.walls)
app.command("attempts")(bench_attempts.attempts)
app.command("rules")(bench_rules.rules)
app.command("frames")(bench_frames.frames)
