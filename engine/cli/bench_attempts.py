"""``lodger bench attempts``: what one attempt costs here, without the ledger, beside the processes that others start for it."""

from typing import Annotated, Any

import typer

from lodger.engine.cli.bench_walls import Runtime
from lodger.engine.cli.output.answer import AsJson, say, write_json


def attempts(
    runtime: Annotated[list[Runtime] | None, typer.Option(help="Which; may be said again. Unless told, all.")] = None,
    seconds: Annotated[float, typer.Option(min=0.1, max=600, help="Of each row.")] = 3.0,
    check: Annotated[
        bool, typer.Option("--check", help="Exit 1 unless the promises for two quiet cores hold.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Measure the pool: latency, attempts per second, CPU and page faults of a trivial script in all walls."""
    from lodger.engine.bench.attempts import PROMISES, Row, broken, measure, peers

    def show(row: Row) -> None:
        if not as_json:
            say(
                f"{row.runtime:15} {row.row:28} {row.per_s:6.0f}/s  answer {row.answer_p50_ms:6.2f} {row.answer_p99_ms:7.2f} ms"
                f"  CPU {row.cpu_us / 1000:5.2f} ms ({row.worker_us / 1000:.2f} worker, {row.zygote_us / 1000:.2f} zygote,"
                f" {row.engine_us / 1000:.2f} engine)  {row.faults:4.0f} faults"
            )

    rows: list[Row] = []
    lines: list[str] = []
    for each in runtime or list(Runtime):
        measured = measure(each.value, seconds, show)
        rows += measured
        lines += broken(measured)
    beside = peers()
    if as_json:
        body: dict[str, Any] = {"rows": [row.as_dict() for row in rows], "beside_ms": beside, "holds": not lines}
        write_json(body | {"broken": lines, "promised": PROMISES})
    else:
        say("beside: " + ", ".join(f"a process of {name} {ms:.1f} ms" for name, ms in beside.items()))
        for line in lines:
            say(f"not kept here: {line}")
    if check and lines:
        raise typer.Exit(1)
