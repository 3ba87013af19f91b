"""The lines that the demo writes about the engine's events as they happen."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lodger.engine.core.clock import from_us
from lodger.engine.core.events import Event
from lodger.engine.core.plain_text import code_frame
from lodger.engine.output import event_lines
from lodger.engine.service.humanize import humanize_duration
from lodger.sandbox.outcome import Outcome

if TYPE_CHECKING:
    from lodger.engine import Engine
    from lodger.engine.effects.finished import Finished

_REASONS = {"missed": "missed while the engine was off", "overlap": "an earlier run had not ended"}


class Feed:
    """Writes a line for each run, gap of missed slots and note, until :meth:`stop`.

    Args:
        write: prints one line.
        sources: a script's text by (tenant, script name), for the line of an error.
        missed_after_s: a slot later than this was due while the engine was off.

    Attributes:
        late_ms: start minus due of each attempt that came due since the demo began, and was not missed.
    """

    def __init__(
        self,
        engine: "Engine",
        write: Callable[[str], None],
        sources: dict[tuple[str, str], str],
        missed_after_s: float,
    ) -> None:
        self._engine, self._write, self._sources = engine, write, sources
        self._missed_s = missed_after_s
        self._begun = self._now()
        self._names: dict[str, str] = {}
        self._late_s: dict[str, float] = {}
        self._announced = False
        self.late_ms: list[float] = []
        self._loop = asyncio.get_running_loop()
        # Events come from the thread that did the thing; the lines belong to the loop.
        self._forget = engine.on_event(lambda event: self._loop.call_soon_threadsafe(self._tell, event))

    def stop(self) -> None:
        """Stop listening to events of the engine."""
        self._forget()

    def _now(self) -> datetime:
        """Return the present instant of the demonstration's clock."""
        return from_us(self._engine.context.clock.now_us())

    async def look(self) -> None:
        """Read the schedules; write their next slots once, when all that was missed has its row."""
        found, now = await self._engine.schedules.list(), self._now()
        self._names = {each.id: each.name for each in found}
        if self._announced or not found or any(each.next_at is not None and each.next_at < now for each in found):
            return
        self._announced = True
        for each in found:
            soon = "no further slot" if each.state == "armed" else str(each.state)
            if each.next_at is not None:
                soon = f"in {humanize_duration(max(1.0, (each.next_at - now).total_seconds()))}"
            self._write(f"due     {each.tenant_id}/{each.name}: {each.text}; next {soon}")

    def _tell(self, event: Event) -> None:
        """Print the line of an event of the demonstration."""
        details = event.details
        match event.kind:
            case "started" if event.action_id:
                late_ms = details["lateness_ms"]
                self._late_s[event.action_id] = late_ms / 1000
                if from_us(details["due_us"]) >= self._begun and late_ms <= self._missed_s * 1000:
                    self.late_ms.append(late_ms)
            case "finished" if event.action_id:
                self._run(event, self._late_s.pop(event.action_id, 0.0))
            case "skipped":
                self._write(f"missed  {self._subject(event)}: {_missed(details)}")
            case "lost" | "rescued" | "node_lost" | "lease_lost" | "fault":
                self._write(f"note    {event_lines.line(event)}")

    def _subject(self, event: Event) -> str:
        """Return tenant and name of an event's schedule or script."""
        name = self._names.get(event.schedule_id or "", event.details.get("script", "a request"))
        return f"{event.tenant_id}/{name}"

    def _run(self, event: Event, late_s: float) -> None:
        """Print the line of an ended run, which started ``late_s`` seconds after it was due."""
        details = event.details
        finished: Finished = details["finished"]
        error, stopped = finished.error, _stopped(Outcome(details["outcome"]), finished)
        late = f"{max(0.0, late_s) * 1000:.0f} ms late"
        if details["slot_us"] is None:
            late = "requested"
        elif late_s > self._missed_s:
            late = f"missed {humanize_duration(late_s)} ago"
        head = "ran     " if details["outcome"] == Outcome.OK else "stopped " if stopped else "failed  "
        said = stopped or (finished.result if error is None else f"{error.name}: {error.message}")
        self._write(f"{head}{self._subject(event)} ({late}): {said or 'no result'}")
        if error is not None and not stopped:
            source = self._sources.get((event.tenant_id or "", details["script"]), "")
            for line in code_frame(source, error.line, error.column, before=1):
                self._write("        " + line)


def _missed(details: Any) -> str:
    """Return the words for a gap of missed slots."""
    first, last = (
        f"{from_us(us):%d %b %H:%M:%S}" for us in (details["slot_us"], details["slot_to_us"] or details["slot_us"])
    )
    reason = _REASONS.get(details["reason"] or "", (details["reason"] or "").replace("_", " "))
    if first == last:
        return f"slot {first} did not run: {reason}"
    return f"slots {first} to {last} did not run: {reason}; one gap row in the ledger"


def _stopped(outcome: Outcome, finished: "Finished") -> str | None:
    """Return the limit that ended a run in words, None if none did."""
    error = finished.error
    if error is None or error.name != "LimitExceeded":
        return None
    last = f"; last log line: {finished.logs[-1].text}" if finished.logs else ""
    line = f" (line {error.line})" if error.line else ""
    return f"stopped by the {outcome.value.replace('_', ' ')}: {error.message}{line}{last}"
