"""``lodger next``: a rule's sentence and next slots. Pure: no database, no server."""

import sys
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from lodger.engine.core.errors import Usage
from lodger.engine.core.plain_text import visible
from lodger.engine.output.failure import human
from lodger.engine.output.result_output import is_for_program, say, write_json

Kind = Annotated[
    str | None,
    typer.Option(
        help="Language of the rule: rrule, cron, schyntax, english, every or once. Default: detected from the text."
    ),
]
_MAX_SLOTS = 1000
#: Slots of a year are counted up to so many.
_MAX_COUNTED = 10_000


def next_slots(
    rule: Annotated[str | None, typer.Argument(help="Rule, such as 'FREQ=DAILY;BYHOUR=9' or '0 9 * * 1-5'.")] = None,
    kind: Kind = None,
    dtstart: Annotated[str | None, typer.Option(help="Start of the rule, in its local time.")] = None,
    tz: Annotated[str | None, typer.Option(help="IANA time zone, such as Europe/Berlin. Default: UTC.")] = None,
    after: Annotated[str | None, typer.Option(help="Show slots after this instant. Default: now.")] = None,
    inclusive: Annotated[bool, typer.Option("--inclusive", help="Include a slot at exactly this instant.")] = False,
    previous: Annotated[bool, typer.Option("--previous", help="Show slots before the instant, latest first.")] = False,
    exclude: Annotated[
        list[str] | None, typer.Option(help="Rule with slots to exclude, such as '0 12 * * *'; may be repeated.")
    ] = None,
    n: Annotated[int, typer.Option("-n", min=1, max=_MAX_SLOTS, help="Number of slots.")] = 5,
    batch: Annotated[
        bool,
        typer.Option("--batch", help="Read requests from stdin and write results to stdout, one line of JSON each."),
    ] = False,
) -> None:
    """Describe a recurrence rule, and show its next slots."""
    if batch:
        _answer_lines()
        return
    if rule is None:
        raise Usage("rule_missing")
    from lodger.engine.recurrence.query import answer

    request = {"rule": rule, "kind": kind, "dtstart": dtstart, "tz": tz, "after": after, "exclude": exclude}
    body = answer(
        request | {"inclusive": inclusive, "n": n, "previous": previous, "counts": not is_for_program()}, now=_now()
    )
    error = body.get("error")
    if is_for_program():
        write_json(body)
    elif error:
        at = error.get("exclude")
        sys.stderr.write(human(error, rule if at is None else (exclude or ())[at]) + "\n")
    else:
        _show(body, previous=previous)
        if not previous and not body["never"]:
            earlier = answer(request | {"n": 3, "previous": True}, now=_now())
            _tell_more(body, earlier.get("previous") or [], earlier.get("shifted") or [])
    if error:
        raise typer.Exit(1)


def _now() -> datetime:
    """Return the present instant."""
    from lodger.engine.core.clock import SystemClock, from_us

    return from_us(SystemClock().now_us())


def _answer_lines() -> None:
    """Answer JSON lines from stdin with JSON lines, in the same order, one for each line."""
    from lodger.engine.recurrence.query import answer_lines

    # A byte that is no UTF-8 becomes a character that no rule has: the line is refused like any other wrong one.
    lines = (line.decode("utf-8", "replace") for line in sys.stdin.buffer)
    for text in answer_lines(lines, now=_now()):
        sys.stdout.write(visible(text) + "\n")


def _show(body: dict[str, Any], *, previous: bool) -> None:
    """Print the slots for people."""
    say(f"{body['text']}  ({body['kind']})")
    if "dtstart" in body.get("ignored", ()):
        say("--dtstart changes nothing: no rule of this kind, or with a start in its text, counts from it.")
    if body.get("never"):
        say(f"The rule never fires: {body.get('reason')}")
        return
    slots = [datetime.fromisoformat(text) for text in body["next"]]
    if not slots and "searched_to" in body:
        where = "after" if previous else "before"
        say(f"No slot was found {where} {body['searched_to']}; the search stopped there.")
        if body["reason"]:
            say(f"{body['reason'][:1].upper()}{body['reason'][1:]}.")
        return
    if not slots:
        say("There is no slot before this instant." if previous else "There is no slot after this instant.")
        return
    tz, now, shifted = body["tz"], _now(), set(body["shifted"])
    rows = []
    for text, slot in zip(body["next"], slots, strict=True):
        there = () if tz == "UTC" else (_there(slot, tz),)
        mark = "DST" if text in shifted else ""
        rows.append((*there, _there(slot, "UTC"), _away(slot, now), mark))
    _columns([(*(() if tz == "UTC" else (tz,)), "UTC", "from now", ""), *rows])
    if "searched_to" in body:
        say(f"No further slot was found before {body['searched_to']}; the search stopped there.")


def _columns(rows: list[tuple[str, ...]]) -> None:
    """Write rows in columns, without rich's tables, which take longer to import than the command takes."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _there(slot: datetime, tz: str) -> str:
    """Return a slot as wall-clock time of a zone, by the pinned zone database; with fractions of a second only if there are any."""
    from lodger.engine.recurrence.calendar.zones import python_zone

    try:
        local = slot.astimezone(UTC if tz == "UTC" else python_zone(tz))
    except OverflowError:  # an instant with a local date outside the years 1 to 9999
        return "beyond the calendar"
    return f"{local:%a} {local.replace(tzinfo=None).isoformat(' ')}" + ("Z" if tz == "UTC" else f" {local:%Z}")


def _tell_more(body: dict[str, Any], earlier: list[str], shifted: list[str]) -> None:
    """Write previous slots, latest first, how often the rule fires, and whether and when it ends."""
    tz = body["tz"]
    for text in earlier:
        slot = datetime.fromisoformat(text)
        there = "" if tz == "UTC" else f"{_there(slot, tz)}, "
        mark = ", moved by DST" if text in shifted else ""
        say(f"Earlier slot: {there}{_there(slot, 'UTC')}, {_away(slot, _now())}{mark}")
    gap, year = body["smallest_gap_s"], body["next_year"]
    often = f"Slots: at most {body['most_per_day']} per day" + ("" if body["exact"] else " (upper bound)")
    if gap is not None:
        often += f", at least {_span(gap)} apart"
    many = "too many to count" if body["most_per_day"] * 366 > _MAX_COUNTED else "not counted"
    say(f"{often}; {many if year is None else year} in the next 366 days.")
    if body["ends"] or "searched_to" not in body:
        say(f"The last slot is {body['last']}." if body["ends"] and body["last"] else "The rule never ends.")


def _away(slot: datetime, now: datetime) -> str:
    """Return how far a slot is from now, in words."""
    from lodger.engine.service.humanize import humanize_duration

    seconds = (slot - now).total_seconds()
    return f"in {humanize_duration(seconds)}" if seconds >= 0 else f"{humanize_duration(-seconds)} ago"


def _span(seconds: float) -> str:
    """Return a number of seconds in words, such as ``2 hours``."""
    from lodger.engine.recurrence.duration import duration_in_words

    return duration_in_words(round(seconds * 1_000_000))
