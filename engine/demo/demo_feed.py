"""Feeds the story of the demo: the engine's events as they happen, and schedules from the ledger."""

import asyncio
from typing import TYPE_CHECKING, Any

from lodger.engine.core.clock import from_us, from_us_or_none
from lodger.engine.core.events import Event
from lodger.engine.core.plain_text import code_frame
from lodger.engine.demo import demo_words
from lodger.engine.demo.story import Missed, Run, Story, Upcoming
from lodger.sandbox.limits import LIMITS
from lodger.sandbox.outcome import Outcome

if TYPE_CHECKING:
    from lodger.engine import Engine
    from lodger.engine.core.execution import Finished

_LIMITED = ({spec.outcome for spec in LIMITS} | {Outcome.STACK_LIMIT}) - {Outcome.OK}

_NOTES = {
    "lost": "{subject}: the run ended after another node had taken it over, and is discarded",
    "rescued": "{subject}: recovered from a lost node, now {state}",
    "node_lost": "node {node} is lost",
    "lease_lost": "this node lost its lease: {reason}",
    "fault": "{service}: {error}",
}


class Feed:
    """Listens to the engine until :meth:`stop`.

    Args:
        sources: a script's text by (tenant, script name), for the line of an error.
        missed_after_s: a slot later than this was due while the engine was off.

    Attributes:
        late_ms: start minus due of each attempt that came due since the story began, and was not missed.
    """

    def __init__(
        self, engine: "Engine", story: Story, sources: dict[tuple[str, str], str], missed_after_s: float
    ) -> None:
        self._engine, self._story, self._sources = engine, story, sources
        self._missed_s = missed_after_s
        self._names: dict[str, str] = {}
        self._started: dict[str, tuple[int, float]] = {}
        self.late_ms: list[float] = []
        self._loop = asyncio.get_running_loop()
        self._forget = engine.on_event(self._heard)

    def stop(self) -> None:
        """Stop listening."""
        self._forget()

    async def look(self) -> None:
        """Read the schedules and their next slots."""
        found = await self._engine.schedules.list()
        self._names = {each.id: each.name for each in found}
        self._story.upcoming = tuple(
            Upcoming(each.tenant_id, each.name, each.text, each.next_at, each.state) for each in found
        )

    def _heard(self, event: Event) -> None:
        # Events come from the thread that did the thing; the story belongs to the loop.
        self._loop.call_soon_threadsafe(self._tell, event)

    def _tell(self, event: Event) -> None:
        details = event.details
        match event.kind:
            case "started" if event.action_id:
                late_ms = details["lateness_ms"]
                self._started[event.action_id] = (event.at_us, late_ms / 1000)
                if from_us(details["due_us"]) >= self._story.begun and late_ms <= self._missed_s * 1000:
                    self.late_ms.append(late_ms)
            case "finished" if event.action_id:
                self._story.tell(self._run(event, *self._started.pop(event.action_id, (event.at_us, 0.0))))
            case "skipped":
                first = details["slot_us"]
                last = first if details["slot_to_us"] is None else details["slot_to_us"]
                name = self._names.get(event.schedule_id or "", "?")
                gap = Missed(event.tenant_id or "?", name, from_us(first), from_us(last), details["reason"] or "")
                self._story.tell(gap)
            case kind if kind in _NOTES:
                subject = f"{event.tenant_id}/{self._names.get(event.schedule_id or '', 'a request')}"
                self._story.tell(_NOTES[kind].format(subject=subject, **details))

    def _run(self, event: Event, started_us: int, late_s: float) -> Run:
        details = event.details
        finished: Finished = details["finished"]
        tenant, script, slot = event.tenant_id or "?", details["script"], details["slot_us"]
        outcome = Outcome(details["outcome"])
        error = finished.error
        source = self._sources.get((tenant, script), "")
        stopped = _stopped(outcome, finished)
        return Run(
            at=from_us(started_us),
            tenant=tenant,
            name=self._names.get(event.schedule_id or "", script),
            slot=from_us_or_none(slot),
            late_s=late_s,
            missed=late_s > self._missed_s,
            outcome=outcome.value,
            said=demo_words.result(finished.result) if error is None else f"{error.name}: {error.message}",
            place=() if error is None or stopped else tuple(code_frame(source, error.line, error.column, before=1)),
            stopped_by=stopped,
        )


def _stopped(outcome: Outcome, finished: "Finished") -> str | None:
    """Return the limit that ended a run, with its value."""
    if outcome not in _LIMITED or outcome is Outcome.BAD_REQUEST:
        return None
    used: Any = {
        Outcome.CPU_LIMIT: f"after {finished.usage.cpu_ms:.0f} ms of CPU",
        Outcome.WALL_LIMIT: f"after {finished.usage.wall_ms:.0f} ms",
        Outcome.MEMORY_LIMIT: f"at {finished.usage.memory_peak_bytes / 1_048_576:.0f} MiB",
    }.get(outcome, "")
    line = f" in line {finished.error.line}" if finished.error is not None and finished.error.line else ""
    last = f"; last log line{line}: {finished.logs[-1].text}" if finished.logs else ""
    return f"stopped by the {outcome.value.replace('_', ' ')} {used}{last}".rstrip()
