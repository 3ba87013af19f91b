"""The timeline of one action: its phases from the due instant to the last delivery."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import log10
from typing import Any

from lodger.engine.web.charts import duration_text
from lodger.engine.web.texts import _, filled

#: Attempts and deliveries that are shown.
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
    first = attempts[-MOST].started_at if len(attempts) > MOST else None
    began = min(action.due_at, *(each.started_at for each in attempts)) if attempts else action.due_at
    at, event = began, "due"
    for each in attempts[-MOST:]:
        earlier = len(attempts) - MOST
        words = (
            _("{0} earlier attempts", earlier)
            if first == each.started_at
            else _("waits for a retry")
            if event != "due"
            else _("waits")
        )
        if each.started_at > at:
            waited = duration_text(_ms(at, each.started_at))
            yield Phase(at, each.started_at, _(event), "wait", f"{words} {waited}")
        due = _("due") + ", " if event == "due" and at == each.started_at else ""
        yield from _attempt(each, due, len(attempts) > 1, now)
        at = each.finished_at or now
        event = "ended" if each.outcome is None or each.outcome.value == "ok" else "failed"
    if action.finished_at is None and not (attempts and attempts[-1].finished_at is None):
        yield Phase(at, max(at, now), _(event), "wait", _("waits"))
    for each in _sent(deliveries):
        yield Phase(
            at,
            max(at, each.sent_at),
            _written(action) if event != "sent" else _(event),
            "send",
            _("{0} to {1}", each.kind, each.to[0] if each.to else "–")[:24],
        )
        at, event = max(at, each.sent_at), "sent"


def _attempt(attempt: Any, due: str, numbered: bool, now: datetime) -> Iterator[Phase]:
    """Yield how an attempt ran, and how its effects were committed."""
    over = attempt.finished_at
    end = now if over is None else min(over, attempt.started_at + timedelta(milliseconds=attempt.usage.wall_ms))
    logged = tuple(datetime.fromtimestamp(each.us / 1e6, UTC) for each in attempt.logs[:200] if each.us)
    kind = "running" if attempt.outcome is None else "ok" if attempt.outcome.value == "ok" else "failed"
    begins = due + (_("step {0}, attempt {1}", attempt.step + 1, attempt.n) if numbered else _("started"))
    took = duration_text(_ms(attempt.started_at, now) if over is None else attempt.usage.wall_ms)
    calls = attempt.usage.host_calls
    called = _("1 host call") if calls == 1 else _("{0} host calls", calls)
    words = _("runs {0}", took) if over is None else f"{took}, {called}"
    yield Phase(attempt.started_at, end, begins, kind, words, logged)
    if over is not None and over > end:
        ended, outcome = (_("ended"), _("commits {0}")) if kind == "ok" else (_("failed"), _("records it {0}"))
        yield Phase(end, over, ended, f"commit {kind}", filled(outcome, duration_text(_ms(end, over))))


def _written(action: Any) -> str:
    """Return the word for the end of an action."""
    return _("committed") if action.state == "done" else _("recorded")


def _sent(deliveries: Sequence[Any]) -> list[Any]:
    """Return the sent deliveries in their order."""
    return sorted((each for each in deliveries if each.sent_at is not None), key=lambda each: each.sent_at)[:MOST]


def _ms(start: datetime, end: datetime) -> float:
    """Return the time from one instant to a later one in milliseconds."""
    return max(0.0, (end - start).total_seconds() * 1000)
