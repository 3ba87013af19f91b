"""Any rule text to a Recurrence: recognises the language, reads it, puts it under its zone and DST policy.

A zone named in the text comes first, then the one of the spec, then the caller's default, then UTC.
"""

import re
from dataclasses import replace
from datetime import UTC, datetime

from lodger.engine.recurrence import cron, english, rrule, schyntax
from lodger.engine.recurrence.calendar import civil
from lodger.engine.recurrence.calendar.civil import local_of, utc_floor
from lodger.engine.recurrence.calendar.zoned import Zoned
from lodger.engine.recurrence.calendar.zones import Zone, zone
from lodger.engine.recurrence.every import Every, is_interval, parse_every, whole_days
from lodger.engine.recurrence.instant import format_instant, parse_time
from lodger.engine.recurrence.on_changes import parse_changes
from lodger.engine.recurrence.once import OnceAt, is_relative, parse_once
from lodger.engine.recurrence.rule import DstPolicy, Fold, Gap, Kind, LocalSequence, Recurrence, RuleSpec
from lodger.engine.recurrence.rule_errors import RuleInvalid
from lodger.engine.recurrence.union import by_granularity

#: Languages that ``dtstart`` anchors; for the others it must be a time all the same and changes nothing.
ANCHORED = (Kind.RRULE, Kind.EVERY, Kind.ENGLISH)
#: Longest text of a rule in characters; an RRULE set with its dates has the limits of its own parser on top.
LONGEST_TEXT = 4096
LONGEST_RRULE_SET = 65_536

#: A date without a time.
_DATE = r"(?i)(?:at[ \t]*\(?[ \t]*)?([0-9]{4})-?([0-9]{2})-?([0-9]{2})[ \t]*\)?"
_ONCE_SENTENCE = r"(?i)once, (at \S{1,40})(?: \((\S{1,40})\))?"
_CRON_SETTINGS = "TZ|DAYS|MAILTO|SHELL|PATH|HOME"
#: Beginnings of texts by their language: those that are looked for before intervals, and after them.
_BEFORE = re.compile(
    rf"(?P<rrule>(?:BEGIN|RRULE|EXRULE|DTSTART|RDATE|EXDATE)[:;]|(?!(?:{_CRON_SETTINGS})=)[A-Z-]+=)"
    r"|(?P<changes>on[ \t]+changes[ \t])"
    r"|(?P<once>at[ \t]*\(|at[ \t]+(?:[0-9]{4}-|[0-9]{8})|in[ \t]+(?:[0-9]|P)|once, at "
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T|[ \t]+[0-9]{2}:[0-9]{2}|[Z+-]|[ \t]*\Z))",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"(?P<schyntax>(?!cron\()[a-z]+[ \t]*\(|\{)"
    rf"|(?P<cron>cron\(|@|(?-i:(?:CRON_TZ|{_CRON_SETTINGS})=)"
    r"|[0-9*?](?:[0-9*?,/-]*[0-9*?])?[ \t]+[0-9*?][^ \t\r\n&]*[ \t]+\S)",
    re.IGNORECASE,
)


def recognise(text: str) -> Kind:
    """Language of a rule text.

    Raises:
        RuleInvalid: ``rule_unrecognised`` when it begins like none of them.
    """
    body = text.strip(" \t\r\n")
    if found := _BEFORE.match(body):
        return Kind(str(found.lastgroup))
    if body[:1] in "eE" and whole_days(body):
        return Kind.ENGLISH
    if is_interval(body) or (re.match(r"(?i)every[ \t]", body) and not english.begins(body)):
        return Kind.EVERY
    if found := _AFTER.match(body):
        return Kind(str(found.lastgroup))
    if english.begins(body):
        return Kind.ENGLISH
    if not body:
        raise RuleInvalid("rule_unrecognised.empty", index=0)
    raise RuleInvalid("rule_unrecognised", text=body[:60], index=text.index(body))


def kind_of(spec: RuleSpec) -> Kind:
    """Return the language of a rule: the given kind, else the recognised one."""
    return _checked(spec)[1]


def _checked(spec: RuleSpec) -> tuple[str, Kind]:
    """Return text and kind of a rule, checked; a step of whole days is English."""
    # A spec comes out of JSON: its types are a promise, not a fact.
    for name in ("text", "dtstart", "tz", "counted_from"):
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
    if kind is Kind.EVERY and (days := whole_days(text)):  # days of a zone, as in English
        return f"every {days} days", Kind.ENGLISH
    return text, kind


def _kind(name: Kind | str) -> Kind:
    """Return the kind of rule that a name means."""
    try:
        return Kind(name)
    except ValueError:
        raise RuleInvalid("kind_unknown", name=str(name)[:40], kinds=Kind) from None


def _anchor(text: str) -> datetime:
    """Return the point in time that an interval is counted from, from its text."""
    try:
        return parse_time(text.strip())
    except RuleInvalid as error:
        # Positions count in the rule's text, and this is another one.
        raise RuleInvalid.told(error.code, f"dtstart: {error.what}", error.why, error.fix) from None


def _local_start(start: datetime, home: Zone) -> int:
    """Local second of a start; an instant is read on the wall clock of the zone."""
    return local_of(start) if start.tzinfo is None else home.local(utc_floor(start)[0])


def _zoned(local: LocalSequence, tz: str | None, index: int | None, dst: DstPolicy) -> Zoned:
    """Put a rule on the wall clock under its zone and DST policy; ``index`` is the position of the zone's name in the text."""
    return Zoned(local, zone("UTC" if tz is None else tz, index), dst)


def local_instant(when: datetime, tz: str | None) -> datetime:
    """Instant of a point in time; a naive one is on the wall clock of the zone (None: UTC).

    A time that the zone skips is read with the offset before; of a time that comes twice the first is taken.
    """
    if when.tzinfo is not None:
        return when.astimezone(UTC)
    try:
        return civil.instant_of(zone(tz or "UTC").instant(local_of(when))).replace(microsecond=when.microsecond)
    except OverflowError:
        raise RuleInvalid("time_invalid.years", when=when.isoformat(), tz=tz) from None


def parse_rule(
    spec: RuleSpec, *, default_tz: str | None = None, dst: DstPolicy | None = None, now: datetime | None = None
) -> Recurrence:
    """Read one rule of any language.

    Args:
        spec: text with its kind (None: recognised), anchor and zone.
        default_tz: zone of the schedule, used when neither text nor spec names one.
        dst: policy for gaps and folds; None and None fields are the language's default.
        now: aware instant from which ``in 90s`` counts; nothing else looks at it.

    Raises:
        RuleInvalid: the text is no rule, with the position of the mistake.
    """
    text, kind = _checked(spec)
    dst = dst or DstPolicy()
    tz = spec.tz if spec.tz is not None else default_tz
    if read := _phrase(spec, text, kind, tz):
        return english.recurrence(*read, dst, bounded=spec.dtstart is not None)
    if kind is Kind.RRULE:
        return rrule.parse(text, dtstart=spec.dtstart, tz=tz, dst=dst)
    anchor = None if spec.dtstart is None else _anchor(spec.dtstart)
    if kind is Kind.CRON:
        crontab = cron.parse(text)
        return _zoned(crontab.rule, crontab.tz or tz, crontab.tz_index if crontab.tz else None, dst)
    if kind is Kind.SCHYNTAX:
        return by_granularity(schyntax.parse(text), zone("UTC" if tz is None else tz), dst)
    if kind in {Kind.EVERY, Kind.ENGLISH}:  # of English only a step of whole days that does not begin on a whole second
        if tz is not None:
            zone(tz)  # an interval has no wall clock, but a name that is no zone is still a mistake
        counted_from = None if spec.counted_from is None else _anchor(spec.counted_from)
        origin = anchor or counted_from
        return parse_every(text, None if origin is None else local_instant(origin, tz), starts=anchor is not None)
    if kind is Kind.CHANGES:
        return parse_changes(text)
    if said := re.fullmatch(_ONCE_SENTENCE, text.strip()):
        text, tz = said[1], said[2] or tz
    once = parse_once(text, now)
    if isinstance(once, OnceAt):
        if tz is not None:
            zone(tz)
        return once
    return _zoned(once, tz, None, dst)


def _phrase(spec: RuleSpec, text: str, kind: Kind, tz: str | None) -> tuple[english.Phrase, int | None, Zone] | None:
    """Return a rule in English, its start as local second and its zone; None for any other rule."""
    # A wall clock has whole seconds.
    if kind is not Kind.ENGLISH or (spec.dtstart and _anchor(spec.dtstart).microsecond and whole_days(text)):
        return None
    phrase = english.parse(text.strip(" \t\r\n"))
    home = zone(phrase.zone or tz or "UTC")
    begin = spec.dtstart if spec.dtstart is not None else spec.counted_from
    return phrase, None if begin is None else _local_start(_anchor(begin), home), home


def parse_days(spec: RuleSpec, *, default_tz: str | None = None) -> tuple[Recurrence, Zone] | None:
    """Return the midnights of the days that a rule names, and their zone; None for an RRULE, times of day and moments.

    Raises:
        RuleInvalid: the text is no rule, or one part of it names times of day and another none.
    """
    text, kind = _checked(spec)
    tz = spec.tz if spec.tz is not None else default_tz
    midnight = DstPolicy(Gap.NEXT, Fold.FIRST)
    if kind is Kind.ONCE and (date := re.fullmatch(_DATE, text.strip(" \t\r\n"))):
        text, kind = "-".join(date.groups()), Kind.ENGLISH
    if read := _phrase(spec, text, kind, tz):
        phrase, start, home = read
        if not phrase.names_days():
            return None
        start = None if start is None else start - start % civil.DAY_S
        return english.recurrence(phrase, start, home, midnight, bounded=spec.dtstart is not None), home
    if kind is Kind.SCHYNTAX and schyntax.names_days(text):
        home = zone("UTC" if tz is None else tz)
        return Zoned(schyntax.parse(text), home, midnight), home
    return None


def takes_dtstart(spec: RuleSpec) -> bool:
    """Whether a rule counts from a start beside its text: its language has one, and its text names none."""
    text, kind = _checked(spec)
    return kind in ANCHORED and not (kind is Kind.RRULE and re.search(r"\bDTSTART[:;]", text, re.IGNORECASE))


def resolved(spec: RuleSpec, now: datetime, *, tz: str | None = None, start: datetime | None = None) -> RuleSpec:
    """Resolve the parts of a rule that depend on the moment: ``in 3 days`` its instant, an interval or a step of days its start.

    What is stored must mean the same whenever it is read again, so a schedule stores the resolved spec.

    Args:
        tz: zone of the schedule, for rules without their own.
        start: the schedule's own start; without one an interval counts from now, and days from now's at midnight.

    Raises:
        RuleInvalid: the text is no rule.
    """
    text, kind = _checked(spec)
    if kind in (Kind.ENGLISH, Kind.EVERY) and spec.dtstart is None and spec.counted_from is None:
        return replace(spec, counted_from=_start_of(spec, text, kind, now, tz, start))
    if kind is not Kind.ONCE or not is_relative(text):
        return spec
    once = parse_once(text, now)
    assert isinstance(once, OnceAt)
    return RuleSpec(text=f"at {format_instant(once.instant)}", kind=Kind.ONCE, dtstart=spec.dtstart, tz=spec.tz)


def _start_of(
    spec: RuleSpec, text: str, kind: Kind, now: datetime, tz: str | None, start: datetime | None
) -> str | None:
    """Start of an interval or of a phrase, as text; None when its slots do not depend on one."""
    if kind is Kind.EVERY:
        every = parse_every(text)
        return None if every != Every(every.period_us) else format_instant((start or now).replace(microsecond=0))
    phrase = english.parse(text.strip(" \t\r\n"))
    if start is not None and phrase.follows_start():
        return format_instant(start)
    if not phrase.needs_start():
        return None
    if phrase.counts_days():
        home = zone(phrase.zone or spec.tz or tz or "UTC")
        local = home.local(utc_floor(start or now)[0])  # at the ends of the calendar its day may lie beyond them
        return civil.naive_of(min(max(local, civil.MIN_LOCAL), civil.MAX_LOCAL)).date().isoformat()
    return format_instant((start or now).replace(microsecond=0))
