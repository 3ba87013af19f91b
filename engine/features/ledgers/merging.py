"""Answers of several ledgers as one: pages in their order, numbers as sums, lists in the order of their verb."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import merge
from typing import Any

from lodger.engine.core.metrics import Sample, joined, metric
from lodger.engine.features.ledgers.directory import TenantPlace
from lodger.engine.service.bulk import Matched
from lodger.engine.store.actions.activity import MAX_FAILURES, Activity, ActivityPart
from lodger.engine.store.records import Page, Tenant, Token
from lodger.engine.store.tenants.tenant_activity import TenantActivity

#: Orders of lists, by operation; other lists stand one ledger after the other.
_ORDERS: dict[str, Callable[[Any], Any]] = {
    "actions.errors": lambda each: each.order(),
    "actions.running": lambda each: each.started_at,
    "actions.overdue": lambda each: each.order(),
    "nodes.list": lambda each: each.name,
    "schedules.recent": lambda each: each.schedule_id,
    "schedules.durations": lambda each: each.order(),
}


def pages(
    answers: Mapping[str, Page[Any]],
    places: Mapping[str, Any],
    limit: int | None,
    moved: Sequence[TenantPlace],
    first: str,
) -> tuple[Page[Any], dict[str, Any]]:
    """Return one page of the pages of all ledgers, and the place in each ledger that has more entries.

    Args:
        places: where the pages begin, by ledger; None for the beginning.
        moved: tenants that move: entries of a copy are left out.
        first: the first ledger: others have copies of its operators' tokens.
    """
    order = next((page.order for page in answers.values() if page.order is not None), None)
    if order is None:
        return Page(), {}
    ranked = [list(_ranked(name, page)) for name, page in answers.items()]
    found: Page[Any] = Page(order=order)
    seen: Counter[str] = Counter()
    reached = dict(places)
    before: Any = None
    for place, name, entry in merge(*ranked, key=lambda each: each[0], reverse=order.falls):
        # A move that has ended meanwhile is not in ``moved``: its tenant's entries were read in two ledgers, under the same ids.
        is_copy = place == before
        if limit is not None and len(found) == limit and not is_copy:
            break
        reached[name] = place
        if entry is None:
            break
        seen[name] += 1
        if isinstance(entry, Token) and entry.tenant_id is None and name != first:
            continue
        if not is_copy and not any(each.tenant == _tenant(entry) and each.ledger != name for each in moved):
            found.append(entry)
            before = place
        if seen[name] == len(answers[name]) and answers[name].next is not None:
            break
    left = {
        name: place
        for name, place in reached.items()
        if name not in answers or seen[name] < len(answers[name]) or answers[name].next is not None
    }
    # Ledgers that cannot be reached do not make a list endless.
    return found, left if any(name in answers for name in left) else {}


def _ranked(name: str, page: Page[Any]) -> Iterator[tuple[Any, str, Any]]:
    """Yield the place and the ledger of each entry of a page, and None in place of an entry where it has looked at more than it has."""
    if page.order is not None:
        yield from ((place, name, entry) for place, entry in zip(page.order.places, page, strict=True))
        if page.order.end is not None:
            yield page.order.end, name, None


def _tenant(entry: Any) -> str | None:
    """Return the id of the tenant that an entry of a list is, or belongs to; None without one."""
    return entry.id if isinstance(entry, Tenant | TenantActivity) else getattr(entry, "tenant_id", None)


def merged(operation: str, answers: Mapping[str, Any], limit: int | None) -> Any:
    """Return the answers of a verb as one."""
    if operation == "metrics.read":
        return joined(
            metric(each.name, (Sample(one.name, (*one.labels, ("ledger", ledger)), one.value) for one in each.samples))
            for ledger, found in answers.items()
            for each in found
        )
    values = list(answers.values())
    if isinstance(values[0], Matched):
        return Matched(sum(each.count for each in values), all(each.complete for each in values))
    if isinstance(values[0], Activity):
        return _activity(values)
    if operation == "actions.errors":
        values = [_same_errors([each for found in values for each in found])]
    found = [each for one in values for each in one]
    if operation == "schedules.recent":  # each ledger answers for all of the schedules
        found = list({each.schedule_id: each for each in sorted(found, key=lambda one: len(one.runs))}.values())
    if operation in _ORDERS:
        found.sort(key=_ORDERS[operation])
    return found if limit is None else found[:limit]


def _same_errors(found: list[Any]) -> list[Any]:
    """Join the groups of the same error: while a tenant moves, two ledgers have a group for it."""
    groups: dict[Any, Any] = {}
    for each in found:
        key = (each.tenant_id, each.script, each.name, each.message, each.file, each.line)
        groups[key] = max(groups.get(key, each), each, key=lambda one: one.actions)
    return list(groups.values())


def _activity(found: Sequence[Activity]) -> Activity:
    """Return the sums; percentiles are those of the ledger where they are highest."""
    parts: dict[Any, list[ActivityPart]] = {}
    for each in found:
        for part in each.parts:
            parts.setdefault(part.start, []).append(part)
    outcomes = sum((Counter(each.outcomes) for each in found), Counter())
    failures = sorted(
        (one for each in found for one in each.failures), key=lambda one: one.finished_at or one.due_at, reverse=True
    )
    return replace(
        found[0],
        **{name: sum(getattr(each, name) for each in found) for name in ("running", "due", "overdue", "done", "failed", "caught_up")},
        parts=tuple(
            ActivityPart(
                start, sum(each.done for each in some), sum(each.failed for each in some), _highest(some, "late_p50_ms"),
                _highest(some, "late_p99_ms"),
            )
            for start, some in sorted(parts.items())[-60:]
        ),
        complete_from=max(each.complete_from for each in found),
        late_p50_ms=_highest(found, "late_p50_ms"), late_p99_ms=_highest(found, "late_p99_ms"),
        outcomes=dict(outcomes), failures=tuple(failures[:MAX_FAILURES]),
    )  # fmt: skip


def _highest(found: Sequence[Any], name: str) -> float | None:
    """Return the highest value of an attribute that is not None; None if all are."""
    known = [value for each in found if (value := getattr(each, name)) is not None]
    return max(known, default=None)
