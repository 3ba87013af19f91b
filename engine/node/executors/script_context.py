"""The context JSON of a bundle, which a script gets before it starts."""

from functools import lru_cache
from typing import Any

from lodger.engine.core import strict_json
from lodger.engine.core.access.grants import Grants
from lodger.engine.core.clock import from_us
from lodger.engine.core.execution import Claim
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.recurrence.calendar.zones import python_zone, zone, zone_names

_MONTH_S, _BACK_S, _AHEAD_S = (days * 86_400 for days in (30, 3 * 365, 5 * 365))


def context_json(claim: Claim, datasets: Datasets, now_us: int) -> str:
    """Write the context of an attempt.

    ``{"action": {"id", "scheduleId", "slot", "localTime", "timezone", "previousSlot", "upcoming", "attempt", "lastResult",
    "lastRun": {"slot", "startedAt", "node"} or null, "input"}, "now_us", "grants",
    "datasets": {name: {"key", "columns": {name: kind}}}, "functions": [name, …], "offsets": [[from_us, seconds], ...]}``;
    slots are tagged instants. ``offsets`` are the zone's, some years around now: the script's side has no time zone data
    of its own. Before the first and after the last, the nearest holds.
    """
    named = claim.slot_us if claim.slot_us is not None else claim.due_us
    about: dict[str, Any] = {
        "id": claim.action_id,
        "scheduleId": claim.schedule_id,
        "slot": _tag(claim.slot_us),
        "localTime": _local(named, claim.tz),
        "timezone": claim.tz,
        "previousSlot": _tag(claim.previous_slot_us),
        "upcoming": [_tag(us) for us in claim.upcoming_us],
        "attempt": claim.tries,
        "lastResult": claim.last_result,
        "lastRun": _last_run(claim),
        "input": claim.params,
    }
    shared = _shared(claim.grants, datasets.pinned(), claim.tz, now_us // (_MONTH_S * 1_000_000))
    return f'{{"action":{strict_json.dump_input(about)},"now_us":{now_us},{shared}'


@lru_cache(maxsize=256)
def _shared(grants: Grants, datasets: Datasets, tz: str, month: int) -> str:
    """Return the members that many contexts share, as JSON text up to the end: ``datasets`` is a snapshot, which never changes."""
    members = {
        "grants": grants.shown(),
        "datasets": _readable(grants, datasets),
        **({"functions": names} if (names := datasets.function_names) else {}),
        "offsets": offsets(tz, month),
    }
    return strict_json.dump(members)[1:]


def _readable(grants: Grants, datasets: Datasets) -> dict[str, Any]:
    """Describe the datasets that a run may read, with their columns and relations."""
    found = {
        name: about for name, about in datasets.described().items() if grants.of_rows(name, exposed=True, write=False)
    }
    return {
        name: about | {"links": {link: target for link, target in about["links"].items() if target in found}}
        for name, about in found.items()
    }


@lru_cache(maxsize=1024)
def offsets(tz: str, month: int) -> tuple[tuple[int, int], ...]:
    """Return the zone's offsets around now as (from which microsecond, seconds east of UTC); the first holds from always.

    Args:
        tz: IANA zone.
        month: now in spans of 30 days since 1970: the answer is worked out once for each.
    """
    there = zone(_known(tz))
    now_s = month * _MONTH_S  # no datetime: the last month of the year 9999 has none that lies years ahead
    start, end = now_s - _BACK_S, now_s + _AHEAD_S
    here = there.segment(start)
    found = [(start * 1_000_000, here.offset)]
    while here.end <= end:
        here = there.segment(here.end)
        found.append((here.start * 1_000_000, here.offset))
    return tuple(found)


def _known(tz: str) -> str:
    """Return a zone's name if the pinned database, which slots are computed by, knows it; else UTC."""
    return tz if tz in zone_names() else "UTC"


def _last_run(claim: Claim) -> dict[str, Any] | None:
    """Return the script's view of the last successful run of its schedule."""
    if claim.last_start_us is None:
        return None
    started = _tag(claim.last_start_us)
    return {"slot": _tag(claim.previous_slot_us), "startedAt": started, "node": claim.last_node}


@lru_cache(maxsize=4096)
def _tag(us: int | None) -> dict[str, str] | None:
    """Return an instant in wire form; None for None."""
    return None if us is None else strict_json.tag_instant(from_us(us))


def _local(us: int, tz: str) -> str:
    """Return an instant as local time in a zone, without the zone."""
    return from_us(us).astimezone(python_zone(_known(tz))).replace(tzinfo=None).isoformat(timespec="seconds")
