"""Answers of ``lodger next``: one request about one rule as plain mappings, and a batch of requests as JSON lines.

Requests are untrusted: types, sizes and names are checked here, and a mistake is returned as
``{"error": {"code", "message", "index", ...}}`` rather than raised.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from lodger.engine.core.errors import InputError
from lodger.engine.recurrence.calendar.zones import zone
from lodger.engine.recurrence.compile import MAX_RULES, compile_schedule
from lodger.engine.recurrence.instant import LAST, format_instant, parse_time
from lodger.engine.recurrence.parse import local_instant, recognise, resolved, takes_dtstart
from lodger.engine.recurrence.rule import DstPolicy, Fold, Gap, Kind, RuleSpec, ScheduleRules
from lodger.engine.recurrence.rule_errors import RuleInvalid, SearchEnded
from lodger.engine.recurrence.schedule import CompiledSchedule
from lodger.engine.recurrence.search import SAVE_STEPS, SearchedTo
from lodger.engine.recurrence.words import sentence
from lodger.sandbox import prescan

MAX_SLOTS = 1000
DEFAULT_SLOTS = 5
MAX_COUNTED = 10_000
LONGEST_LINE = 262_144

_TEXTS = ("rule", "kind", "dtstart", "tz", "after", "gap", "fold")
_KNOWN = {"id", "n", "inclusive", "previous", "counts", "exclude", *_TEXTS}


def _checked(request: Mapping[str, Any]) -> None:
    """Refuse a malformed request."""
    for name in _TEXTS:
        if not isinstance(request.get(name), str | None):
            raise InputError("bad_request.text", name=name, type=type(request[name]).__name__)
    for name in ("inclusive", "previous", "counts"):
        if not isinstance(request.get(name), bool | None):
            raise InputError("bad_request.flag", name=name, value=request[name])
    if request.get("rule") is None:
        raise InputError("bad_request.rule")
    exclude = request.get("exclude")
    if not isinstance(exclude, list | None) or any(not isinstance(each, str) for each in exclude or ()):
        raise InputError("bad_request.exclude", exclude=exclude)
    if len(exclude or ()) >= MAX_RULES:
        raise InputError("bad_request.exclusions", maximum=MAX_RULES - 1)
    count = request.get("n")
    if count is not None and (not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MAX_SLOTS):
        raise InputError("bad_request.count", count=count, maximum=MAX_SLOTS)


def _choice(request: Mapping[str, Any], name: str, choices: type[Kind | Gap | Fold]) -> Any:
    """Return a member of a request that has fixed choices."""
    value = request.get(name)
    if value is None:
        return None
    try:
        return choices(value)
    except ValueError:
        spelled = ", ".join(choices)
        raise InputError("bad_request.choice", name=name, value=value[:40], choices=spelled) from None


def _moment(text: str, tz: str | None) -> datetime:
    """Return the instant of a request's text; without an offset it is in the zone."""
    try:
        return local_instant(parse_time(text.strip()), tz)
    except RuleInvalid as error:
        # Positions count in the rule's text, and this is another one.
        raise InputError.told(error.code, f"after: {error.what}", error.why, error.fix) from None


@dataclass(frozen=True, slots=True)
class Slots:
    """Slots of rules, nearest first.

    Attributes:
        shifted: those that a change of the clock has moved.
        searched_to: where the search for a further one stopped without an answer; None if it did not.
        never: why the rules have no slot at all, where that is known.
        excluded: the exclusion that removed the most slots of a search without any, in words.
    """

    found: tuple[datetime, ...] = ()
    shifted: tuple[datetime, ...] = ()
    searched_to: datetime | None = None
    never: str | None = None
    excluded: str | None = None


def slots_of(
    schedule: CompiledSchedule, after: datetime, count: int, *, inclusive: bool = False, previous: bool = False
) -> Slots:
    """Return the next slots of rules after an instant, or the ones before it; none of a rule without a clock.

    Args:
        inclusive: whether a slot at exactly this instant is one of them.
    """
    step = schedule.previous_before if previous else schedule.next_after
    found: list[datetime] = []
    slot = step(after, inclusive=inclusive, limit=SAVE_STEPS)
    while isinstance(slot, datetime) and slot < LAST and len(found) < count:
        found.append(slot)
        slot = step(slot)
    if not found and isinstance(slot, SearchedTo):
        # A search over all years would end as this one did.
        never = schedule.never_reason() if previous else schedule.rules_reason()
        return Slots(searched_to=None if never else slot.instant, never=never, excluded=None if never else slot.why)
    if not found and slot is None:
        return Slots(never=schedule.never_reason())
    shifted = tuple(each for each in found if schedule.shifted(each))
    return Slots(tuple(found), shifted, slot.instant if isinstance(slot, SearchedTo) else None)


def _counts(schedule: CompiledSchedule, after: datetime) -> dict[str, Any]:
    """Return how often a schedule fires: most slots of a UTC day, least distance of two, and the number in the next 366 days."""
    density = schedule.density(after)
    until = min(after, LAST - timedelta(days=366)) + timedelta(days=366)
    year: int | None
    try:
        year = sum(1 for _ in islice(schedule.between(after, until), MAX_COUNTED + 1))
    except SearchEnded:
        year = None
    return {
        "most_per_day": density.max_per_day,
        "smallest_gap_s": density.smallest_gap_s,
        "exact": density.exact,
        "next_year": year if year is not None and year <= MAX_COUNTED else None,
    }


def _schedule(spec: RuleSpec, request: Mapping[str, Any], dst: DstPolicy, now: datetime) -> CompiledSchedule:
    """Return the compiled schedule of a request."""
    exclusions = tuple(RuleSpec(text, tz=spec.tz) for text in request.get("exclude") or ())
    try:
        return compile_schedule(ScheduleRules((spec,), exclusions, dst=dst), now=now)
    except RuleInvalid as error:
        if place := error.details.pop("rule", 0):
            error.details["exclude"] = place - 1
        raise


def _answered(request: Mapping[str, Any], now: datetime | None) -> dict[str, Any]:
    """Return the answer to a checked request."""
    _checked(request)
    tz = request.get("tz")
    if tz is not None:
        zone(tz)
    kind = _choice(request, "kind", Kind)
    dst = DstPolicy(_choice(request, "gap", Gap), _choice(request, "fold", Fold))
    if request.get("after") is not None:
        after = _moment(request["after"], tz)
    elif now is not None:
        after = now
    else:
        raise InputError("bad_request.after")
    given = RuleSpec(request["rule"], kind, request.get("dtstart"), tz)
    # An interval without a start counts from the schedule's creation, which would be now.
    spec = replace(given, counted_from=resolved(given, after).counted_from)
    schedule = _schedule(spec, request, dst, now or after)
    kind = kind or recognise(given.text)
    clocked = kind is not Kind.CHANGES
    count = request.get("n") or DEFAULT_SLOTS
    # The slot of a rule without a clock never comes.
    slots = (
        slots_of(
            schedule, after, count, inclusive=bool(request.get("inclusive")), previous=bool(request.get("previous"))
        )
        if clocked
        else Slots()
    )
    reason = slots.never
    ends = schedule.ends() and clocked
    last = schedule.previous_before(LAST, inclusive=True, limit=SAVE_STEPS) if ends and reason is None else None
    shown = [format_instant(slot) for slot in slots.found]
    answer: dict[str, Any] = {
        "kind": str(kind),
        "text": sentence(schedule.text()),
        "tz": schedule.zone_key or tz or "UTC",
        "next": shown,
        "never": reason is not None,
        "reason": reason or slots.excluded,
        "shifted": [format_instant(slot) for slot in slots.shifted],
        "ends": ends,
        "last": format_instant(last) if isinstance(last, datetime) else None,
    }
    if slots.searched_to is not None and len(slots.found) < count:
        answer["searched_to"] = format_instant(slots.searched_to)
    if request.get("previous"):
        answer["previous"] = shown
    if request.get("counts"):
        answer |= (
            _counts(schedule, after)
            if reason is None
            else {"most_per_day": 0, "smallest_gap_s": None, "exact": True, "next_year": 0}
        )
    ignored = [str(name)[:40] for name in request if name not in _KNOWN]
    if given.dtstart is not None and not takes_dtstart(given):
        ignored.append("dtstart")
    if ignored:
        answer["ignored"] = ignored
    return answer


def answer(request: Mapping[str, Any], *, now: datetime | None = None) -> dict[str, Any]:
    """Return the slots and words of a rule, JSON-able.

    Args:
        request: ``rule`` (text), optional ``id``, ``kind``, ``dtstart``, ``tz``, ``after`` (ISO; without
            offset in
            ``tz``), ``inclusive``, ``n`` (1 to 1000, default 5), ``previous``, ``gap``, ``fold``, ``counts``, ``exclude``
            (a list of rules that take slots away).
        now: used when ``after`` is missing, and as the moment that ``in 90s`` counts from.

    Returns:
        ``{"kind", "text", "tz", "next", "never", "reason", "shifted", "ends", "last"}`` or ``{"error"}``, with the
        ``id`` when there is one. ``next`` holds the slots nearest first; with ``previous`` these are the ones
        before ``after``, and are also there under ``previous``. ``last`` is the final slot of a rule that ends,
        or of the calendar where year 9999 comes before the COUNT is full; ``tz`` is the zone of the wall clock.
        ``reason`` says why the rule never fires, or which exclusion removes the most slots where none was found.
        With ``counts`` also ``most_per_day``, ``smallest_gap_s`` (bounds; ``exact`` when they are the truth) and
        ``next_year``. ``searched_to`` is there when fewer slots were found than asked for and later ones are not excluded.
        Parts of the question that changed nothing are named under ``ignored``.
    """
    if not isinstance(request, Mapping):
        return {"id": None, "error": _shown(InputError("bad_request.object"))}
    head = {"id": request["id"]} if "id" in request else {}
    try:
        return head | _answered(request, now)
    except InputError as error:
        return head | {"error": _shown(error)}


def _shown(error: InputError) -> dict[str, Any]:
    """Return an error as the JSON-able object of an answer."""
    return {"index": None} | error.as_dict()


def answer_lines(lines: Iterable[str], *, now: datetime | None = None) -> Iterator[str]:
    """Answer JSON lines with JSON lines in the same order; blank lines are passed over."""
    for line in lines:
        if line.strip():
            yield json.dumps(_line(line, now), ensure_ascii=True, separators=(",", ":"))


def _line(line: str, now: datetime | None) -> dict[str, Any]:
    """Return the answer to one line of a batch."""
    if len(line) > LONGEST_LINE:
        return {"id": None, "error": _shown(InputError("bad_request.long", maximum=LONGEST_LINE))}
    try:
        request = prescan.decode(line)
    except prescan.JsonRefused as refused:
        return {
            "id": None,
            "error": _shown(InputError("bad_request.json", reason=f"{refused.__cause__ or refused}"[:200])),
        }
    return answer(request, now=now)
