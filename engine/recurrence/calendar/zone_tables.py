"""Changes of a zone's offset as a table, for the scripts' ``Temporal``, which computes with the same pinned database as slots."""

from functools import cache, lru_cache, partial
from typing import Any

from lodger.engine.recurrence.calendar.civil import CYCLE_DAYS, DAY_S
from lodger.engine.recurrence.calendar.zones import FAR, stored, zone, zone_names

#: From 2100 on every zone follows a yearly rule, so that the 400 years from there repeat, as the calendar does.
REPEATS_FROM_S = 4_102_444_800
_CYCLE_S = CYCLE_DAYS * DAY_S
_UTC = {"Etc/UTC", "Etc/GMT", "GMT"}


def zone_table(name: str, *, far: bool) -> dict[str, Any] | None:
    """Return the changes of a zone, None for an unknown name.

    Args:
        name: IANA name in any case.
        far: the 400 years from 2100 instead of everything before.

    Returns:
        ``name``; ``primary``, the name of which it is an alias, or itself; ``starts``, UTC seconds of the changes;
        ``offsets``, seconds east of UTC, one more: the first holds before the first change.
    """
    known = _names().get(name.lower()) if len(name) <= 64 else None
    return None if known is None else (_far if far else _near)(known)


def _table(name: str, *, far: bool) -> dict[str, Any]:
    """Return a zone's changes of offset in a range of time."""
    first, last = (REPEATS_FROM_S, REPEATS_FROM_S + _CYCLE_S) if far else (-FAR, REPEATS_FROM_S)
    before, *after = zone(name).stretches(first, last)
    starts, offsets = [each.start for each in after], [before.offset, *(each.offset for each in after)]
    return {"name": name, "primary": _primary(name), "starts": starts, "offsets": offsets}


#: Changes before 2100 are computed once in a process: 9 MB for all zones.
_near = cache(partial(_table, far=False))
_far = lru_cache(maxsize=64)(partial(_table, far=True))


@cache
def _names() -> dict[str, str]:
    """Return zone names by their lower-case form."""
    return {name.lower(): name for name in zone_names()}


def _primary(name: str) -> str:
    """Return the name by which ECMA-402 §6.5 compares zones; a zone of another country is no alias."""
    found = name if name in _countries_own() else _links().get(name, name)
    return "UTC" if found in _UTC else found


@cache
def _countries_own() -> frozenset[str]:
    """Return the names of the zones that zone.tab assigns to countries."""
    lines = stored("zoneinfo", "zone.tab").decode("utf-8").splitlines()
    return frozenset(line.split("\t")[2] for line in lines if not line.startswith("#"))


@cache
def _links() -> dict[str, str]:
    """Return the zones that other names are aliases of."""
    lines = stored("zoneinfo", "tzdata.zi").decode("utf-8").splitlines()
    return {alias: target for _, target, alias in (line.split() for line in lines if line.startswith("L "))}
