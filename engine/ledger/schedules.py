"""Schedules: create, edit, pause, resume, delete. Every change accounts what the old state owes in the same transaction."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from lodger.engine.clock import from_us, to_us
from lodger.engine.errors import Conflict, InputError, NotFound, Unavailable
from lodger.engine.identity import is_id
from lodger.engine.ledger import clocks, scripts, tenants, turns
from lodger.engine.ledger.bindings import bind
from lodger.engine.ledger.books import Books, dumped, input_text
from lodger.engine.ledger.places import demand_placed
from lodger.engine.ledger.records import AnyRow, Json, Schedule
from lodger.engine.ledger.rulebook import decode_rules, encode_rules, zone_of
from lodger.engine.ledger.schema import scheduling as tables
from lodger.engine.ledger.stops import stop_waiting
from lodger.engine.policy.allowance import Allowance
from lodger.engine.policy.conduct import Conduct, parse_conduct
from lodger.engine.policy.labels import written
from lodger.engine.policy.missed import parse_missed
from lodger.engine.policy.overlap import parse_overlap
from lodger.engine.policy.retry import parse_retry
from lodger.engine.recurrence.errors import RuleNeverFires
from lodger.engine.recurrence.rule import ScheduleRules
from lodger.engine.recurrence.zones import tzdata_version
from lodger.engine.typed_params import accepted

#: Most scripts of one action.
MOST_STEPS = 20
#: {"script_id": …, "limits": {…} or None}
Step = dict[str, Any]

_s, _r, _k = tables.schedules.c, tables.schedule_revisions.c, tables.schedule_clock.c


@dataclass(frozen=True, slots=True)
class Wish:
    """What a caller wants of a schedule, all of it checked and written as one revision.

    ``script`` is a name, or the steps in order: names, or objects with ``script`` and ``limits``.
    """

    script: str | Sequence[str | Mapping[str, Any]]
    rules: ScheduleRules
    missed: str
    overlap: str
    retry: Any = None
    limits: Mapping[str, Any] | None = None
    params: Json = None
    conduct: Conduct | Mapping[str, Any] | None = None


def create(
    books: Books,
    connection: Connection,
    tenant_id: str,
    name: str,
    wish: Wish,
    now_us: int,
    first_after_us: int | None = None,
    gap_s: float | None = None,
) -> Schedule:
    """Bind a script to rules.

    Args:
        first_after_us: instant from which slots are owed, itself included; default after now. One in the past lets the missed
            policy act at the first tick.
        gap_s: smallest distance of two slots, measured before the transaction; None when there is but one slot.

    Raises:
        RuleNeverFires: no slot is left from that instant on.
        InputError, NotFound, Conflict: rule_too_frequent, schedules_full, schedule_exists and whatever is wrong with a part.
    """
    allowed = books.sources.allowance(json.dumps(tenants.demand_active(connection, tenant_id).limits))
    scripts.named(name, "schedule")
    _spaced(gap_s, allowed)
    steps = _steps(books, connection, tenant_id, wish.script, wish.params)
    taken = select(_s.id).where(_s.tenant_id == tenant_id, _s.name == name, _s.deleted_us.is_(None))
    if connection.scalar(taken) is not None:
        raise Conflict(
            "schedule_exists",
            f"tenant {tenant_id!r} has a schedule {name!r} already",
            fix="edit or delete it",
        )
    _room(connection, tenant_id, allowed)
    owed_us = now_us + 1 if first_after_us is None else first_after_us
    schedule_id = books.ids.new()
    values = {
        "tenant_id": tenant_id,
        "id": schedule_id,
        "name": name,
        "script_id": steps[0]["script_id"],
        "revision": 1,
    }
    connection.execute(insert(tables.schedules).values(values | {"created_us": now_us}))
    next_us = _revise(books, connection, tenant_id, schedule_id, 1, wish, steps, now_us, owed_us)
    connection.execute(
        insert(tables.schedule_clock).values(
            tenant_id=tenant_id, schedule_id=schedule_id, state="armed", next_at=next_us, accounted_us=owed_us - 1,
            revision=1, tzdata=tzdata_version(),
        )
    )  # fmt: skip
    return get(books, connection, tenant_id, schedule_id)


def _steps(books: Books, connection: Connection, tenant_id: str, wish: Any, params: Json) -> list[Step]:  # noqa: ANN401 - as given
    """Read the steps of a wish, checking that every script is there, every limit is one, and the params are the first's."""
    given = [wish] if isinstance(wish, str | Mapping) else list(wish)
    if not 1 <= len(given) <= MOST_STEPS:
        raise InputError(
            "steps_invalid",
            f"a schedule cannot have {len(given)} steps",
            why=f"an action has 1 to {MOST_STEPS} steps",
            fix="let one schedule start where another ends, or put several things into one script",
        )
    steps: list[Step] = []
    for each in given:
        step = dict(each) if isinstance(each, Mapping) else {"script": each}
        unknown = sorted(set(step) - {"script", "limits"})
        if unknown or not isinstance(step.get("script"), str):
            raise InputError(
                "steps_invalid", f"{each!r} is no step", fix='give a script\'s name, or {"script": name, "limits": {…}}'
            )
        limits = step.get("limits") or None
        if limits:
            books.sources.limits("{}", json.dumps(limits, sort_keys=True))
        script = bind(connection, tenant_id, step["script"])
        if not steps:
            accepted(script.fields, params)
        steps.append(
            {"script_id": script.script_id, "limits": limits} | ({"on": script.requires} if script.requires else {})
        )
    return steps


def _spaced(gap_s: float | None, allowed: Allowance) -> None:
    if gap_s is not None and gap_s < allowed.min_interval_s:
        raise InputError(
            "rule_too_frequent",
            f"two slots of this schedule are only {gap_s:g} s apart",
            why=f"this tenant's schedules may fire every {allowed.min_interval_s} s at most (limit min_interval_s), "
            "measured over all rules of a schedule",
            fix="choose a longer interval, or ask the operator to lower min_interval_s",
            smallest_gap_s=gap_s,
        )


def _room(connection: Connection, tenant_id: str, allowed: Allowance) -> None:
    # The tenant's row as lock: two that are created at once see each other.
    connection.execute(select(tables.tenants.c.id).where(tables.tenants.c.id == tenant_id).with_for_update())
    exist = select(func.count()).select_from(tables.schedules).where(_s.tenant_id == tenant_id, _s.deleted_us.is_(None))
    if (connection.scalar(exist) or 0) >= allowed.schedules:
        raise Conflict(
            "schedules_full",
            f"tenant {tenant_id!r} has {allowed.schedules} schedules, which is its limit",
            why="limit schedules bounds how many exist at once",
            fix="delete one, put several rules into one schedule, or ask the operator for more",
        )


def _revise(
    books: Books, connection: Connection, tenant_id: str, schedule_id: str, number: int, wish: Wish, steps: list[Step],
    now_us: int, owed_us: int,
) -> int:  # fmt: skip
    """Check a revision, store it, give its first slot at or after ``owed_us``."""
    anchor = from_us(min(now_us, owed_us))
    recurrence = books.rulebook.compiled(wish.rules, anchor)
    first = recurrence.next_after(from_us(owed_us), inclusive=True)
    if first is None:
        why = recurrence.proves_never() or f"its last slot was before {from_us(owed_us):%Y-%m-%d %H:%M:%S} UTC"
        raise RuleNeverFires(
            "rule_never_fires",
            "this schedule would never run",
            why=why,
            fix="change the rule, its exclusions, start or end",
        )
    if wish.limits:
        books.sources.limits("{}", json.dumps(dict(wish.limits), sort_keys=True))
    conduct = parse_conduct(wish.conduct)
    demand_placed(conduct, tenant_id)
    connection.execute(
        insert(tables.schedule_revisions).values(
            tenant_id=tenant_id,
            schedule_id=schedule_id,
            revision=number,
            rules=encode_rules(wish.rules),
            sentence=recurrence.text(),
            script_id=steps[0]["script_id"],
            steps=json.dumps(steps) if len(steps) > 1 or steps[0]["limits"] else None,
            missed=str(parse_missed(wish.missed)),
            overlap=parse_overlap(wish.overlap).value,
            retry=dumped(parse_retry(wish.retry).as_dict()) if wish.retry is not None else None,
            limits=json.dumps(dict(wish.limits), sort_keys=True) if wish.limits else None,
            conduct=dumped(conduct.as_dict()) if wish.conduct else None,
            requires=written([*conduct.labels, *(step["on"] for step in steps if "on" in step)]),
            params=input_text(wish.params),
            anchor_us=to_us(anchor),
            created_us=now_us,
        )
    )
    return to_us(first)


def edit(
    books: Books,
    connection: Connection,
    tenant_id: str,
    schedule: str,
    change: Mapping[str, Any],
    now_us: int,
    gap_s: float | None = None,
) -> Schedule:
    """Store a new revision with what changes (fields of :class:`Wish`) and move the clock, in one transaction.

    The old revision is accounted up to now first; what it has queued keeps its script version and runs.
    """
    tenant = tenants.demand_active(connection, tenant_id)
    if "rules" in change:
        _spaced(gap_s, books.sources.allowance(json.dumps(tenant.limits)))
    before = get(books, connection, tenant_id, schedule)
    clock = _clock(connection, before)
    wish = Wish(**{
        "script": before.steps, "rules": before.rules, "missed": before.missed, "overlap": before.overlap,
        "retry": before.retry, "limits": before.limits, "params": before.params, **change,
        "conduct": before.conduct | dict(change.get("conduct") or {}),
    })  # fmt: skip
    steps = _steps(books, connection, tenant_id, wish.script, wish.params)
    if clock.state == "armed":
        clocks.account(books, connection, [clock], now_us)
    else:
        clocks.owe(books, connection, clock, now_us, clock.state)
    number, owed_us = before.revision + 1, max(now_us, clock.accounted_us) + 1
    next_us = _revise(books, connection, tenant_id, before.id, number, wish, steps, now_us, owed_us)
    mine = (_s.tenant_id == tenant_id, _s.id == before.id)
    connection.execute(update(tables.schedules).where(*mine).values(revision=number, script_id=steps[0]["script_id"]))
    armed = {"state": "armed", "next_at": next_us} if clock.state in {"armed", "ended"} else {}
    connection.execute(
        update(tables.schedule_clock)
        .where(_k.tenant_id == tenant_id, _k.schedule_id == before.id)
        .values(revision=number, accounted_us=owed_us - 1, **armed)
    )
    return get(books, connection, tenant_id, before.id)


def pause(
    books: Books,
    connection: Connection,
    tenant_id: str,
    schedule: str,
    now_us: int,
    note: str | None,
    until_us: int | None,
) -> Schedule:
    """Take the clock off at once; slots until :func:`resume` (or ``until_us``) become one gap row with reason paused."""
    turns.lock(connection, [tenant_id])
    found = get(books, connection, tenant_id, schedule)
    if found.state not in {"armed", "paused"}:
        raise Conflict(
            "schedule_not_armed", f"schedule {found.name!r} is {found.state}", fix="there is nothing to pause"
        )
    if until_us is not None and until_us <= now_us:
        raise InputError("until_past", "a pause cannot end in the past", fix="give a later instant")
    clocks.rest(books, connection, _clock(connection, found), now_us, "paused", until_us)
    connection.execute(update(tables.schedules).where(_s.tenant_id == tenant_id, _s.id == found.id).values(note=note))
    return get(books, connection, tenant_id, found.id)


def resume(books: Books, connection: Connection, tenant_id: str, schedule: str, now_us: int) -> Schedule:
    """Arm a paused schedule; an armed one is left alone."""
    tenants.demand_active(connection, tenant_id)
    found = get(books, connection, tenant_id, schedule)
    if found.state == "paused":
        fault = books.rulebook.revision(connection, tenant_id, found.id, found.revision).fault
        if fault is not None:
            raise Unavailable(
                "rule_unreadable", f"schedule {found.name!r} cannot go on", why=fault, fix="edit its rules"
            )
        clocks.arm(books, connection, _clock(connection, found), now_us, owed_reason="paused")
        connection.execute(
            update(tables.schedules).where(_s.tenant_id == tenant_id, _s.id == found.id).values(note=None, failures=0)
        )
    return get(books, connection, tenant_id, found.id)


def erase(books: Books, connection: Connection, tenant_id: str, schedule: str, now_us: int) -> Schedule:
    """Delete at once: what is due is accounted, what waits is cancelled, what runs may end. Its history stays."""
    turns.lock(connection, [tenant_id])
    found = get(books, connection, tenant_id, schedule)
    clock = _clock(connection, found)
    if clock.state != "armed":
        clocks.owe(books, connection, clock, now_us, clock.state)
    clocks.rest(books, connection, clock, now_us, "deleted")
    stop_waiting(connection, tenant_id, found.id, now_us, reason="schedule_deleted")
    connection.execute(
        update(tables.schedules).where(_s.tenant_id == tenant_id, _s.id == found.id).values(deleted_us=now_us)
    )
    turns.refresh(connection, [tenant_id])
    return _read(books, connection, tenant_id, [_s.id == found.id])[0]


def _clock(connection: Connection, schedule: Schedule) -> AnyRow:
    return clocks.of(connection, schedule.tenant_id, [schedule.id])[0]


def get(books: Books, connection: Connection, tenant_id: str, schedule: str) -> Schedule:
    """Give a schedule by id or name.

    Raises:
        NotFound: schedule_unknown.
    """
    called = (_s.id == schedule) | (_s.name == schedule) if is_id(schedule) else _s.name == schedule
    found = _read(books, connection, tenant_id, [called, _s.deleted_us.is_(None)])
    if not found:
        raise NotFound("schedule_unknown", f"tenant {tenant_id!r} has no schedule {schedule!r}", fix="create it first")
    return next((each for each in found if each.id == schedule), found[0])


def list_all(books: Books, connection: Connection, tenant_id: str | None) -> list[Schedule]:
    """Give the schedules of a tenant, or of all, by tenant and name."""
    return _read(books, connection, tenant_id, [_s.deleted_us.is_(None)])


def _read(books: Books, connection: Connection, tenant_id: str | None, which: list[Any]) -> list[Schedule]:
    script = tables.scripts.c
    statement = (
        select(
            tables.schedules, _r.rules, _r.sentence, _r.missed, _r.overlap, _r.retry, _r.limits, _r.params, _r.conduct, _r.steps,
            _k.state, _k.next_at, _k.wake_at, script.name.label("script"),
        )
        .join_from(
            tables.schedules, tables.schedule_revisions,
            (_r.tenant_id == _s.tenant_id) & (_r.schedule_id == _s.id) & (_r.revision == _s.revision),
        )
        .join(tables.schedule_clock, (_k.tenant_id == _s.tenant_id) & (_k.schedule_id == _s.id))
        .join(tables.scripts, (script.tenant_id == _s.tenant_id) & (script.id == _s.script_id))
        .where(*which)
        .order_by(_s.tenant_id, _s.name)
    )  # fmt: skip
    if tenant_id is not None:
        statement = statement.where(_s.tenant_id == tenant_id)
    rows = connection.execute(statement).all()
    named = _step_names(connection, rows)
    return [_schedule(row, named) for row in rows]


def _step_names(connection: Connection, rows: Sequence[AnyRow]) -> dict[str, str]:
    """Names by id of the scripts of those schedules that have several."""
    ids = {step["script_id"] for row in rows if row.steps for step in json.loads(row.steps)}
    if not ids:
        return {}
    script = tables.scripts.c
    tenant_ids = {row.tenant_id for row in rows if row.steps}
    found = connection.execute(
        select(script.id, script.name).where(script.tenant_id.in_(tenant_ids), script.id.in_(ids))
    )
    return {row.id: row.name for row in found}


def _schedule(row: AnyRow, named: Mapping[str, str]) -> Schedule:
    rules = decode_rules(row.rules)
    steps: list[dict[str, Any]] = [{"script": row.script}]
    if row.steps:
        steps = [
            {"script": named[step["script_id"]]} | ({"limits": step["limits"]} if step["limits"] else {})
            for step in json.loads(row.steps)
        ]
    return Schedule(
        id=row.id,
        tenant_id=row.tenant_id,
        name=row.name,
        state=row.state,
        next_at=_instant(row.next_at),
        text=row.sentence,
        revision=row.revision,
        script=row.script,
        steps=tuple(steps),
        missed=row.missed,
        overlap=row.overlap,
        rules=rules,
        tz=zone_of(rules),
        retry=json.loads(row.retry) if row.retry else parse_retry(None).as_dict(),
        limits=json.loads(row.limits) if row.limits else {},
        params=json.loads(row.params) if row.params else None,
        conduct=parse_conduct(json.loads(row.conduct) if row.conduct else None).as_dict(),
        failures=row.failures,
        note=row.note,
        wake_at=_instant(row.wake_at),
        created_at=from_us(row.created_us),
    )


def _instant(us: int | None) -> datetime | None:
    return None if us is None else from_us(us)
