"""The overview: what is wrong and what to do, what runs, what is overdue and why, the last hour, nodes, blocked sessions."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from lodger.engine.core.errors import InputError
from lodger.engine.store.actions.error_groups import MAX_COUNTED
from lodger.engine.store.queue.outbox import Delivery
from lodger.engine.web import charts
from lodger.engine.web.page import PAGE, Reader, Values
from lodger.engine.web.texts import _

#: Reasons of actions that wait on request.
INTENDED = ("paused", "tenant_suspended", "script_suspended")
#: Waiting actions that are looked at.
MAX_WAITING = 1000
#: Part of the hour's ended actions that may fail before the page says so.
FAILING = 0.1
#: How long mails and webhooks may be due before the page says so, and failed tries after which a mail's error is shown.
UNSENT, MAIL_TRIES = timedelta(minutes=5), 3
#: Times of charts and errors, in hours.
RANGES = {"1h": 1, "24h": 24, "7d": 168, "30d": 720}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong, and what to do. ``level`` is ``bad`` (work stands still or is late) or ``warn``."""

    level: str
    text: str
    fix: str
    link: str = ""


def overview(reader: Reader) -> tuple[str, Values]:
    """Return the overview of all tenants or of one.

    Raises:
        InputError: range_unknown.
    """
    tenant = reader.tenant
    everywhere = tenant["tenant_id"] is None
    chosen = reader.request.query_params.get("range", "1h")
    if chosen not in RANGES:
        raise InputError("range_unknown", word=chosen, words=list(RANGES))
    of_platform = (("nodes.list", {"gone": False}), ("metrics.blocked", {})) if everywhere else ()
    waiting, running, outbox, (activity, errors), *found = reader.together(
        ("actions.overdue", tenant | {"limit": MAX_WAITING}),
        ("actions.running", tenant | {"limit": PAGE}),
        ("actions.outbox", tenant | {"limit": PAGE}),
        lambda: _in_range(reader, RANGES[chosen]),
        *of_platform,
    )
    nodes, blocked = found or (None, None)
    late = [each for each in waiting if each.why not in INTENDED]
    count = f"{len(late):,}{' ' + _('or more') if len(late) == MAX_WAITING else ''}"
    findings = [*_of_ledger(reader, outbox), *_of_nodes(nodes), *_of_work(late, count, activity, blocked)]
    return "overview.html", {
        "activity": activity,
        "running": running,
        "overdue": late,
        "overdue_count": count,
        "intended": [each for each in waiting if each.why in INTENDED],
        "errors": errors,
        "most_errors": MAX_COUNTED,
        "ranges": list(RANGES),
        "range": chosen,
        "since": f"{activity.parts[0].start:%Y-%m-%dT%H:%M:%SZ}",
        "span": charts.span(activity),
        "nodes": nodes,
        "blocked": blocked,
        "findings": sorted(findings, key=lambda each: each.level != "bad"),
        "page": PAGE,
    }


def _in_range(reader: Reader, hours: int) -> tuple[Any, Any]:
    """Return the activity of the last hours, and the errors in it."""
    activity = reader.ask("actions.activity", **reader.tenant, hours=hours)
    return activity, reader.ask("actions.errors", **reader.tenant, since=activity.parts[0].start)


def _of_ledger(reader: Reader, outbox: Iterable[Delivery]) -> Iterator[Finding]:
    """Yield findings about writes that are refused, and about mails and webhooks that nothing sends."""
    if reader.caller.tenant_id is None and (refused := reader.refused) is not None:
        yield Finding("bad", f"{refused.what}: {refused.why}.", f"{refused.fix[:1].upper()}{refused.fix[1:]}")
    bad, warn = (partial(Finding, level, link=f"{reader.base}/operations/actions.outbox") for level in ("bad", "warn"))
    late = [each for each in outbox if each.next_at and each.next_at < reader.now - UNSENT]
    if late:
        text = _("The outbox is stopped: mails and webhooks wait since {0} UTC.", f"{late[0].next_at:%Y-%m-%d %H:%M}")
        yield bad(text, _("See whether a node is alive and LODGER_MAIL_HOST names its mail server"))
    errors = (each.error for each in outbox if each.kind == "mail" and each.attempts >= MAIL_TRIES and each.error)
    if (error := next(errors, None)) is not None:
        yield warn(_("Mails are not accepted: {0}.", error.rstrip(".")), _("See the mail server"))


def _of_nodes(nodes: Iterable[Any] | None) -> Iterator[Finding]:
    """Yield findings about nodes."""
    if nodes is None:
        return
    bad, warn = (partial(Finding, level, link="nodes") for level in ("bad", "warn"))
    there = list(nodes)
    if not any(each.state in {"alive", "paused", "held"} for each in there):
        yield bad(_("No node is alive: nothing runs."), _("Start one: lodger up"))
    for each in there:
        if each.held:
            yield bad(_("Node {0} starts nothing: {1}.", each.name, each.held), _("Set its clock; see lodger doctor"))
        elif each.state == "silent":
            fix = _("See whether its machine and its database connection are up")
            yield bad(_("Node {0} is silent.", each.name), fix)
        elif each.state == "paused":
            yield warn(_("Node {0} is paused.", each.name), _("Resume it: lodger node resume {0}", each.name))
        missing = [name for name, active in (each.walls or {}).items() if not active]
        if missing:
            text = _("Node {0} runs without {1}.", each.name, ", ".join(missing))
            yield warn(text, _("See what it lacks: lodger doctor"))


def _of_work(late: list[Any], count: str, activity: Any, blocked: list[Any] | None) -> Iterator[Finding]:
    """Yield findings about late and failed actions, and about blocked database sessions."""
    if blocked:
        one = _("1 database session is blocked.")
        text = one if len(blocked) == 1 else _("{0} database sessions are blocked.", len(blocked))
        yield Finding("bad", text, _("End the one that holds up the others"), "blocked")
    if late:
        text = _("1 action is overdue.") if len(late) == 1 else _("{0} actions are overdue.", count)
        yield Finding("bad", text, _("The reason stands beside each"), "overdue")
    ended = activity.done + activity.failed
    if activity.failed > FAILING * ended:
        text = _("{0} of {1} actions failed in the last {2}.", activity.failed, ended, charts.span(activity))
        yield Finding("warn", text, _("See the errors, mend, retry all"), "errors")
