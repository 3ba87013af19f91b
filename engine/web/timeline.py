"""The timeline of one action: its phases from the due instant to the last delivery."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import log10
from typing import Any

from lodger.engine.web.charts import duration_text
from lodger.engine.web.texts import _

#: Deliveries that are shown.
MOST = 8


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of a timeline: how it begins, what it is, and until when.

    Attributes:
        begins: the event at its start.
        kind: class of its bar; empty for the end of the timeline, which has none.
        words: what happens, under the bar.
        logged: instants of log lines within it.
    """

    start: datetime
    end: datetime
    begins: str
    kind: str = ""
    words: str = ""
    logged: tuple[datetime, ...] = ()

    @property
    def width(self) -> int:
        """Least width of the bar, pixels: more for each tenfold duration above a millisecond."""
        return round(80 + 16 * log10(1 + _ms(self.start, self.end)))

    @property
    def marks(self) -> list[float]:
        """The shares of the bar at which lines were logged."""
        length = max(self.end - self.start, timedelta(microseconds=1))
        return [min(1.0, max(0.0, (each - self.start) / length)) for each in self.logged]


def timeline(action: Any, attempts: Sequence[Any], deliveries: Sequence[Any], now: datetime) -> list[Phase]:
    """Return the phases of an action and its end; nothing for one that ended without an attempt."""
    if action.finished_at is not None and not attempts:
        return []
    phases = list(_phases(action, attempts, deliveries, now))
    last = _("now") if action.finished_at is None else (_("sent") if _sent(deliveries) else _written(action))
    return [*phases, Phase(phases[-1].end, phases[-1].end, last)]


def _phases(action: Any, attempts: Sequence[Any], deliveries: Sequence[Any], now: datetime) -> Iterator[Phase]:
    """Yield the phases of an action's life in order."""
    at, event = min((action.due_at, *(each.started_at for each in attempts))), _("due")
    for each in attempts:
        if each.started_at > at or each is attempts[0]:
            yield _wait(at, each.started_at, event)
        yield from _attempt(each, len(attempts) > 1, now)
        at, event = each.finished_at or now, _ended(each)
    if action.finished_at is None and not (attempts and attempts[-1].finished_at is None):
        yield _wait(at, max(at, now), event)
    event = _written(action)
    for each in _sent(deliveries):
        sent = max(at, each.sent_at)
        yield Phase(at, sent, event, "send", _("{0} to {1}", each.kind, each.to[0] if each.to else "–")[:24])
        at, event = sent, _("sent")


def _wait(start: datetime, end: datetime, event: str) -> Phase:
    """Return the phase between an event and the next attempt."""
    return Phase(start, end, event, "wait", _("waits {0}", duration_text(_ms(start, end))))


def _attempt(attempt: Any, numbered: bool, now: datetime) -> Iterator[Phase]:
    """Yield how an attempt ran, and how its effects were committed, or its failure was recorded."""
    over = attempt.finished_at
    begins = _("step {0}, attempt {1}", attempt.step + 1, attempt.n) if numbered else _("started")
    logged = tuple(datetime.fromtimestamp(each.us / 1e6, UTC) for each in attempt.logs[:200] if each.us)
    if over is None:
        yield Phase(attempt.started_at, now, begins, "running", duration_text(_ms(attempt.started_at, now)), logged)
        return
    kind = "ok" if attempt.outcome.value == "ok" else "failed"
    end = min(over, attempt.started_at + timedelta(milliseconds=attempt.usage.wall_ms))
    calls = attempt.usage.host_calls
    called = _("1 host call") if calls == 1 else _("{0} host calls", calls)
    yield Phase(attempt.started_at, end, begins, kind, f"{duration_text(attempt.usage.wall_ms)}, {called}", logged)
    if over > end:
        yield Phase(end, over, _ended(attempt), f"commit {kind}", _("writes {0}", duration_text(_ms(end, over))))


def _ended(attempt: Any) -> str:
    """Return the word for the end of an attempt."""
    return _("failed") if attempt.outcome is not None and attempt.outcome.value != "ok" else _("ended")


def _written(action: Any) -> str:
    """Return the word for the end of an action."""
    return _("committed") if action.state == "done" else _("recorded")


def _sent(deliveries: Sequence[Any]) -> list[Any]:
    """Return the sent deliveries in their order."""
    return sorted((each for each in deliveries if each.sent_at is not None), key=lambda each: each.sent_at)[:MOST]


def _ms(start: datetime, end: datetime) -> float:
    """Return the time from one instant to a later one in milliseconds."""
    return max(0.0, (end - start).total_seconds() * 1000)
