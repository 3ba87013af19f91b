"""Any rule text to a Recurrence: recognises the language, reads it, puts it under its zone and DST policy.

A zone named in the text comes first, then the one of the spec, then the caller's default, then UTC.
"""

import re
from dataclasses import replace
from datetime import UTC, datetime

from lodger.engine.recurrence import cron, english, rrule, schyntax
from lodger.engine.recurrence.calendar.zoned import Zoned
from lodger.engine.recurrence.calendar.zones import zone
from lodger.engine.recurrence.every import parse_every
from lodger.engine.recurrence.instant import format_instant, looks_like_time, parse_time
from lodger.engine.recurrence.on_changes import parse_changes
from lodger.engine.recurrence.once import OnceAt, OnceLocal, is_relative, parse_once
from lodger.engine.recurrence.rule import DstPolicy, Fold, Gap, Kind, LocalSequence, Recurrence, RuleSpec
from lodger.engine.recurrence.rule_errors import RuleInvalid

#: Languages that ``dtstart`` anchors; for the others it must be a time all the same and changes nothing.
ANCHORED = (Kind.RRULE, Kind.EVERY, Kind.ENGLISH)
#: Longest text of a rule in characters; an RRULE set with its dates has the limits of its own parser on top.
LONGEST_TEXT = 4096
LONGEST_RRULE_SET = 65_536

_SET_LINES = ("RRULE", "EXRULE", "DTSTART", "RDATE", "EXDATE")
_CRON_SETTINGS = ("TZ", "DAYS")
_EVERY = r"(?i)@?every(?:[ \t]|\Z)|P(?:[0-9]|T[0-9])"
_CHANGES = r"(?i)on[ \t]+changes[ \t]"
_ONCE = r"(?i)(?:at|in)[ \t]"
_CRON = r"@|(?:TZ|CRON_TZ|DAYS)=|[0-9*?]"
_FIELDS = r"[^ \t\r\n]+"
#: Name of a property or of a part, and the sign after it.
_HEAD = re.compile(r"([A-Za-z-]+)([:;=])")


def recognise(text: str) -> Kind:
    """Language of a rule text.

    Raises:
        RuleInvalid: ``rule_unrecognised`` when it begins like none of them.
    """
    body = text.lstrip(" \t\r\n")
    head = _HEAD.match(body)
    name, sign = (head[1], head[2]) if head else ("", "")
    if (sign in (":", ";") and name.upper() in _SET_LINES) or (
        sign == "=" and name and name.upper() not in _CRON_SETTINGS
    ):
        return Kind.RRULE
    if re.match(_CHANGES, body):
        return Kind.CHANGES
    if english.begins(body):
        return Kind.ENGLISH
    if re.match(_EVERY, body):
        return Kind.EVERY
    if re.match(_ONCE, body) or looks_like_time(body):
        return Kind.ONCE
    if "(" in body or "{" in body:
        return Kind.SCHYNTAX
    if re.match(_CRON, body) and (body[0] in "@TCD" or len(re.findall(_FIELDS, body)) > 2):
        return Kind.CRON
    if not body:
        raise RuleInvalid("rule_unrecognised.empty", index=0)
    raise RuleInvalid("rule_unrecognised", text=body[:60], index=len(text) - len(body))


def kind_of(spec: RuleSpec) -> Kind:
    """Language of a rule."""
    return _checked(spec)[1]


def _checked(spec: RuleSpec) -> tuple[str, Kind]:
    # A spec comes out of JSON: its types are a promise, not a fact.
    for name in ("text", "dtstart", "tz"):
        value: object = getattr(spec, name)
        if not isinstance(value, str) and (value is not None or name == "text"):
            raise RuleInvalid("rule_wrong_type", name=name, type=type(value).__name__)
    text = spec.text
    limit = LONGEST_RRULE_SET if spec.kind in (None, Kind.RRULE) else LONGEST_TEXT
    kind = None
    if len(text) <= limit:
        kind = _kind(spec.kind) if spec.kind is not None else recognise(text)
        limit = LONGEST_RRULE_SET if kind is Kind.RRULE else LONGEST_TEXT
    if kind is None or len(text) > limit:
        raise RuleInvalid("rule_too_long", count=len(text), maximum=limit, index=limit)
    return text, kind


def _kind(name: Kind | str) -> Kind:
    try:
        return Kind(name)
    except ValueError:
        raise RuleInvalid("kind_unknown", name=str(name)[:40], kinds=Kind) from None


def _anchor(text: str) -> datetime:
    try:
        return parse_time(text.strip())
    except RuleInvalid as error:
        # Positions count in the rule's text, and this is another one.
        raise RuleInvalid.told(error.code, f"dtstart: {error.what}", error.why, error.fix) from None


def _zoned(local: LocalSequence, tz: str | None, index: int | None, dst: DstPolicy) -> Zoned:
    return Zoned(local, zone("UTC" if tz is None else tz, index), dst)


def local_instant(when: datetime, tz: str | None) -> datetime:
    """Instant of a point in time; a naive one is on the wall clock of the zone (None: UTC).

    A time that the zone skips is read with the offset before; of a time that comes twice the first is taken.
    """
    if when.tzinfo is not None:
        return when.astimezone(UTC)
    whole = when.replace(microsecond=0)
    found = Zoned(OnceLocal.of(whole), zone(tz or "UTC"), DstPolicy(Gap.SHIFT, Fold.FIRST)).next_after(
        datetime.min.replace(tzinfo=UTC), inclusive=True
    )
    if not isinstance(found, datetime):
        raise RuleInvalid("time_invalid.years", when=when.isoformat(), tz=tz)
    return found.replace(microsecond=when.microsecond)


def parse_rule(
    spec: RuleSpec,
    *,
    default_tz: str | None = None,
    dst: DstPolicy | None = None,
    now: datetime | None = None,
) -> Recurrence:
    """Read one rule of any language.

    Args:
        spec: text with its kind (None: recognised), anchor and zone.
        default_tz: zone of the schedule, used when neither text nor spec names one.
        dst: what gaps and folds do; None and None fields are the language's default.
        now: aware instant from which ``in 90s`` counts; nothing else looks at it.

    Raises:
        RuleInvalid: the text is no rule, with the position of the mistake.
    """
    text, kind = _checked(spec)
    dst = dst or DstPolicy()
    tz = spec.tz if spec.tz is not None else default_tz
    if kind is Kind.ENGLISH:
        meant = english.translate(text)
        spec = replace(meant, dtstart=meant.dtstart or spec.dtstart, tz=meant.tz or tz)
        return parse_rule(spec, dst=dst, now=now)
    if kind is Kind.RRULE:
        return rrule.parse(text, dtstart=spec.dtstart, tz=tz, dst=dst)
    anchor = None if spec.dtstart is None else _anchor(spec.dtstart)
    if kind is Kind.CRON:
        read = cron.parse(text)
        return _zoned(read.rule, read.tz or tz, read.tz_index if read.tz else None, dst)
    if kind is Kind.SCHYNTAX:
        return schyntax.zoned(schyntax.parse(text), zone("UTC" if tz is None else tz), dst)
    if kind is Kind.EVERY:
        if tz is not None:
            zone(tz)  # an interval has no wall clock, but a name that is no zone is still a mistake
        return parse_every(text, None if anchor is None else local_instant(anchor, tz))
    if kind is Kind.CHANGES:
        return parse_changes(text)
    once = parse_once(text, now)
    if isinstance(once, OnceAt):
        if tz is not None:
            zone(tz)
        return once
    return _zoned(once, tz, None, dst)


def resolved(spec: RuleSpec, now: datetime) -> RuleSpec:
    """Make a relative one-off (``in 3 days``) the absolute one that it means now; others stay as they are.

    What is stored must mean the same whenever it is read again, so a schedule stores the resolved spec.
    """
    if not is_relative(spec.text) or _checked(spec)[1] is not Kind.ONCE:
        return spec
    once = parse_once(spec.text, now)
    assert isinstance(once, OnceAt)
    return RuleSpec(text=f"at {format_instant(once.instant)}", kind=Kind.ONCE, dtstart=spec.dtstart, tz=spec.tz)
