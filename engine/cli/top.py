"""``lodger top``: the overview for the terminal: what runs, what is overdue and why, nodes and failures, until q is pressed."""

import sys
from collections.abc import Iterable, Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lodger.engine.cli.ledger import opened
from lodger.engine.core.plain_text import one_line
from lodger.engine.output.keys import END, keys
from lodger.engine.output.result_output import AsJson, Database, console, write_json
from lodger.engine.service.humanize import explain_wait, humanize_duration

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from lodger.engine.sync import Engine

#: Rows of each list, and lines of the frame that are no rows.
MAX_ROWS, OTHER_LINES = 10, 21
_BLOCKS = " ▁▂▃▄▅▆▇█"


def top(
    tenant: Annotated[str | None, typer.Argument(help="Only this tenant; all tenants when left out.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Print one frame and end.")] = False,
    interval: Annotated[float, typer.Option(min=0.2, max=3600, help="Seconds between two frames.")] = 2.0,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show live what runs, what is due or overdue and why, the last hour, nodes and failures; q quits."""
    with opened(db) as engine:
        if as_json:
            write_json(look(engine, tenant))
        elif once or not sys.stdout.isatty():
            console().print(frame(look(engine, tenant), MAX_ROWS))
        else:
            _follow(engine, tenant, interval)


def look(engine: "Engine", tenant: str | None) -> dict[str, Any]:
    """Return what one frame shows; nodes only for all tenants, because a tenant's role does not see them."""
    return {
        "activity": engine.actions.activity(tenant),
        "running": engine.actions.running(tenant, limit=MAX_ROWS),
        "overdue": engine.actions.overdue(tenant, limit=MAX_ROWS),
        "nodes": engine.nodes.list() if tenant is None else None,
    }


def _follow(engine: "Engine", tenant: str | None, interval: float) -> None:
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False)
    with keys() as pressed, Live(console=console, screen=True, auto_refresh=False) as shown:
        while True:
            rows = max(1, min(MAX_ROWS, (console.height - OTHER_LINES) // 4))
            shown.update(frame(look(engine, tenant), rows), refresh=True)
            if pressed(interval) in {"q", "Q", END}:
                return


def frame(seen: dict[str, Any], rows: int) -> "RenderableType":
    """Return one frame with at most ``rows`` entries of each list."""
    from rich.console import Group

    activity = seen["activity"]
    parts: list[RenderableType] = [*_figures(activity), *_hour(activity)]
    parts += _section(
        "Overdue",
        ("schedule", "tenant", "waits", "reason"),
        (
            (each.schedule or "–", each.tenant_id, _ms(each.waits_ms), explain_wait(each))
            for each in seen["overdue"][:rows]
        ),
        "yellow",
    )
    parts += _section(
        "Running",
        ("schedule", "tenant", "for", "usually", "node"),
        (
            (
                each.schedule or each.script or "–", each.tenant_id, _ms(each.elapsed_ms) + (" slow" if each.slow else ""),
                _ms(each.pace.median_ms) if each.pace.runs else "–", each.node or "–",
            )
            for each in seen["running"][:rows]
        ),
    )  # fmt: skip
    parts += _section(
        "Failures of the last hour",
        ("ended", "schedule", "tenant", "outcome", "error"),
        (
            (
                f"{each.finished_at.astimezone(UTC):%H:%M:%S}", each.schedule or each.script or "–", each.tenant_id,
                each.outcome.value if each.outcome else each.reason or each.state,
                f"{each.error.name}: {each.error.message}" if each.error else "",
            )
            for each in activity.failures[:rows]
        ),
        "red",
    )  # fmt: skip
    if seen["nodes"] is not None:
        parts += _section(
            "Nodes",
            ("node", "state", "version", "load", "saturated", "walls"),
            (
                (
                    each.name, each.state, each.version, f"{each.running} of {each.slots}",
                    "–" if each.saturation is None else f"{each.saturation:.0%}", _walls(each.walls),
                )
                for each in seen["nodes"][:rows]
            ),
        )  # fmt: skip
    return Group(*parts)


def _figures(activity: Any) -> Iterable["RenderableType"]:
    head = _text(" Lodger ", "bold reverse")
    yield head.append(f"  {activity.at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC", "not bold not reverse")
    now = _text(f"running {activity.running}   due {activity.due}   ")
    yield now.append(f"overdue {activity.overdue}", "bold yellow" if activity.overdue else "")
    hour = _text(f"last hour: {activity.done + activity.failed} ended, ")
    hour.append(f"{activity.failed} failed", "bold red" if activity.failed else "")
    outcomes = ", ".join(f"{name} {number}" for name, number in activity.outcomes.items())
    yield hour.append(f" ({outcomes})" if outcomes else "")


def _hour(activity: Any) -> Iterable["RenderableType"]:
    """Yield the last hour as two lines of blocks, two minutes each."""
    pairs = list(zip(activity.minutes[::2], activity.minutes[1::2], strict=True))
    ended = [sum(each.done + each.failed for each in pair) / 2 for pair in pairs]
    late = [max(each.late_p99_ms or 0.0 for each in pair) for pair in pairs]
    lateness = f"p50 {_ms(activity.late_p50_ms)}, p99 {_ms(activity.late_p99_ms)}"
    yield _text(f"ended      ▕{blocks(ended)}▏ at most {max(ended):g} a minute")
    yield _text(f"late, p99  ▕{blocks(late)}▏ {lateness}")


def blocks(values: Sequence[float]) -> str:
    """Return values as a line of blocks, the largest full; a value above zero is never invisible."""
    top = max(values, default=0) or 1
    return "".join(_BLOCKS[0 if value <= 0 else max(1, round(value / top * 8))] for value in values)


def _section(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], style: str = ""
) -> Iterable["RenderableType"]:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    yield _text("")
    yield _text(title, f"bold {style}".strip())
    found = list(rows)
    if not found:
        yield _text("none", "dim")
        return
    grid = Table(box=SIMPLE_HEAD, header_style="dim", pad_edge=False, show_edge=False, expand=True)
    for column in columns:
        grid.add_column(column, no_wrap=True, overflow="ellipsis", ratio=1 if column == columns[-1] else None)
    for row in found:
        grid.add_row(*(_text(cell) for cell in row))
    yield grid


def _text(text: str, style: str = "") -> "Text":
    """Return text of scripts and tenants: never markup, never a control character, one line."""
    from rich.text import Text

    return Text(one_line(text), style, no_wrap=True, overflow="ellipsis")


def _walls(walls: dict[str, bool] | None) -> str:
    if not walls:
        return "–"
    missing = [name for name, active in walls.items() if not active]
    return f"{len(walls) - len(missing)} of {len(walls)}" + (f", no {', '.join(missing)}" if missing else "")


def _ms(milliseconds: float | None) -> str:
    return "–" if milliseconds is None else humanize_duration(milliseconds / 1000)
