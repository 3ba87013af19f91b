"""Summary of the demo, with every figure counted from the ledger."""

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import datetime
from statistics import quantiles
from typing import TYPE_CHECKING, Any

from lodger.engine.service.humanize import humanize_duration

if TYPE_CHECKING:
    from lodger.engine.store.records import Action
    from lodger.engine.sync import Engine

PAGE = 500


@dataclass(slots=True)
class Line:
    """One schedule, or one script that was asked for once."""

    tenant: str
    name: str
    ran: int = 0
    failed: int = 0
    gaps: int = 0
    waiting: int = 0
    last: str = ""
    next_at: datetime | None = None
    text: str = ""


@dataclass(slots=True)
class Summary:
    """The whole; times in milliseconds.

    Attributes:
        states, outcomes: actions by state and by outcome.
        live_late_ms: start minus due of the slots that were not missed: p50, p99, worst, how many.
        mails: as the outbox counts them, by state.
    """

    began: datetime
    ended: datetime
    lines: list[Line] = field(default_factory=list)
    states: dict[str, int] = field(default_factory=dict)
    outcomes: dict[str, int] = field(default_factory=dict)
    live_late_ms: dict[str, float] = field(default_factory=dict)
    mails: dict[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the summary as the object that ``--json`` shows."""
        return asdict(self)


def summarise(engine: "Engine", began: datetime, ended: datetime, late_ms: list[float]) -> Summary:
    """Return counts and lateness of all runs of a ledger.

    Args:
        late_ms: start minus due of each live attempt. The ledger has the planned start.
    """
    summary = Summary(began, ended)
    lines: dict[tuple[str, str], Line] = {}
    for schedule in engine.schedules.list():
        key = (schedule.tenant_id, schedule.name)
        lines[key] = Line(*key, next_at=schedule.next_at, text=schedule.text)
    states: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    for action in _all(engine):
        key = (action.tenant_id, action.schedule or action.script or "?")
        _count(lines.setdefault(key, Line(*key)), action)
        states[action.state] += 1
        if action.outcome is not None:
            outcomes[action.outcome.value] += 1
    summary.lines = sorted(lines.values(), key=lambda line: (line.tenant, line.name))
    summary.states, summary.outcomes = dict(states), dict(outcomes)
    summary.live_late_ms = _spread(late_ms)
    summary.mails = _mails(engine)
    return summary


def _all(engine: "Engine") -> "list[Action]":
    """Return all actions of the ledger."""
    found: list[Action] = []
    while page := engine.actions.list(limit=PAGE, before=found[-1].id if found else None):
        found += page
    return found


def _count(line: Line, action: "Action") -> None:
    """Count an action in the line of its schedule."""
    match action.state:
        case "done":
            line.ran += 1
        case "failed":
            line.failed += 1
        case "skipped":
            line.gaps += 1
        case _:
            line.waiting += 1
    if not line.last and action.state in {"done", "failed"}:
        # Newest first: the first one seen is the last that ran.
        line.last = action.outcome.value if action.outcome else ""


def _spread(late: list[float]) -> dict[str, float]:
    """Return the percentiles of latenesses."""
    if len(late) < 2:
        return {"p50": late[0], "p99": late[0], "worst": late[0], "slots": 1} if late else {}
    cuts = quantiles(late, n=100, method="inclusive")
    return {"p50": cuts[49], "p99": cuts[98], "worst": max(late), "slots": len(late)}


def _mails(engine: "Engine") -> dict[str, int]:
    """Count mails by state."""
    from sqlalchemy import func, select

    from lodger.engine.store.schema.script_data import outbox

    with engine.context.database.read() as connection:
        rows = connection.execute(select(outbox.c.state, func.count().label("n")).group_by(outbox.c.state))
        return {row.state: row.n for row in rows}


def shown(summary: Summary, write: Callable[[str], None]) -> None:
    """Write the summary for people."""
    seconds = (summary.ended - summary.began).total_seconds()
    write(f"The ledger after {humanize_duration(seconds)}:")
    width = max((len(f"{line.tenant}/{line.name}") for line in summary.lines), default=0)
    for line in summary.lines:
        parts = [f"{line.ran} ran" if line.ran else "", f"{line.failed} failed" if line.failed else ""]
        parts += [f"{line.gaps} {'gap' if line.gaps == 1 else 'gaps'}" if line.gaps else ""]
        parts += [f"{line.waiting} waiting" if line.waiting else ""]
        upcoming = f"; next {line.next_at:%a %d %b %H:%M:%S} UTC" if line.next_at else ""
        counts = ", ".join(part for part in parts if part) or "no actions yet"
        last = f" (last: {line.last})" if line.failed else ""
        write(f"  {f'{line.tenant}/{line.name}':{width}}  {counts}{last}{upcoming}")
    if late := summary.live_late_ms:
        figures = f"p50 {late['p50']:.1f} ms, p99 {late['p99']:.1f} ms, maximum {late['worst']:.1f} ms"
        write(f"Live slots started {figures} after they were due ({late['slots']:.0f} slots).")
    mails = ", ".join(f"{count} {state}" for state, count in sorted(summary.mails.items()))
    write(f"Mails: {mails or 'none'}.")
