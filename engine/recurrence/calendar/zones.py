"""The offsets of an IANA zone as integers: exact for every year from 1 to 9999, without a zoneinfo call per question.

The compiled files of the pinned ``tzdata`` distribution are read once per zone (RFC 8536); years after the last stored
transition follow a yearly rule, as :class:`ZoneInfo` reads it, by the kind of the year: there are few, whatever the year's number.
"""

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import datetime, timedelta
from difflib import get_close_matches
from functools import cache, cached_property, partial
from io import BytesIO
from math import gcd
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import tzdata
from tzlocal.windows_tz import win_tz

from lodger.engine.recurrence.calendar import civil
from lodger.engine.recurrence.calendar.yeardays import KIND_OF, YEAR_OF
from lodger.engine.recurrence.rule_errors import RuleInvalid

FAR = 1 << 62
_CYCLE_S = civil.CYCLE_DAYS * civil.DAY_S
#: 400 years in which any other year is looked up, because the calendar repeats: the first day and second.
_CYCLE_BEGINS = civil.year_start(2000)
_CYCLE_BEGINS_S = _CYCLE_BEGINS * civil.DAY_S


class Segment(NamedTuple):
    """A stretch of time with one offset from UTC; all in seconds.

    ``start`` (inclusive) and ``end`` (exclusive) are UTC; ``before`` and ``after`` the offsets of the neighbours.
    """

    start: int
    end: int
    offset: int
    before: int
    after: int


class Zone:
    """One zone's whole history and future."""

    def __init__(self, key: str, starts: list[int], offsets: list[int], stored_to: int, rule: ZoneInfo | None) -> None:
        self.key = key
        self._starts = starts  # UTC seconds at which offsets[i + 1] begins
        self._offsets = offsets
        self._rule = rule  # knows the changes after the stored ones; None without any
        self.stored_to = stored_to  # UTC second of the last stored change
        #: Changes about a year of each kind: seconds after its January 1, and the offsets.
        self._yearly: dict[int, tuple[list[int], list[int]]] = {}
        self._listed_to = FAR
        if rule is not None:
            after = civil.year_start(civil.civil(stored_to // civil.DAY_S)[0] + 3) * civil.DAY_S
            for at, offset in self._changes(stored_to, after):
                starts.append(at)
                offsets.append(offset)
            # Up to the last of them the end of every stretch is listed.
            self._listed_to = starts[-1]

    def segment(self, utc: int) -> Segment:
        """Return the stretch of constant offset that holds a UTC second."""
        begin, starts, offsets = 0, self._starts, self._offsets
        if utc >= self._listed_to:
            cycles, second = divmod(utc - _CYCLE_BEGINS_S, _CYCLE_S)
            year = civil.civil(_CYCLE_BEGINS + second // civil.DAY_S)[0]
            begin = cycles * _CYCLE_S + civil.year_start(year) * civil.DAY_S
            kind = KIND_OF[year % 400]
            starts, offsets = self._yearly.get(kind) or self._changes_about(kind)
        i = bisect_right(starts, utc - begin)
        return Segment(
            starts[i - 1] + begin if i else -FAR,
            starts[i] + begin if i < len(starts) else FAR,
            offsets[i],
            offsets[i - 1] if i else offsets[0],
            offsets[i + 1] if i < len(starts) else offsets[i],
        )

    def _changes_about(self, kind: int) -> tuple[list[int], list[int]]:
        """Changes of offset in a year of a kind and in the years beside it, which the kind determines too."""
        year = YEAR_OF[kind] + civil.CYCLE_YEARS  # after all stored changes
        before, begin, after = (civil.year_start(each) * civil.DAY_S for each in (year - 1, year, year + 2))
        changes = list(self._changes(before, after))
        offsets = [self._ruled(before), *(offset for _, offset in changes)]
        found = self._yearly[kind] = ([at - begin for at, _ in changes], offsets)
        return found

    def _ruled(self, utc: int) -> int:
        """Return the offset at a UTC second by the yearly rule."""
        offset = datetime.fromtimestamp(utc, self._rule).utcoffset() or timedelta()
        return int(offset.total_seconds())

    def _differs(self, offset: int, utc: int) -> bool:
        """Whether the yearly rule has another offset at a UTC second."""
        return self._ruled(utc) != offset

    def _changes(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield UTC second and new offset of each change by the yearly rule in a range of time: an offset holds for a week at least."""
        for week in range(first, end, 7 * civil.DAY_S):
            last, before = min(week + 7 * civil.DAY_S, end), self._ruled(week)
            if (after := self._ruled(last)) != before:
                yield week + bisect_left(range(week, last), True, key=partial(self._differs, before)), after

    def stretches(self, first: int, end: int) -> Iterator[Segment]:
        """Yield the stretches of constant offset from the one that holds a UTC second up to an end."""
        here = self.segment(first)
        yield here
        while here.end < end:
            here = self.segment(here.end)
            yield here

    @cached_property
    def _recent(self) -> list[Segment]:
        """Every stretch since 1970, until changes repeat from year to year."""
        return list(self.stretches(0, min(FAR, civil.MAX_LOCAL, self.stored_to + 800 * civil.DAY_S)))

    @cached_property
    def largest_change(self) -> int:
        """Size in seconds of the largest change of the clock since 1970; 0 when there is none."""
        return max((abs(here.offset - here.before) for here in self._recent[1:]), default=0)

    @cached_property
    def offsets(self) -> frozenset[int]:
        """Every offset from UTC since 1970, seconds."""
        return frozenset(here.offset for here in self._recent)

    @cached_property
    def granule_s(self) -> int:
        """Greatest common divisor of a day and of all offsets from UTC since 1970."""
        return gcd(civil.DAY_S, *self.offsets)

    def offset(self, utc: int) -> int:
        """Seconds east of UTC at a UTC second."""
        return self.segment(utc).offset

    def local(self, utc: int) -> int:
        """Local second that the wall clock shows at a UTC second."""
        return utc + self.segment(utc).offset

    def plain(self, utc: int) -> bool:
        """Whether the wall clock shows this second's local time only once, and the gap policy moves no skipped time to it."""
        here = self.segment(utc)
        if utc < here.start + abs(here.offset - here.before):
            return False
        return utc < here.end - max(0, here.offset - here.after)

    def instants(self, local: int) -> list[int]:
        """UTC seconds at which the wall clock shows the local second: none in a gap, two in a fold."""
        around = self.stretches(local - 2 * civil.DAY_S, local + 2 * civil.DAY_S)
        return [local - here.offset for here in around if here.start <= local - here.offset < here.end]

    def instant(self, local: int) -> int:
        """UTC second of a local second: the first of two; one in a gap is read with the offset before (RFC 5545 §3.3.5)."""
        instants = self.instants(local)
        return instants[0] if instants else local - self.offset(local - civil.DAY_S)


def zone_names() -> frozenset[str]:
    """Every name that the pinned database knows."""
    return _names()


@cache
def _names() -> frozenset[str]:
    """Return all zone names."""
    return frozenset(stored("zones").decode("ascii").split())


def stored(*path: str) -> bytes:
    """Return the content of a file of the pinned tzdata, by the package's loader: importlib.resources is slower than a whole query."""
    loader: Any = tzdata.__loader__
    found: bytes = loader.get_data("/".join((tzdata.__path__[0], *path)))
    return found


def tzdata_version() -> str:
    """Release of the pinned database, such as ``2026a``."""
    return str(tzdata.IANA_VERSION)


@cache
def python_zone(key: str) -> ZoneInfo:
    """Return the ``ZoneInfo`` of a zone from the pinned database; ``ZoneInfo(key)`` prefers the machine's own.

    Raises:
        RuleInvalid: ``zone_unknown``.
    """
    return ZoneInfo.from_file(BytesIO(stored("zoneinfo", *zone(key).key.split("/"))), key=key)


@cache
def load(key: str) -> Zone:
    """Parse the zone of a known IANA name; each is parsed once."""
    return _parse(key, stored("zoneinfo", *key.split("/")))


@cache
def _windows() -> dict[str, str]:
    """Return the IANA names of zones by the names that Windows gives them (CLDR), in small letters."""
    return {name.lower(): zone for name, zone in win_tz.items()}


def known_zone(key: str) -> str | None:
    """Return the IANA name of a zone: itself, of a Windows name, or after a prefix such as ``/mozilla.org/…/``."""
    if not isinstance(key, str) or len(key) > 128:
        return None
    if key in _names():
        return key
    if key[:1] == "/":
        parts = key.split("/")
        return next(
            (name for at in range(1, len(parts)) if (name := "/".join(parts[at:])) in _names() and "/" in name), None
        )
    return _windows().get(key.lower())


def zone(key: str, index: int | None = None) -> Zone:
    """Return the zone of a name as in :func:`known_zone`; ``index`` is the position of the name in the caller's text.

    Raises:
        RuleInvalid: ``zone_unknown``.
    """
    name = known_zone(key)
    if name is None:
        shown = key if isinstance(key, str) and len(key) <= 64 else f"{str(key)[:61]}..."
        near = get_close_matches(shown, _names(), 1)
        raise RuleInvalid(
            "zone_unknown", zone=shown, release=tzdata_version(), near=near[0] if near else None, index=index
        )
    return load(name)


def _parse(key: str, data: bytes) -> Zone:
    """Read a TZif file of version 2 or later (RFC 8536 §3)."""
    head = struct.Struct(">4s1s15x6l")
    magic, version, *counts = head.unpack_from(data)
    if magic != b"TZif" or version < b"2":
        raise ValueError(f"{key} is not a TZif file of version 2")
    isut, isstd, leap, times, types, chars = counts
    at = head.size + times * 5 + types * 6 + chars + leap * 8 + isstd + isut
    _, _, isut, isstd, leap, times, types, chars = head.unpack_from(data, at)
    at += head.size
    instants = struct.unpack_from(f">{times}q", data, at)
    at += times * 8
    kinds = data[at : at + times]
    at += times
    utoff = [struct.unpack_from(">l", data, at + i * 6)[0] for i in range(types)]
    at += types * 6 + chars + leap * 12 + isstd + isut
    footer = data[at:].strip(b"\n").decode("ascii")
    starts: list[int] = []
    offsets = [utoff[0]]
    for instant, kind in zip(instants, kinds, strict=True):
        if utoff[kind] != offsets[-1]:  # a change of name only is no transition here
            starts.append(instant)
            offsets.append(utoff[kind])
    # Without a rule the clocks change no more.
    rule = ZoneInfo.from_file(BytesIO(data), key=key) if "," in footer else None
    return Zone(key, starts, offsets, instants[-1] if times else 0, rule)
