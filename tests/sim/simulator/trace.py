"""Descriptions of the transactions of a world, one line each."""

from collections.abc import Iterable, Iterator
from typing import Any

from tests.sim.simulator.mirror import Action, Transaction

from lodger.engine.core.clock import from_us

#: Maximum number of described changes of a transaction.
MAX_CHANGES = 6


def lines(recent: Iterable[tuple[float, str, Any]]) -> Iterator[str]:
    """Yield a line for each recent event: (seconds, process, transaction or text)."""
    for at_s, process_name, what in recent:
        said = what if isinstance(what, str) else "; ".join(_first_changes(what))
        if said:
            yield f"{at_s:9.3f} {process_name:10} {said}"


def _first_changes(transaction: Transaction) -> Iterator[str]:
    """Yield the first changes of a transaction as text, and how many more there are."""
    reported = list(_changes(transaction))
    yield from reported[:MAX_CHANGES]
    if len(reported) > MAX_CHANGES:
        yield f"and {len(reported) - MAX_CHANGES} changes more"


def _changes(transaction: Transaction) -> Iterator[str]:
    for tenant, (_old, new) in transaction.tenants.items():
        yield f"tenant {tenant} is {new.state if new else 'gone'}"
    for node, (before, after) in transaction.nodes.items():
        if before is None or after is None or (before.state, before.epoch) != (after.state, after.epoch):
            yield f"node {_short(node)} is {f'{after.state} under {after.epoch}' if after else 'gone'}"
    for schedule, (was, now) in transaction.clocks.items():
        if now is not None:
            since = "" if was is None else f"from {_time_of_day(was.accounted)} "
            yield f"clock {_short(schedule)} {now.state}, accounted {since}to {_time_of_day(now.accounted)}"
    for key, (old, action) in transaction.actions.items():
        yield _action(key, old, action)
    for key, step, number, _node, _epoch in transaction.effects:
        yield f"effects of {_short(key)} step {step} attempt {number}"


def _action(key: str, old: Action | None, new: Action | None) -> str:
    if new is None:
        return f"{_short(key)} is forgotten"
    held = " held" if new.held else ""
    slot = (
        ""
        if new.slot is None
        else f" of {_time_of_day(new.slot)}" + ("" if new.slot_to is None else f" to {_time_of_day(new.slot_to)}")
    )
    where = f" on {_short(new.node or '')} as {new.attempt}" if new.state == "running" else ""
    return f"{new.origin} {_short(key)}{slot}: {old.state if old else 'new'} → {new.state}{held}{where}"


def _short(key: str) -> str:
    return key[-6:]


def _time_of_day(us: int) -> str:
    return f"{from_us(us):%H:%M:%S.%f}".rstrip("0").rstrip(".")
