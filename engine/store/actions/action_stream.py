"""Changes of a tenant's actions between two polls: actions that are new, and actions with a new state, attempt or step."""

from collections.abc import Collection, Iterable

from sqlalchemy import Connection, func, select, tuple_

from lodger.engine.core.ids import id_time_us
from lodger.engine.store.actions import actions
from lodger.engine.store.records import Action
from lodger.engine.store.schema.access import running_lines
from lodger.engine.store.schema.scheduling import OPEN
from lodger.engine.store.schema.scheduling import actions as table

#: Ids come from several machines and are stored a little after they were made: each poll overlaps the last by this
#: much.
OVERLAP_US = 5_000_000
#: Maximum number of new actions that one poll reads, and of unfinished actions that are watched.
MAX_ACTIONS, WATCHED = 500, 5000
_CHUNK = 500
Mark = tuple[str, int, int]
#: Tenant and id of an action; its state, attempt, step and number of log batches.
Key = tuple[str, str]
Pulse = tuple[str, int, int, int]


class Following:
    """Change stream of one tenant's actions, from now on. The cost of a poll depends on open and new actions, not on history."""

    def __init__(self, tenant_id: str) -> None:
        self._tenant = tenant_id
        self._known: dict[str, Mark] = {}
        self._after = ""

    def begin(self, connection: Connection, now_us: int) -> None:
        """Record the present actions; they are reported when they change."""
        self._after = _floor(now_us - OVERLAP_US)
        for action in (*actions.still_open(connection, self._tenant, WATCHED), *self._fresh(connection)):
            self._known[action.id] = _mark(action)

    def look(self, connection: Connection) -> list[Action]:
        """Return the actions that are new or have changed since the last poll, by id."""
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
        # Finished actions behind the horizon are never read again.
        self._known = {each: mark for each, mark in self._known.items() if mark[0] in OPEN or each > self._after}
        return sorted(moved, key=lambda action: action.id)

    def _fresh(self, connection: Connection) -> list[Action]:
        return actions.made_after(connection, self._tenant, self._after, MAX_ACTIONS)

    def _again(self, connection: Connection, ids: list[str]) -> Iterable[Action]:
        for start in range(0, len(ids), _CHUNK):
            yield from actions.these(connection, self._tenant, ids[start : start + _CHUNK])


def pulses(connection: Connection, wanted: Collection[Key]) -> dict[Key, Pulse]:
    """Return the pulse of each of these actions that still exists, with one query for every five hundred."""
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
