"""What becomes of a tenant's actions, look by look: each that is new or has moved on since the look before."""

from collections.abc import Collection, Iterable

from sqlalchemy import Connection, func, select, tuple_

from lodger.engine.core.ids import id_time_us
from lodger.engine.store.actions import actions
from lodger.engine.store.records import Action
from lodger.engine.store.schema.access import running_lines
from lodger.engine.store.schema.scheduling import OPEN
from lodger.engine.store.schema.scheduling import actions as table

#: Ids are made by several machines, and stored a little after they were made: so far back is looked again, microseconds.
OVERLAP_US = 5_000_000
#: Most actions that one look reads anew, and most open ones that are watched.
MAX_ACTIONS, WATCHED = 500, 5000
_CHUNK = 500
Mark = tuple[str, int, int]
#: An action's tenant and id; what of it changes when there is something to tell: state, attempt, step, batches of lines.
Key = tuple[str, str]
Pulse = tuple[str, int, int, int]


class Following:
    """One tenant's actions, from now on. Each look costs by what is open and new, not by the history."""

    def __init__(self, tenant_id: str) -> None:
        self._tenant = tenant_id
        self._known: dict[str, Mark] = {}
        self._after = ""

    def begin(self, connection: Connection, now_us: int) -> None:
        """Note what is there; nothing of it is told until it moves."""
        self._after = _floor(now_us - OVERLAP_US)
        for action in (*actions.still_open(connection, self._tenant, WATCHED), *self._fresh(connection)):
            self._known[action.id] = _mark(action)

    def look(self, connection: Connection) -> list[Action]:
        """Give what is new or has moved on, in the order of making."""
        fresh = self._fresh(connection)
        seen = {action.id for action in fresh}
        watched = [each for each, mark in self._known.items() if mark[0] in OPEN and each not in seen]
        found = [*self._again(connection, watched), *fresh]
        moved = [action for action in found if self._known.get(action.id) != _mark(action)]
        there = seen | {action.id for action in found}
        for gone in [each for each in watched if each not in there]:
            del self._known[gone]
        for action in moved:
            self._known[action.id] = _mark(action)
        if fresh:
            newest = fresh[-1].id
            self._after = (
                newest if len(fresh) >= MAX_ACTIONS else max(self._after, _floor(id_time_us(newest) - OVERLAP_US))
            )
        # What is over and lies behind is never read again.
        self._known = {each: mark for each, mark in self._known.items() if mark[0] in OPEN or each > self._after}
        return sorted(moved, key=lambda action: action.id)

    def _fresh(self, connection: Connection) -> list[Action]:
        return actions.made_after(connection, self._tenant, self._after, MAX_ACTIONS)

    def _again(self, connection: Connection, ids: list[str]) -> Iterable[Action]:
        for start in range(0, len(ids), _CHUNK):
            yield from actions.these(connection, self._tenant, ids[start : start + _CHUNK])


def pulses(connection: Connection, wanted: Collection[Key]) -> dict[Key, Pulse]:
    """Give the pulse of each of these actions that is still there: one question for five hundred of them."""
    lines, a = running_lines.c, table.c
    said = (
        select(func.count())
        .select_from(running_lines)
        .where(lines.tenant_id == a.tenant_id, lines.action_id == a.id)
        .scalar_subquery()
    )
    asked, found = sorted(wanted), {}
    for start in range(0, len(asked), _CHUNK):
        those = tuple_(a.tenant_id, a.id).in_(asked[start : start + _CHUNK])
        for row in connection.execute(select(a.tenant_id, a.id, a.state, a.attempt, a.step, said).where(those)):
            found[row[0], row[1]] = (row[2], row[3], row[4], row[5])
    return found


def _mark(action: Action) -> Mark:
    return (action.state, action.attempt, action.step)


def _floor(us: int) -> str:
    text = f"{max(0, us) // 1000:012x}"
    return f"{text[:8]}-{text[8:]}-0000-0000-000000000000"
