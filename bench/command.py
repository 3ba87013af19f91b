"""``lodger bench``: benchmarks of this host; with --check the stated bounds are asserted.

Each measurement is imported when its command runs. The command line loads this module by its name.
"""

from enum import StrEnum
from math import log10
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lodger.engine.core.errors import Usage
from lodger.engine.output.result_output import Group, say, write_result

if TYPE_CHECKING:
    from lodger.bench.attempts import Row
    from lodger.bench.budget import Budget
    from lodger.bench.scripts import Row as ScriptRow
    from lodger.bench.walls import Figure

app = Group(name="bench", help="Run benchmarks on this host.", no_args_is_help=True)


@app.callback()
def _bench() -> None:
    """Run benchmarks on this host."""


#: Of a promise's --check: fewer say nothing of one in a hundred.
FEWEST = 100


class Runtime(StrEnum):
    """Runtimes that can be measured."""

    QUICKJS = "quickjs"
    NATIVE = "quickjs-native"
    WASM = "wasm"


def _installed() -> list[Runtime]:
    from lodger.sandbox.runtimes.native_libraries import has_native

    return [each for each in Runtime if each is not Runtime.NATIVE or has_native()]


def _peers(help_text: str) -> Any:
    """Return the option that names the folder with the programs to compare with."""
    return typer.Option(
        metavar="FOLDER", exists=True, file_okay=False, envvar="LODGER_BENCH_PEERS", help=help_text
    )  # fmt: skip


IsolatedVm = Annotated[Path | None, _peers("Folder with node_modules of isolated-vm, to compare with.")]
CheckIsolatedVm = Annotated[
    bool,
    typer.Option("--check", help="Exit 1 unless the bounds hold, which are multiples of isolated-vm's figures."),
]


@app.command()
def walls(
    runtime: Annotated[
        list[Runtime] | None, typer.Option(help="Runtime to measure; may be repeated. Default: all that are installed.")
    ] = None,
    samples: Annotated[int, typer.Option(min=1, max=100_000, help="Samples of each program.")] = FEWEST,
    check: Annotated[
        bool, typer.Option("--check", help=f"Exit 1 unless every bound holds, with at least {FEWEST} samples each.")
    ] = False,
    svg: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write all samples as an SVG chart.")] = None,
) -> None:
    """Measure how far programs exceed their limits before they are stopped, while every core is busy."""
    from lodger.bench.wall_cases import MAX_MIB
    from lodger.bench.walls import COLUMNS, MAX_MS, P99_MS, overshoot

    if svg is not None:
        _require_matplotlib()
    if check and samples < FEWEST:
        raise Usage("too_few_samples", minimum=FEWEST)
    say(
        f"Use beyond the limit, {samples} samples of each program; the chart spans from the limit to the promised bound."
    )
    say(f"{'':45}   median       p99       max      │{'spread':^{COLUMNS}}│")
    figures: list[Figure] = []
    for each in runtime or _installed():
        figures += overshoot(each.value, samples, _show_figure)
    kept = all(figure.holds for figure in figures)
    if svg is not None:
        from lodger.bench.wall_picture import picture

        svg.write_text(picture(figures), encoding="utf-8")
    body: dict[str, Any] = {"figures": [figure.as_dict() for figure in figures], "holds": kept}
    body["promised"] = {"p99_ms": P99_MS, "most_ms": MAX_MS, "most_mib": MAX_MIB}
    write_result(body)
    worst = max((each.p99 for each in figures if each.unit == "ms"), default=0.0)
    say(f"bounds: 99 of 100 within {P99_MS:g} ms, all within {MAX_MS:g} ms; worst p99 {worst:.1f} ms")
    if check and not kept:
        raise typer.Exit(1)


def _show_figure(figure: "Figure") -> None:
    from lodger.bench.walls import spread

    words = f"{figure.p50:9.2f} {figure.p99:9.2f} {figure.maximum:9.2f} {figure.unit:3}"
    mark = "ok" if figure.holds else "EXCEEDED"
    say(f"{figure.runtime:15} {figure.case:28} {words}  │{spread(figure)}│  {mark}")


@app.command()
def attempts(
    runtime: Annotated[
        list[Runtime] | None, typer.Option(help="Runtime to measure; may be repeated. Default: all that are installed.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.1, max=600, help="Duration of each measurement in seconds.")] = 3.0,
    peers: IsolatedVm = None,
    check: CheckIsolatedVm = False,
) -> None:
    """Measure the pool: latency, attempts per second, CPU and page faults of a trivial script in all walls."""
    from lodger.bench import attempts as bench
    from lodger.bench import peers as others

    isolate = others.measure(peers, None).get("isolated-vm")
    if check and isolate is None:
        raise Usage("peer_missing")

    def show(row: "Row") -> None:
        say(
            f"{row.runtime:15} {row.row:28} {row.per_s:6.0f}/s  answer {row.answer_p50_ms:6.2f} {row.answer_p99_ms:7.2f} ms"
            f"  CPU {row.cpu_us / 1000:5.2f} ms ({row.worker_us / 1000:.2f} worker, {row.zygote_us / 1000:.2f} zygote,"
            f" {row.engine_us / 1000:.2f} engine)  {row.faults:4.0f} faults"
        )

    rows: list[Row] = []
    judged: list[Budget] = []
    for each in runtime or _installed():
        measured = bench.measure(each.value, seconds, show)
        rows += measured
        if isolate is not None and each != Runtime.WASM:
            judged += bench.budgets(each.value, measured, isolate)
    beside = bench.processes()
    _write({"rows": [row.as_dict() for row in rows], "beside_ms": beside, "isolated_vm": isolate}, judged)
    say("for comparison: " + ", ".join(f"a process of {name} {ms:.1f} ms" for name, ms in beside.items()))
    if isolate is not None:
        say(
            f"isolated-vm: {isolate['p50_ms']:.2f} ms, {isolate['cpu_ms']:.2f} ms of CPU for a new isolate and a script"
        )
    _judge(judged, check=check)


@app.command()
def scripts(
    attempts: Annotated[int, typer.Option(min=3, max=10_000, help="Attempts of each script.")] = 25,
    peers: IsolatedVm = None,
    check: CheckIsolatedVm = False,
) -> None:
    """Measure scripts that import the packages which come with Lodger: compiled in each attempt, and once per version."""
    import asyncio

    from lodger.bench import scripts as bench

    def show(row: "ScriptRow") -> None:
        image = (
            "" if row.image_ms is None else f"  from its image {row.image_ms:6.2f} ms {row.image_faults:5.0f} faults"
        )
        peer = "" if row.ratio is None else f"  isolated-vm {row.isolate_ms:6.2f} ms: {row.ratio:.2f} times"
        compiled = f"compiled {row.compiled_ms:6.2f} ms {row.compiled_faults:5.0f} faults"
        say(f"{row.script:18} {row.size_bytes:7} bytes  {compiled}{image}{peer}")

    rows = asyncio.run(bench.measure(attempts, peers, show))
    if check and all(row.isolate_ms is None for row in rows):
        raise Usage("peer_missing")
    judged = bench.budgets(rows)
    _write({"rows": [row.as_dict() for row in rows]}, judged)
    _judge(judged, check=check)


@app.command()
def storm(
    slots: Annotated[int, typer.Option(min=100, max=1_000_000, help="Number of slots at the one instant.")] = 20_000,
    tenants: Annotated[int, typer.Option(min=1, max=99_999, help="Number of tenants that have them.")] = 500,
    database: Annotated[
        str | None, typer.Option(metavar="URL", help="URL of an empty database. Default: a new SQLite file.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Exit 1 unless the promises hold.")] = False,
) -> None:
    """Measure slots that are due at one instant beside as many no-op actions, and a quiet tenant with and without them."""
    from lodger.bench.storm import measure

    found = measure(slots, tenants, database)
    _write(found.as_dict(), found.budgets)
    say(
        f"{found.slots} slots of {found.tenants} tenants at one instant: {found.rows} rows, {found.done} runs",
        f"no-op actions  {found.noop_s:7.2f} s for as many, stored before",
        f"rows           {found.accounted_s:7.2f} s after the instant, {found.accounted_s / found.noop_s:.2f} of that",
        f"runs           {found.done_s:7.2f} s after the instant",
        "quiet tenant   alone {:.0f} ms late (highest {:.0f}), beside the storm {:.0f} ms (highest {:.0f})".format(
            *found.quiet_alone_ms, *found.quiet_beside_ms
        ),
    )
    _judge(found.budgets, check=check)


@app.command()
def runs(
    runs: Annotated[int, typer.Option("--runs", min=10, max=1_000_000, help="Number of slots of each load.")] = 1000,
    tenants: Annotated[int, typer.Option(min=1, max=100_000, help="Number of tenants.")] = 20,
    rate: Annotated[
        float, typer.Option(min=0.1, max=100_000, help="Slots per second of the load in which runs come alone.")
    ] = 50.0,
    database: Annotated[
        str | None, typer.Option(metavar="URL", help="URL of an empty database. Default: a new SQLite file.")
    ] = None,
    peers: Annotated[
        Path | None,
        _peers(
            "Folder with node_modules of isolated-vm and graphile-worker, and bin/python with procrastinate. "
            "The queues also need --database with a PostgreSQL URL."
        ),
    ] = None,
    rtt_ms: Annotated[
        float,
        typer.Option(
            "--rtt-ms",
            min=0,
            max=1000,
            help="Put the server of --database, a PostgreSQL URL, so many milliseconds away: a proxy delays each round trip.",
        ),
    ] = 0.0,
    svg: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the delays as an SVG chart.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Exit 1 unless the stated ratios hold.")] = False,
) -> None:
    """Measure complete runs, from the due slot to the committed outcome, and for comparison the worker pool alone."""
    from lodger.bench.budgets import whole_runs
    from lodger.bench.runs import Row, measure

    if svg is not None:
        _require_matplotlib()

    def show(row: Row) -> None:
        say(
            f"{row.load:8} {row.per_s:6.0f}/s  start {row.start_p50_ms:8.1f} {row.start_p99_ms:8.1f} ms  done {row.done_p50_ms:8.1f}"
            f" {row.done_p99_ms:8.1f} ms  CPU {row.engine_ms:5.2f} engine {row.zygote_ms:5.2f} zygote {row.worker_ms:5.2f} worker ms"
            f"  {row.statements:5.2f} statements {row.switches:5.1f} waits {row.system_calls:5.1f} reads, writes"
            f" {row.faults:4.0f} faults"
        )

    if rtt_ms and not (database or "").startswith("postgres"):
        raise typer.BadParameter("--rtt-ms needs a PostgreSQL URL", param_hint="--database")
    say(f"{runs} runs of {tenants} tenants; delays from the slot, p50 and p99; CPU and statements per run")
    measured = measure(runs, tenants, rate, url=database, folder=peers, rtt_ms=rtt_ms, progress=show)
    if svg is not None:
        from lodger.bench.run_picture import picture

        svg.write_text(picture(measured.rows), encoding="utf-8")
    pool = measured.pool
    judged = [*whole_runs("PostgreSQL" if (database or "").startswith("postgres") else "SQLite", measured)]
    body = {"rows": [row.as_dict() for row in measured.rows], "pool": pool.as_dict(), "peers": measured.peers}
    _write(body, judged)
    say(
        f"pool     {pool.per_s:6.0f}/s  answer {pool.answer_p50_ms:.1f} {pool.answer_p99_ms:.1f} ms  CPU {pool.cpu_us / 1000:.2f} ms"
    )
    for name, figures in measured.peers.items():
        if "per_s" in figures:
            say(f"{name}: {figures['per_s']:.0f} jobs/s that do nothing")
        else:
            say(f"{name}: {figures['p50_ms']:.2f} ms, {figures['cpu_ms']:.2f} ms of CPU for a new isolate and a script")
    _judge(judged, check=check)


@app.command()
def budgets(
    number: Annotated[int, typer.Option("--runs", min=20, max=1_000_000, help="Number of slots of each load.")] = 400,
    database: Annotated[
        str | None, typer.Option(metavar="URL", help="URL of an empty PostgreSQL database. Default: SQLite alone.")
    ] = None,
    peers: Annotated[Path | None, _peers("Folder with node_modules of isolated-vm and graphile-worker.")] = None,
) -> None:  # fmt: skip
    """Measure all promised ratios beside their peers, and say which are kept, and by how much the others are missed."""
    from lodger.bench import budgets as bench

    if database is not None and not database.startswith("postgres"):
        raise typer.BadParameter(
            "it takes a PostgreSQL URL; SQLite is measured without it, in new files", param_hint="--database"
        )
    measured = []
    for each in bench.measure(number, database, peers):
        measured.append(each.as_dict())
        say(each.line())
    write_result({"budgets": measured})


@app.command()
def rules(
    svg: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the results as an SVG chart.")] = None,
) -> None:
    """Measure the time to find the next slot of typical and hostile rules, also with other installed libraries."""
    from lodger.bench.rules import measure

    if svg is not None:
        _require_matplotlib()
    rows = measure()
    if svg is not None:
        from lodger.bench.rule_picture import picture

        svg.write_text(picture(rows), encoding="utf-8")
    write_result({"unit": "us", "rules": rows})
    width = max(len(row["rule"]) for row in rows)
    say("Microseconds to find the next slot. The bars are logarithmic: five marks are a factor of ten.")
    for row in rows:
        for name in ("lodger", "dateutil", "cronsim"):
            if (us := row[name]) is not None:
                title = row["rule"] if name == "lodger" else ""
                say(f"{title:{width}}  {name:8}  {us:>12,.1f}  {'█' * max(1, round(log10(max(us, 1)) * 5 + 1))}")


@app.command()
def frames(
    count: Annotated[int, typer.Option("--frames", min=1, max=100_000_000, help="Number of frames.")] = 1_000_000,
    seed: Annotated[int, typer.Option(help="Seed of the frames.")] = 1,
    check: Annotated[bool, typer.Option("--check", help="Exit 1 unless every bound holds.")] = False,
) -> None:
    """Send mutated frames to the parent's end of a worker's socket, which must not raise, hang or grow in memory."""
    from lodger.bench.frames import MAX_GROWN_BYTES, SLOWEST_S, fuzz

    started = perf_counter()
    found = fuzz(count, seed)
    took_s = perf_counter() - started
    body: dict[str, Any] = {
        "frames": found.frames,
        "streams": found.streams,
        "seed": seed,
        "took_s": round(took_s, 1),
        "outcomes": dict(found.outcomes),
        "grown_bytes": found.grown_bytes,
        "slowest_ms": round(found.slowest_s * 1000, 1),
        "faults": found.faults,
        "holds": found.good,
        "promised": {"grown_bytes": MAX_GROWN_BYTES, "slowest_ms": SLOWEST_S * 1000},
    }
    write_result(body)
    say(f"{found.frames} frames of {found.streams} workers in {took_s:.0f} s, seed {seed}")
    say(", ".join(f"{count} {outcome}" for outcome, count in found.outcomes.most_common()))
    say(f"grown by {found.grown_bytes / 1e6:.1f} MB; longest time to a verdict {found.slowest_s * 1000:.0f} ms")
    for fault in found.faults:
        say(f"FAULT {fault}")
    say("ok" if found.good else "FAILED")
    if found.faults or (check and not found.good):
        raise typer.Exit(1)


def _write(body: dict[str, Any], judged: "list[Budget]") -> None:
    """Write the figures for a program, with what is promised of them."""
    holds = not any(each.missed for each in judged)
    write_result(body | {"budgets": [each.as_dict() for each in judged], "holds": holds})


def _judge(judged: "list[Budget]", *, check: bool) -> None:
    """Show what is promised; with ``check`` end with 1 if a promise is missed."""
    for each in judged:
        say(each.line())
    if check and any(each.missed for each in judged):
        raise typer.Exit(1)


def _require_matplotlib() -> None:
    """Raise before anything is measured if matplotlib, needed for a picture, is not installed.

    Raises:
        Usage: extra_missing.
    """
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise Usage("extra_missing.chart")
