"""Charts of an activity: what their SVG in ``charts.html`` shows, and the text that says it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import log10
from typing import Any

from lodger.engine.service.humanize import humanize_duration
from lodger.engine.web.texts import _

#: Form of an instant in a filter.
_INSTANT = "%Y-%m-%dT%H:%M:%SZ"
#: Parts between two labels of the time axis.
PARTS_BETWEEN = 10
#: Marks of the axis of lateness, milliseconds: each about ten times the one below it.
DECADES_MS = (1, 10, 100, 1000, 10_000, 60_000, 600_000, 3_600_000, 86_400_000)


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of the parts of an activity.

    Attributes:
        text: what it shows, for readers that do not see it.
        marks: the marks of its axis: their text, and their share of the height.
        top: the value at its full height.
        words: returns what a part shows.
        lines: path of each line by its name; x counts parts, and y is a share of the height.
    """

    text: str
    marks: dict[str, float]
    top: float
    words: Callable[[Any], str]
    lines: tuple[tuple[str, str], ...] = ()


def duration_text(milliseconds: float | None) -> str:
    """Return a duration in at most two units; a dash for None."""
    return "–" if milliseconds is None else humanize_duration(milliseconds / 1000)


def lateness(activity: Any) -> Chart:
    """Return the lateness of the time, p50 and p99 of each part, on a logarithmic axis."""
    parts = activity.parts
    values = [each.late_p99_ms for each in parts if each.late_p99_ms is not None]
    marks = [each for each in DECADES_MS if each <= 100 or each < max(values, default=0) * 10]
    top = log10(marks[-1])
    worst = max(parts, key=lambda each: each.late_p99_ms or 0)
    text = (
        _(
            "Lateness in the last {0}: p50 {1}, p99 {2}, the highest p99 {3} at {4}.",
            span(activity), duration_text(activity.late_p50_ms), duration_text(activity.late_p99_ms),
            duration_text(worst.late_p99_ms), clock(worst.start),
        )
        if values
        else _("Lateness in the last {0}: no action started.", span(activity))
    )  # fmt: skip
    text += " " + _("{0} actions of missed slots are not counted.", activity.caught_up) if activity.caught_up else ""
    series = {name: [getattr(each, f"late_{name}_ms") for each in parts] for name in ("p99", "p50")}
    return Chart(
        text,
        {duration_text(each): log10(each) / top for each in marks},
        top,
        lambda each: f"p50 {duration_text(each.late_p50_ms)}, p99 {duration_text(each.late_p99_ms)}",
        tuple((name, _path(each and log10(max(1.0, each)) / top for each in found)) for name, found in series.items()),
    )


def throughput(activity: Any) -> Chart:
    """Return the ended actions of each part of the time, done and failed."""
    busiest = max(activity.parts, key=lambda each: each.done + each.failed)
    most = busiest.done + busiest.failed
    top = max(4, most + most % 2)  # halves of it are whole
    text = _(
        "Actions that ended in the last {0}: {1} done, {2} failed; the most, {3}, at {4}.",
        span(activity), activity.done, activity.failed, most, clock(busiest.start),
    )  # fmt: skip
    marks = {f"{top * share:,.0f}": share for share in (0.0, 0.5, 1.0)}
    return Chart(text, marks, top, lambda each: _("{0} done, {1} failed", each.done, each.failed))


def time_axis(activity: Any) -> Iterator[tuple[int, str, int, int]]:
    """Yield the labels of the time axis: number of the part, its start, and which of its characters are shown."""
    begin, end = (11, 16) if activity.part_s * PARTS_BETWEEN < 86_400 else (5, 10)
    for number, each in enumerate(activity.parts):
        if int(each.start.timestamp()) // activity.part_s % PARTS_BETWEEN == 0:
            yield number, each.start.astimezone(UTC).isoformat(), begin, end


def told(activity: Any) -> Iterator[tuple[int, Any, datetime, str]]:
    """Yield each part with something to say: its number, the part, its start, and the filter of its actions."""
    for number, each in enumerate(activity.parts):
        if each.done or each.failed or each.late_p50_ms is not None:
            start = each.start.astimezone(UTC)
            end = start + timedelta(seconds=activity.part_s)
            of = f"state:done,failed,expired ended_since:{start:{_INSTANT}} ended_until:{end:{_INSTANT}}"
            yield number, each, start, of


def _path(shares: Iterable[float | None]) -> str:
    """Return the path of a line through shares of the height; a part without a value interrupts it, and one alone is a dash."""
    path, pen = "", "M"
    for number, share in enumerate(shares):
        if share is not None:
            y = min(1.0, share)
            path += f"M{number + 0.3:.1f} {y:.3f}h.4" if pen == "M" else f"L{number + 0.5} {y:.3f}"
        pen = "M" if share is None else "L"
    return path


def span(activity: Any) -> str:
    """Return the length of an activity's time, as it follows "the last"."""
    hours = len(activity.parts) * activity.part_s // 3600
    return _("hour") if hours == 1 else _("{0} hours", hours) if hours < 48 else _("{0} days", hours // 24)


def clock(instant: datetime) -> str:
    """Return the time of day of an instant in UTC."""
    return instant.astimezone(UTC).strftime("%H:%M UTC")
