"""``lodger bench frames``: workers that say anything at all, seeded, a million frames of them."""

from time import perf_counter
from typing import Annotated, Any

import typer

from lodger.engine.cli.output.answer import AsJson, say, write_json


def frames(
    count: Annotated[int, typer.Option("--frames", min=1, max=100_000_000, help="How many frames.")] = 1_000_000,
    seed: Annotated[int, typer.Option(help="The same seed sends the same frames.")] = 1,
    check: Annotated[bool, typer.Option("--check", help="Exit 1 unless every promise holds.")] = False,
    as_json: AsJson = False,
) -> None:
    """Mutated frames against the parent's side of a worker's socket: always a verdict, no exception, memory flat."""
    from lodger.sandbox.escape.frame_fuzz import MOST_GROWN_BYTES, SLOWEST_S, fuzz

    started = perf_counter()
    found = fuzz(count, seed)
    took_s = perf_counter() - started
    if as_json:
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
            "promised": {"grown_bytes": MOST_GROWN_BYTES, "slowest_ms": SLOWEST_S * 1000},
        }
        write_json(body)
    else:
        say(f"{found.frames} frames of {found.streams} workers in {took_s:.0f} s, seed {seed}")
        say(", ".join(f"{count} {outcome}" for outcome, count in found.outcomes.most_common()))
        say(f"grown by {found.grown_bytes / 1e6:.1f} MB; slowest worker judged after {found.slowest_s * 1000:.0f} ms")
        for fault in found.faults:
            say(f"FAULT {fault}")
        say("holds" if found.good else "DOES NOT HOLD")
    if found.faults or (check and not found.good):
        raise typer.Exit(1)
