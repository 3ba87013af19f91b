"""Charts drawn on the server as inline SVG: without scripts or styles of their own, each with a text that says what it shows."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from math import floor, log10
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup

from lodger.engine.service.humanize import humanize_duration
from lodger.engine.web.texts import _

#: Size of a chart and the margins of its axes, in units of its view box.
WIDTH, HEIGHT = 520, 190
LEFT, RIGHT, TOP, BOTTOM = 64, 8, 10, 24
#: Form of an instant in a filter.
_INSTANT = "%Y-%m-%dT%H:%M:%SZ"
#: Size of the small chart of a schedule's durations.
DOTS_WIDTH, DOTS_HEIGHT = 260, 56
#: Parts between two labels of the time axis.
PARTS_BETWEEN = 10
#: Marks of the axis of lateness, milliseconds: each about ten times the one below it.
DECADES_MS = (1, 10, 100, 1000, 10_000, 60_000, 600_000, 3_600_000, 86_400_000)


def shape(tag: str, content: object = "", /, **attributes: object) -> Markup:
    """Return an element of a picture, with fractions to one decimal; ``_`` in the name of an attribute stands for ``-``."""
    named = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    written = (
        Markup(' {}="{}"').format(name, f"{value:.1f}" if isinstance(value, float) else value)
        for name, value in named.items()
    )
    return Markup("<{0}{1}>{2}</{0}>").format(tag, Markup("").join(written), content)


def duration_text(milliseconds: float | None) -> str:
    """Return a duration in at most two units; a dash for None."""
    return "–" if milliseconds is None else humanize_duration(milliseconds / 1000)


def lateness(activity: Any, listed: str) -> Markup:
    """Return the lateness of the time, p50 and p99 of each part, as a line chart with a logarithmic axis; parts lead to ``listed``."""
    parts_of = activity.parts
    values = [each.late_p99_ms for each in parts_of if each.late_p99_ms is not None]
    marks = [each for each in DECADES_MS if each <= 100 or each < max(values, default=0) * 10]
    top = log10(marks[-1])
    worst = max(parts_of, key=lambda each: each.late_p99_ms or 0)
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
    shares = {duration_text(each): log10(each) / top for each in marks}
    parts = [*_value_axis(shares), *_time_axis(activity)]
    for name in ("p99", "p50"):
        found = [getattr(each, f"late_{name}_ms") for each in parts_of]
        parts += _line(name, [None if each is None else log10(max(1.0, each)) / top for each in found])
    parts += _links(
        activity, listed, lambda each: f"p50 {duration_text(each.late_p50_ms)}, p99 {duration_text(each.late_p99_ms)}"
    )
    return _svg(text, WIDTH, HEIGHT, parts)


def throughput(activity: Any, listed: str) -> Markup:
    """Return the ended actions of each part of the time as bars, failed ones on top, which lead to the list ``listed``."""
    parts_of = activity.parts
    busiest = max(parts_of, key=lambda each: each.done + each.failed)
    top = round_number(busiest.done + busiest.failed)
    text = _(
        "Actions that ended in the last {0}: {1} done, {2} failed; the most, {3}, at {4}.",
        span(activity), activity.done, activity.failed, busiest.done + busiest.failed, clock(busiest.start),
    )  # fmt: skip
    parts = [*_value_axis({f"{top * part:g}": part for part in (0.0, 0.5, 1.0)}), *_time_axis(activity)]
    step = (WIDTH - LEFT - RIGHT) / len(parts_of)
    for number, each in enumerate(parts_of):
        base = float(HEIGHT - BOTTOM)
        for name, count in (("done", each.done), ("failed", each.failed)):
            if count:
                height = max(1.0, count / top * (HEIGHT - TOP - BOTTOM))
                base -= height
                left = LEFT + number * step + 0.7
                parts.append(shape("rect", class_=f"bar-{name}", x=left, y=base, width=step - 1.4, height=height))
    parts += _links(activity, listed, lambda each: _("{0} done, {1} failed", each.done, each.failed))
    return _svg(text, WIDTH, HEIGHT, parts)


def durations(found: Any) -> Markup:
    """Return the runs of a schedule as dots from old to new, with the median and the spread of the earlier ones and its interval."""
    runs, usual = [each.took_ms for each in found.runs], found.pace
    spread = (max(0.0, usual.median_ms - usual.deviation_ms), usual.median_ms + usual.deviation_ms)
    top = max(*runs, spread[1]) * 1.08 or 1.0
    interval = found.interval_ms
    if interval is not None and interval <= top * 2:
        top = max(top, interval * 1.08)
    text = _(
        "{0} runs, the latest {1}; median before {2}, spread {3} to {4}",
        len(runs), *map(duration_text, (runs[-1], usual.median_ms, *spread)),
    )  # fmt: skip
    text += _("; interval {0}", duration_text(interval)) if interval is not None else ""

    def y_of(value: float) -> float:
        """Return the height of a duration in the picture."""
        return DOTS_HEIGHT - 4 - value / top * (DOTS_HEIGHT - 8)

    def across(name: str, value: float) -> Markup:
        return shape("line", class_=name, x1=0, y1=y_of(value), x2=DOTS_WIDTH, y2=y_of(value))

    band = max(1.5, y_of(spread[0]) - y_of(spread[1]))
    parts = [
        shape("rect", class_="spread", x=0, y=y_of(spread[1]), width=DOTS_WIDTH, height=band),
        across("median", usual.median_ms),
    ]
    if interval is not None and interval <= top:
        parts.append(across("interval", interval))
    step = (DOTS_WIDTH - 12) / max(1, len(runs) - 1)
    latest = len(runs) - 5 if found.change is not None else len(runs)
    for number, each in enumerate(found.runs):
        over = interval is not None and each.took_ms > interval
        kind = "dot over" if over else "dot latest" if number >= latest else "dot"
        hint = f"{each.finished_at.astimezone(UTC):%Y-%m-%d %H:%M:%S}: {duration_text(each.took_ms)}"
        place = {"cx": 6 + number * step, "cy": y_of(each.took_ms), "r": 2.6}
        parts.append(shape("circle", shape("title", hint), class_=kind, **place))
    return _svg(text, DOTS_WIDTH, DOTS_HEIGHT, parts, kind="dots")


def round_number(value: float) -> float:
    """Return the least number not below ``value`` that is 1, 2, 3, 4, 6, 8 or 10 times a power of ten, and at least 4: halves of it
    are whole."""
    decade = 10.0 ** floor(log10(max(value, 1.0)))
    return max(4.0, next(step * decade for step in (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0) if step * decade >= value))


def _svg(text: str, width: int, height: int, parts: Iterable[Markup], kind: str = "chart") -> Markup:
    """Return a picture with its description for readers that do not see it."""
    role = "group" if kind == "chart" else "img"
    drawn = Markup("").join([shape("title", text), *parts])
    return shape("svg", drawn, class_=kind, viewBox=f"0 0 {width} {height}", role=role, aria_label=text)


def _value_axis(shares: Mapping[str, float]) -> Iterable[Markup]:
    """Yield the marks of an axis, by their text, at shares of its height."""
    for text, share in shares.items():
        y = HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
        yield shape("line", class_="axis" if share == 0 else "grid", x1=LEFT, y1=y, x2=WIDTH - RIGHT, y2=y)
        yield shape("text", text, x=LEFT - 6, y=y + 4, text_anchor="end")


def _time_axis(activity: Any) -> Iterable[Markup]:
    """Yield the marks of the time axis, and a shade over the part that is not counted yet."""
    parts_of = activity.parts
    step = (WIDTH - LEFT - RIGHT) / len(parts_of)
    unread = sum(each.start < activity.complete_from for each in parts_of)
    if unread:
        yield shape("rect", class_="unread", x=LEFT, y=TOP, width=unread * step, height=HEIGHT - TOP - BOTTOM)
    begin, end = (11, 16) if activity.part_s * PARTS_BETWEEN < 86_400 else (5, 10)
    for number, each in enumerate(parts_of):
        if int(each.start.timestamp()) // activity.part_s % PARTS_BETWEEN == 0:
            x = LEFT + (number + 0.5) * step
            yield shape("line", class_="axis", x1=x, y1=HEIGHT - BOTTOM, x2=x, y2=HEIGHT - BOTTOM + 4)
            if LEFT + 14 <= x <= WIDTH - 18:
                stamp = each.start.astimezone(UTC).isoformat()
                clock = {"data_clock": f"{begin} {end}", "data_clock_at": stamp}
                yield shape("text", stamp[begin:end], x=x, y=HEIGHT - 6, text_anchor="middle", **clock)


def _line(name: str, series: Sequence[float | None]) -> Iterable[Markup]:
    """Yield the stretches of a line through shares of the height; a minute without a value interrupts it, and one alone is a dot."""
    step = (WIDTH - LEFT - RIGHT) / len(series)
    stretch: list[tuple[float, float]] = []
    for number, value in enumerate([*series, None]):
        if value is not None:
            y = HEIGHT - BOTTOM - min(1.0, value) * (HEIGHT - TOP - BOTTOM)
            stretch.append((LEFT + (number + 0.5) * step, y))
        elif len(stretch) == 1:
            ((x, y),) = stretch
            yield shape("circle", class_=f"point-{name}", cx=x, cy=y, r=2)
        elif stretch:
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in stretch)
            yield shape("polyline", class_=f"line-{name}", points=points)
        if value is None:
            stretch = []


def span(activity: Any) -> str:
    """Return the length of an activity's time, as it follows "the last"."""
    hours = len(activity.parts) * activity.part_s // 3600
    return _("hour") if hours == 1 else _("{0} hours", hours) if hours < 48 else _("{0} days", hours // 24)


def _links(activity: Any, listed: str, words: Any) -> Iterable[Markup]:
    """Yield an invisible column over each part with something to say, which a pointer shows and which leads to its actions."""
    step = (WIDTH - LEFT - RIGHT) / len(activity.parts)
    told = [each.done or each.failed or each.late_p50_ms is not None for each in activity.parts]
    reached = max((number for number, each in enumerate(told) if each), default=0)
    for number, each in enumerate(activity.parts):
        if told[number]:
            stamp, end = each.start.astimezone(UTC), each.start + timedelta(seconds=activity.part_s)
            query = (
                f"state:done,failed,expired ended_since:{stamp:{_INSTANT}} ended_until:{end.astimezone(UTC):{_INSTANT}}"
            )
            place = {"x": LEFT + number * step, "y": TOP, "width": step, "height": HEIGHT - TOP - BOTTOM}
            said = {"data_clock": "5 16", "data_clock_at": stamp.isoformat()}
            title = shape("title", f"{stamp:%m-%d %H:%M}: {words(each)}", **said)
            column = shape("rect", class_="hint", **place) + title
            link = f"{listed}?{urlencode({'filter': query})}"
            yield shape("a", column, href=link, tabindex=0 if number == reached else -1)


def clock(instant: datetime, form: str = "%H:%M UTC") -> str:
    """Return the time of day of an instant in UTC."""
    return instant.astimezone(UTC).strftime(form)
