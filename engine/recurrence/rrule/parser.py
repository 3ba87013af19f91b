"""The strict parser of a recurrence set: DTSTART, RRULE, RDATE, EXDATE, EXRULE lines, or one bare rule."""

import re
from dataclasses import dataclass, field, replace

from lodger.engine.recurrence.calendar import civil
from lodger.engine.recurrence.calendar.civil import UNANCHORED
from lodger.engine.recurrence.calendar.zones import Zone, zone
from lodger.engine.recurrence.rrule.bounds import DATES, RULES, TEXT_BYTES
from lodger.engine.recurrence.rrule.moments import Length, Moment, read_duration, read_moment, read_start
from lodger.engine.recurrence.rrule.part_parser import parse_parts
from lodger.engine.recurrence.rrule.parts import Freq, Rule
from lodger.engine.recurrence.rule_errors import RuleInvalid

#: Parameter of RRULE and EXRULE that RFC 5545 leaves to its users: a start of its own.
START = "X-LODGER-START"

#: A fold, or spaces after a semicolon or a comma.
_FOLD = re.compile(r"(?:\r\n|\n|\r)[ \t]|(?<=[;,])[ \t]+")
_CONTENT = re.compile(r"[^\r\n]+")
#: What stands between spaces; only the name of a zone has spaces inside.
_TOKEN = re.compile(r"(?:;TZID=[A-Z][A-Za-z0-9. ()+-]{0,62}(?=:)|[^ \t])+")
#: Name of a property before its value or parameters, or of the first part of a bare rule.
_HEAD = re.compile(r"([A-Za-z-]+)([:;=])")
_PARAMETER = re.compile(r';([A-Za-z-]+)=("[^"]*"|[^;:"]*)')
_TIMES = re.compile(r"\bBY(?:HOUR|MINUTE|SECOND)=", re.IGNORECASE)
_KNOWN = ("DTSTART", "RRULE", "EXRULE", "RDATE", "EXDATE", "DURATION")


@dataclass(frozen=True, slots=True)
class Entry:
    """One RRULE or EXRULE line.

    Attributes:
        start: local second that it counts from; the set's unless the line says otherwise.
        until: last local second that may be a member.
        last: the UTC second that its UNTIL names, when the wall clock shows that moment twice or reached it by a jump.
    """

    rule: Rule
    start: int
    until: int | None = None
    last: int | None = None


@dataclass(slots=True)
class RuleSet:
    """A parsed recurrence set; every second is local to ``zone`` unless named otherwise.

    Attributes:
        anchored: whether DTSTART was given; without it the rules count from :data:`UNANCHORED`.
        date_only: DTSTART is a DATE, so a slot stands for its whole day.
        also, without: UTC seconds that RDATE and EXDATE name and that the wall clock does not tell from others.
        exdays: day numbers that EXDATE;VALUE=DATE leaves out whole.
        duration: DURATION, or None.
        unread: names of the properties of a calendar's event that say nothing about when.
    """

    start: int
    zone: Zone
    anchored: bool = True
    date_only: bool = False
    rules: list[Entry] = field(default_factory=list)
    exrules: list[Entry] = field(default_factory=list)
    rdates: set[int] = field(default_factory=set)
    exdates: set[int] = field(default_factory=set)
    exdays: set[int] = field(default_factory=set)
    also: set[int] = field(default_factory=set)
    without: set[int] = field(default_factory=set)
    duration: Length | None = None
    unread: tuple[str, ...] = ()

    def names_days(self) -> bool:
        """Whether the set names days and no time of day: DTSTART is a DATE, or there is none and the rules have no times."""
        return self.date_only or not (self.anchored or any(entry.rule.names_times() for entry in self.rules))


@dataclass(frozen=True, slots=True)
class _Line:
    name: str
    name_at: int
    parameters: list[tuple[str, str, int]]
    value: str
    value_at: int


def parse_set(text: str, dtstart: str | None = None, tz: str | None = None) -> RuleSet:
    """Return the rule set of an iCalendar text.

    Args:
        text: content lines (RFC 5545 §3.1), folded or not, that end in CRLF, LF or CR; or a bare rule.
        dtstart: the anchor when the text has none; a time with an offset or Z is an instant.
        tz: IANA zone of local times when the text names none; None is UTC.

    Raises:
        RuleInvalid: with code, reason, cure and position.
    """
    if len(text) > TEXT_BYTES:
        raise RuleInvalid("rule_too_long.set", count=len(text), maximum=TEXT_BYTES, index=0)
    unfolded, removed = _unfold(text)
    try:
        return _read(unfolded, dtstart, tz)
    except RuleInvalid as error:
        if error.index is not None:
            error.index += sum(size for at, size in removed if at <= error.index)
        raise


def _unfold(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Join folded lines: a line end before a space or tab is removed with it.

    Returns:
        The text, and for each removal its place in it and how many characters are gone.
    """
    pieces, removed, at, length = [], [], 0, 0
    for fold in _FOLD.finditer(text):
        if not text[: fold.start()].strip():
            continue  # nothing is there to be continued
        pieces.append(text[at : fold.start()])
        length += fold.start() - at
        removed.append((length, fold.end() - fold.start()))
        at = fold.end()
    return "".join([*pieces, text[at:]]), removed


def _read(text: str, dtstart: str | None, tz: str | None) -> RuleSet:
    """Return the rule set of a text."""
    event, unread = _event(text)
    lines = _lines(text) if event is None else [_line(content, at) for content, at in event]
    named = [line for line in lines if line.name in ("DTSTART", "DURATION")]
    for i, line in enumerate(named):
        if any(line.name == earlier.name for earlier in named[:i]):
            raise RuleInvalid("property_repeated", name=line.name, index=line.name_at)
    start, home, anchored = _start(lines, dtstart, tz)
    if (
        start.date
        and not any(line.name == "DTSTART" for line in lines)
        and any(_TIMES.search(line.value) for line in lines)
    ):
        start = replace(start, date=False)  # a day on which to begin, and no DATE of RFC 5545, which lacks times
    found = RuleSet(start.second, home, anchored, start.date, unread=unread)
    left = DATES
    for line in lines:
        if line.name in ("RRULE", "EXRULE"):
            if len(found.rules) + len(found.exrules) >= RULES:
                raise RuleInvalid("too_many_rules", maximum=RULES, index=line.name_at)
            (found.rules if line.name == "RRULE" else found.exrules).append(_entry(line, start, home, anchored))
        elif line.name in ("RDATE", "EXDATE"):
            if not anchored:
                raise RuleInvalid("start_missing", name=line.name, index=line.name_at)
            left -= line.value.count(",") + 1
            if left < 0:
                raise RuleInvalid("too_many_dates", maximum=DATES, index=line.value_at)
            for moment in _dates(line, home):
                if moment.utc:
                    (found.also if line.name == "RDATE" else found.without).add(moment.second)
                elif line.name == "RDATE":
                    found.rdates.add(moment.second)
                elif moment.date and not start.date:
                    found.exdays.add(moment.second // civil.DAY_S)
                else:
                    found.exdates.add(moment.second)
        elif line.name == "DURATION":
            found.duration = read_duration(line.value, line.value_at)
    if not (found.rules or found.rdates or found.also or any(line.name == "DTSTART" for line in lines)):
        raise RuleInvalid("rule_empty", index=0)
    if not found.rules and anchored:
        # DTSTART is the first occurrence (RFC 5545 §3.8.5.2), and a rule that it does not fulfil is a rule for itself.
        found.rdates.add(start.second)
    return found


def _event(text: str) -> tuple[list[tuple[str, int]] | None, tuple[str, ...]]:
    """Return the lines of the one event of a VCALENDAR or VEVENT that say when it is, and the names of its other properties; None for
    a bare set."""
    if not re.match(r"\s*BEGIN:", text, re.IGNORECASE):
        return None, ()
    inside: list[str] = []
    found: list[tuple[str, int]] = []
    unread: dict[str, None] = {}
    events = 0
    for line in _CONTENT.finditer(text):
        content = line[0].rstrip()
        name, _, value = content.partition(":")
        name = name.partition(";")[0].strip().upper()
        if name == "BEGIN":
            inside.append(value.upper())
            events += value.upper() == "VEVENT"
            if events > 1:
                raise RuleInvalid("too_many_rules.events", index=line.start())
        elif name == "END" and inside:
            inside.pop()
        elif inside and inside[-1] == "VEVENT" and name in _KNOWN:
            found.append((content, line.start()))
        elif inside and inside[-1] == "VEVENT":
            unread[name] = None
    if not found:
        raise RuleInvalid("rule_empty", index=0)
    return found, tuple(unread)


def _entry(line: _Line, start: Moment, home: Zone, anchored: bool) -> Entry:
    """Return an RRULE or EXRULE line as an entry; the line may say where it counts from, as sets of python-dateutil need it."""
    first = start
    for name, value, at in line.parameters:
        if name == START and anchored:
            first = read_moment(value, at)
            if first.utc or first.date:
                raise RuleInvalid("date_malformed.local", name=START, index=at)
        else:
            raise RuleInvalid("parameter_unknown", name=name[:40], property=line.name, index=at)
    rule = parse_parts(line.value, line.value_at)
    if rule.count is not None and not anchored:
        raise RuleInvalid("count_without_start", index=line.value_at)
    if start.date and rule.freq < Freq.HOURLY:
        # BYHOUR, BYMINUTE and BYSECOND "MUST be ignored" beside a DATE (RFC 5545 §3.3.10)
        rule = replace(rule, byhour=(), byminute=(), bysecond=())
    until, last = _until(rule, home)
    return Entry(rule, first.second, until, last)


def _until(rule: Rule, home: Zone) -> tuple[int | None, int | None]:
    """Return the last second of a rule by local and by universal time."""
    until = rule.until
    if until is None:
        return None, None
    if not until.utc:
        return until.second + civil.DAY_S - 1 if until.date else until.second, None
    shown = home.local(until.second)
    if home.plain(until.second):
        return shown, None
    here = home.segment(until.second)
    jump = here.offset - here.before
    if jump < 0 and until.second < here.start - jump:
        shown = here.start + here.before - 1  # in the second pass all of the first is over
    return shown, until.second


def _start(lines: list[_Line], dtstart: str | None, tz: str | None) -> tuple[Moment, Zone, bool]:
    """Return the start of a recurrence set, its zone, and whether the text or the caller gave a start."""
    default = zone(tz) if tz is not None else zone("UTC")
    for line in lines:
        if line.name == "DTSTART":
            moment, named = _moment(line, line.value, line.value_at)
            if moment.utc:
                return moment, zone("UTC"), True
            return moment, named or default, True
    if dtstart is None:
        return Moment(UNANCHORED), default, False
    moment = read_start(dtstart)
    if moment.utc:
        moment = Moment(default.local(moment.second))
    return moment, default, True


def _parameters(line: _Line) -> tuple[Zone | None, str | None]:
    """Return zone and value type of a line's parameters."""
    named, kind = None, None
    for name, value, at in line.parameters:
        if name == "TZID":
            named = zone(value, at)
        elif name == "VALUE":
            kind = value.upper()
            if kind not in ("DATE", "DATE-TIME"):
                raise RuleInvalid("value_unsupported", value=value[:40], index=at)
        else:
            raise RuleInvalid("parameter_unknown", name=name[:40], property=line.name, index=at)
    return named, kind


def _moment(line: _Line, text: str, at: int) -> tuple[Moment, Zone | None]:
    """Return a moment of a line with its zone."""
    named, kind = _parameters(line)
    moment = read_moment(text, at)
    if kind == "DATE" and not moment.date:
        raise RuleInvalid("date_malformed.only_date", text=text, index=at)
    if kind == "DATE-TIME" and moment.date:
        raise RuleInvalid("date_malformed.only_time", text=text, index=at)
    if named is not None and moment.utc:
        raise RuleInvalid("tzid_with_utc", text=text, index=at)
    if named is not None and moment.date:
        raise RuleInvalid("tzid_with_date", text=text, index=at)
    return moment, named


def _dates(line: _Line, home: Zone) -> list[Moment]:
    """Return the moments of an RDATE or EXDATE line in the set's zone; UTC ones only where its wall clock does not tell them from
    others."""
    found, at = [], line.value_at
    for piece in line.value.split(","):
        moment, named = _moment(line, piece, at)
        at += len(piece) + 1
        utc = moment.second if moment.utc else None
        if named is not None and named is not home:
            utc = named.instant(moment.second)
        if utc is not None:
            moment = Moment(home.local(utc)) if home.plain(utc) else Moment(utc, utc=True)
        found.append(moment)
    return found


def _lines(text: str) -> list[_Line]:
    """Split unfolded text into properties: one a line, or several with spaces before their names."""
    found: list[tuple[str, int]] = []
    for line in _CONTENT.finditer(text):
        for token in _TOKEN.finditer(line[0]):
            piece, at = token[0], line.start() + token.start()
            if not piece.isascii():
                bad = next(i for i, char in enumerate(piece) if not char.isascii())
                raise RuleInvalid("not_ascii", character=piece[bad], index=at + bad)
            head = _HEAD.match(piece)
            if head is None or (head[2] == "=" and found):
                if token.start() and found:
                    raise RuleInvalid("space_in_rule", index=at - 1)
                raise RuleInvalid("part_malformed.rule", piece=piece[:40], index=at)
            found.append((piece, at))
    if not found:
        raise RuleInvalid("rule_empty.text", index=0)
    return [_line(piece, at) for piece, at in found]


def _line(content: str, at: int) -> _Line:
    """Split a content line into its name, parameters and value; ``at`` is its position in the text."""
    head = _HEAD.match(content)
    assert head is not None
    name = head[1]
    if head[2] == "=":
        return _Line("RRULE", at, [], content, at)
    if name.upper() not in _KNOWN:
        raise RuleInvalid("property_unknown", name=name[:40], index=at)
    parameters, position = [], len(name)
    name = name.upper()
    while content[position : position + 1] == ";":
        found = _PARAMETER.match(content, position)
        if not found:
            raise RuleInvalid("parameter_unknown.malformed", name=name, index=at + position)
        parameters.append((found[1].upper(), found[2].strip('"'), at + found.start(2)))
        position = found.end()
    if content[position : position + 1] != ":":
        raise RuleInvalid("part_malformed.value", name=name, index=at + position)
    value = content[position + 1 :]
    if not value:
        raise RuleInvalid("part_malformed", piece=name, index=at + position)
    return _Line(name, at, parameters, value, at + position + 1)
