"""Finds schedules with runs that became slower, and stores their baselines; :mod:`lodger.engine.features.slow_runs.slowdown` decides."""

import json
from collections.abc import Iterable
from dataclasses import asdict, astuple, dataclass

from sqlalchemy import Connection, func, select, update

from lodger.engine.core.execution import Claim
from lodger.engine.features.slow_runs.slowdown import Baseline, Slowdown, review
from lodger.engine.store.actions.monitoring import timings
from lodger.engine.store.queue import events
from lodger.engine.store.schema.scheduling import schedules

#: The webhook event of a slow-down.
EVENT = events.ENGINE_PREFIX + "schedule.slowed"
#: Effect number of its message, below those of attempts, which are negative attempt numbers.
PLACE = -(1 << 30)
_c = schedules.c


@dataclass(frozen=True, slots=True)
class Review:
    """A new baseline of a step of a schedule.

    Attributes:
        claim: of the reviewed run.
        stored: the schedule's baselines as read, JSON; None if there were none.
        slowdown: a slow-down that has just begun; None if only the baseline is new.
    """

    claim: Claim
    stored: str | None
    baseline: Baseline
    slowdown: Slowdown | None


def review_runs(connection: Connection, claims: Iterable[Claim]) -> list[Review]:
    """Review the steps of these successful runs; return those with a changed baseline."""
    by_track = {(str(claim.schedule_id), claim.step): claim for claim in claims}
    ids = sorted({schedule for schedule, _step in by_track})
    stored = {row.id: row.baselines for row in connection.execute(select(_c.id, _c.baselines).where(_c.id.in_(ids)))}
    found = []
    for track, claim in by_track.items():
        text = stored.get(track[0])
        known = json.loads(text or "{}").get(str(claim.step))
        before = None if known is None else Baseline(*known)
        after, slowdown = review(before, timings(connection, track))
        if after is not None and after != before:
            found.append(Review(claim, text, after, slowdown))
    return found


def store_baselines(connection: Connection, reviews: Iterable[Review], now_us: int) -> list[Review]:
    """Store the baselines and enqueue the webhooks; return the slow-downs that no other node has stored meanwhile."""
    begun = []
    for each in reviews:
        claim = each.claim
        baselines = json.loads(each.stored or "{}") | {str(claim.step): astuple(each.baseline)}
        mine = (_c.tenant_id == claim.tenant_id, _c.id == claim.schedule_id)
        unchanged = func.coalesce(_c.baselines, "") == (each.stored or "")
        written = connection.execute(update(schedules).where(*mine, unchanged).values(baselines=json.dumps(baselines)))
        if written.rowcount and each.slowdown is not None:
            begun.append(each)
            place = (claim.action_id, claim.step, PLACE)
            data = _event_data(each, each.slowdown)
            events.enqueue(connection, claim.tenant_id, EVENT, data, place, now_us)
    return begun


def _event_data(found: Review, slowdown: Slowdown) -> dict[str, object]:
    """Return the data of the event about a slow-down: tenant, schedule, action, step and the durations."""
    claim = found.claim
    named = {"tenant": claim.tenant_id, "schedule": claim.schedule_id, "action": claim.action_id, "step": claim.step}
    return named | asdict(slowdown)
