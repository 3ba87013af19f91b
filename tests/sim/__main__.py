"""``python -m tests.sim``: simulate nodes on a virtual clock, with faults between any two statements."""

import os
import re
import sys
from collections.abc import Iterable
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from tests import console

from lodger.engine.core.errors import Usage
from lodger.engine.output.progress import bar
from lodger.engine.output.result_output import Group, say, table, write_result

if TYPE_CHECKING:
    from tests.sim.simulator.plan import Plan
    from tests.sim.simulator.proof import Played, Proof


class Size(StrEnum):
    """Sizes of simulated worlds."""

    SMALL = "small"
    DENSE = "dense"
    STORM = "storm"


def sim(
    seed: Annotated[int, typer.Option(help="The world to play; with --slots or --minutes the first of many.")] = 1,
    seeds: Annotated[str | None, typer.Option(metavar="A-B", help="Play every world from A to B.")] = None,
    slots: Annotated[
        int | None, typer.Option(min=1, help="Go on with more worlds until so many slots had rows of their own.")
    ] = None,
    minutes: Annotated[float | None, typer.Option(min=0.01, help="Go on with more worlds for so long.")] = None,
    shape: Annotated[
        Size,
        typer.Option(
            help="small: much trouble for few schedules; dense: hundreds of schedules; storm: a slot of each every second."
        ),
    ] = Size.SMALL,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, max=256, help="Processes; as many as there are cores when left out."),
    ] = None,
    plan: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="Play the world of this file, see --keep.")
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(dir_okay=False, help="Where to write the shortened plan of a world that broke a law.")
    ] = None,
    shorten: Annotated[float, typer.Option(min=0, help="Seconds for shortening the plan of such a world.")] = 60.0,
) -> None:
    """Play simulated worlds: nodes that crash, freeze and lose their leases, on the real SQLite ledger.

    Each world depends on its seed alone. After every transaction the laws are checked: each slot accounted once, effects at
    most once, the next slot of each schedule armed, leases exclusive, no tenant starved. The first world that breaks a law ends
    the run: its seed and the shortest list of events that breaks the law are printed, and the exit code is 1. The output
    is the same with any number of processes.
    """
    import logging

    from tests.sim.simulator.plan import SHAPES, draw_plan
    from tests.sim.simulator.proof import play, prove

    logging.getLogger("lodger").setLevel(logging.CRITICAL)  # failures of the database are expected

    def reported(played: "Played") -> None:
        say(_line(played))
        sys.stdout.flush()  # a world takes seconds: flush, so that a reader of a pipe sees it at once

    if plan is not None:
        given = _read(plan)
        played = play(given)
        reported(played)
        if played.law is not None:
            _print_world(played, given)
        write_result({"seed": played.seed, "law": played.law, "detail": played.detail, "recent": list(played.recent)})
        raise typer.Exit(int(played.law is not None))

    def enough(proof: "Proof") -> bool:
        if proof.failures:
            return True
        full = slots is not None and proof.figures["slots"] >= slots
        return full or (minutes is not None and proof.seconds >= minutes * 60)

    wanted = _seeds(seed, seeds, endless=slots is not None or minutes is not None)
    many = len(wanted) if isinstance(wanted, range) else None
    with bar("worlds", "played", quiet=many == 1) as advance:
        done = count(1)

        def heard(played: "Played") -> None:
            reported(played)
            advance(next(done))

        jobs = jobs or len(os.sched_getaffinity(0))
        proof = prove(wanted, SHAPES[shape.value], heard, enough=enough, jobs=min(jobs, many or jobs))
    body = proof.as_dict()
    _print_sum(proof)
    if proof.failures:
        first = proof.failures[0]
        whole = draw_plan(first.seed, SHAPES[shape.value])
        body["shortest"] = _shorten(first, whole, shorten, keep)
    write_result(body)
    raise typer.Exit(int(bool(proof.failures)))


def _shorten(played: "Played", whole: "Plan", seconds: float, keep: Path | None) -> list[str]:
    """Shorten the plan of a world that broke a law, and print it; return the events that are left, as text."""
    from tests.sim.simulator.proof import play, shortened

    short = shortened(whole, played, seconds)
    if keep is not None:
        keep.write_text(short.plan.as_json())
    say(f"shortened from {len(whole.events)} events, {short.tried} worlds played for it:")
    _print_world(play(short.plan), short.plan)
    return [str(each) for each in short.plan.events]


def _print_world(played: "Played", plan: "Plan") -> None:
    """Print the plan of a world and its last transactions."""
    say(
        f"world {plan.seed}, settings {plan.settings}, {plan.shape.nodes} nodes, {plan.shape.tenants} tenants; what happens:"
    )
    for each in plan.events:
        say(f"  {each}")
    say("the last transactions:")
    for line in played.recent[-25:]:
        say(f"  {line}")
    say(f"BROKEN after {played.at_s:.3f} s: {played.law}: {played.detail}")


def _line(played: "Played") -> str:
    """Return one line about a world."""
    figures = played.figures
    said = (
        f"world {played.seed}: {figures.get('slots', 0)} slots, {figures.get('attempts', 0)} attempts, "
        f"{figures.get('transactions', 0)} transactions"
    )
    return said if played.law is None else f"{said}  BROKEN: {played.law}: {played.detail}"


def _print_sum(proof: "Proof") -> None:
    """Print the table of all worlds together."""
    figures = proof.figures
    faults = sum(number for name, number in figures.items() if name.startswith("fault "))
    ended = "every law held" if not proof.failures else f"A LAW IS BROKEN, world {proof.failures[0].seed}"
    rows = (
        ("worlds", proof.worlds, ended),
        ("slots", figures["slots"], f"with rows of their own, {figures['slots_run']} of them to run"),
        ("slots in gaps", figures["slots_in_gaps"], f"inside {figures['gaps']} gap rows"),
        ("attempts", figures["attempts"], f"and {figures['effects']} sets of effects"),
        ("faults", faults, "crashes and refusals between two statements or at a commit"),
        ("slots a minute", f"{proof.per_minute:.0f}", f"{proof.per_minute_in_all:.0f} with those inside gap rows"),
        ("of CPU time", f"{proof.per_cpu_minute:.0f}", "slots a minute of one core, whole worlds"),
    )
    table(("", "", ""), rows)


def _seeds(seed: int, seeds: str | None, *, endless: bool) -> Iterable[int]:
    """Return the seeds that a command line asks for; raises Usage."""
    if seeds is not None:
        found = re.fullmatch(r"([0-9]{1,18})(?:-|\.\.)([0-9]{1,18})", seeds)
        if found is None or int(found[1]) > int(found[2]):
            raise Usage(
                "seeds_invalid",
                f"{seeds!r} is no range of seeds",
                why="a range is two whole numbers below 10^18, the smaller first",
                fix="--seeds 1-100",
            )
        return range(int(found[1]), int(found[2]) + 1)
    return count(seed) if endless else range(seed, seed + 1)


def _read(path: Path) -> "Plan":
    from tests.sim.simulator.plan import read

    try:
        return read(path.read_text())
    except (ValueError, TypeError, KeyError) as error:
        raise Usage(
            "plan_unreadable", f"{path} is no plan: {error}", fix="give a file that --keep has written"
        ) from None


app = Group(add_completion=False)
app.command()(sim)


def main(arguments: list[str]) -> int:
    """Run one command line and return its exit code."""
    return console.run(app, "python -m tests.sim", arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
