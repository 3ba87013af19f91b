"""The timeline of one action as inline SVG: its phases from the due instant to the last delivery, longer ones wider."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import log10
from typing import Any

from markupsafe import Markup

from lodger.engine.web.charts import clock, duration_text, shape
from lodger.engine.web.texts import _, filled

#: Narrowest phase, width of a character, width for each tenfold duration above a millisecond, and least width of all, in units
#: of the view box.
NARROWEST, CHARACTER, TENFOLD, LEAST = 100, 7, 16, 900
HEIGHT, BAR_TOP, BAR_HEIGHT = 96, 44, 22
#: Attempts and deliveries that are drawn.
MOST = 8


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of a timeline: how it begins, what it is, and until when.

    Attributes:
        begins: the event at its start.
        kind: class of its bar.
        words: what happens, under the bar.
        marks: instants of log lines within it.
    """

    start: datetime
    end: datetime
    begins: str
    kind: str
    words: str
    marks: tuple[datetime, ...] = ()

    @property
    def ms(self) -> float:
        """Length of the phase in milliseconds."""
        return max(0.0, (self.end - self.start).total_seconds() * 1000)

    @property
    def width(self) -> float:
        """Width of the phase in the picture."""
        return max(NARROWEST, CHARACTER * max(len(self.words), len(self.begins))) + TENFOLD * log10(1 + self.ms)


def timeline(action: Any, attempts: Sequence[Any], deliveries: Sequence[Any], now: datetime) -> Markup:
    """Return the timeline of an action; nothing for one without an attempt that has ended or waits for none."""
    if action.finished_at is not None and not attempts:
        return Markup("")
    phases = list(_phases(action, attempts, deliveries, now))
    factor = max(1.0, LEAST / sum(each.width for each in phases))
    last = _("now") if action.finished_at is None else (_("sent") if _sent(deliveries) else _written(action))
    parts, x = [], 4.0
    said = [f"{each.begins} {clock(each.start, '%H:%M:%S UTC')}, {each.words}" for each in phases]
    for each in phases:
        width = each.width * factor
        title = shape("title", each.words)
        bar = {"x": x, "y": BAR_TOP, "width": width - 2, "height": BAR_HEIGHT, "rx": 3}
        parts.append(shape("rect", title, class_=f"phase {each.kind}", **bar))
        for mark in each.marks:
            share = min(1.0, max(0.0, (mark - each.start) / max(each.end - each.start, timedelta(microseconds=1))))
            at = x + share * (width - 2)
            parts.append(shape("line", class_="mark", x1=at, y1=BAR_TOP - 4, x2=at, y2=BAR_TOP))
        parts += _moment(x, each.begins, each.start)
        parts.append(shape("text", each.words, class_="words", x=x, y=BAR_TOP + BAR_HEIGHT + 16))
        x += width
    parts += _moment(x - 2, last, phases[-1].end, anchor="end")
    text = _("Timeline: {0}; {1} {2}.", "; ".join(said), last, clock(phases[-1].end, "%H:%M:%S UTC"))
    drawn, wide = Markup("").join([shape("title", text), *parts]), round(x + 4)
    return shape(
        "svg", drawn, class_="timeline", width=wide, viewBox=f"0 0 {wide} {HEIGHT}", role="img", aria_label=text
    )


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
            gap = Phase(at, each.started_at, event, "wait", words)
            yield Phase(at, each.started_at, _(event), "wait", f"{words} {duration_text(gap.ms)}")
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
    marks = tuple(datetime.fromtimestamp(each.us / 1e6, UTC) for each in attempt.logs[:200] if each.us)
    kind = "running" if attempt.outcome is None else "ok" if attempt.outcome.value == "ok" else "failed"
    begins = due + (_("step {0}, attempt {1}", attempt.step + 1, attempt.n) if numbered else _("started"))
    took = duration_text((now - attempt.started_at).total_seconds() * 1000 if over is None else attempt.usage.wall_ms)
    calls = attempt.usage.host_calls
    called = _("1 host call") if calls == 1 else _("{0} host calls", calls)
    words = _("runs {0}", took) if over is None else f"{took}, {called}"
    yield Phase(attempt.started_at, end, begins, kind, words, marks)
    if over is not None and over > end:
        ended, outcome = (_("ended"), _("commits {0}")) if kind == "ok" else (_("failed"), _("records it {0}"))
        took = duration_text((over - end).total_seconds() * 1000)
        yield Phase(end, over, ended, f"commit {kind}", filled(outcome, took))


def _written(action: Any) -> str:
    """Return the word for the end of an action."""
    return _("committed") if action.state == "done" else _("recorded")


def _sent(deliveries: Sequence[Any]) -> list[Any]:
    """Return the sent deliveries in their order."""
    return sorted((each for each in deliveries if each.sent_at is not None), key=lambda each: each.sent_at)[:MOST]


def _moment(x: float, words: str, at: datetime, anchor: str = "start") -> Iterator[Markup]:
    """Yield the words and the time of a moment at a place of the picture."""
    yield shape("text", words, class_="moment", x=x, y=14, text_anchor=anchor)
    said = {"data_clock": "11 16", "data_clock_at": at.astimezone(UTC).isoformat()}
    yield shape("text", clock(at, "%H:%M:%S"), x=x, y=31, text_anchor=anchor, **said)
