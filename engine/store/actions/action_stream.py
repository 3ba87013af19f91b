"""Changes of a tenant's actions between two polls: actions that are new, and actions with a new state, attempt or step."""

from collections.abc import Iterable

from sqlalchemy import Connection, func, select

from lodger.engine.core.ids import first_id_at, id_time_us
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
Stage = tuple[str, int, int]
#: State, attempt and step of an action, and its number of log batches.
ChangeStamp = tuple[str, int, int, int]


class ActionStream:
    """Change stream of one tenant's actions, from now on. The cost of a poll depends on open and new actions, not on history."""

    def __init__(self, tenant_id: str) -> None:
        self._tenant = tenant_id
        self._known: dict[str, Stage] = {}
        self._after = ""

    def start(self, connection: Connection, now_us: int) -> None:
        """Record the present actions; they are reported when they change."""
        self._after = _overlapping(now_us)
        for action in (*actions.unfinished(connection, self._tenant, WATCHED), *self._created(connection)):
            self._known[action.id] = _stage(action)

    def poll(self, connection: Connection) -> list[Action]:
        """Return the actions that are new or have changed since the last poll, by id."""
        created = self._created(connection)
        watched = [each for each, stage in self._known.items() if stage[0] in OPEN]
        found = {action.id: action for action in (*self._reload(connection, watched), *created)}
        changed = [action for action in found.values() if self._known.get(action.id) != _stage(action)]
        if created:
            newest = created[-1].id
            self._after = newest if len(created) >= MAX_ACTIONS else max(self._after, _overlapping(id_time_us(newest)))
        # Deleted actions, and finished ones behind the horizon, are never read again.
        known = self._known | {each: _stage(action) for each, action in found.items()}
        self._known = {
            each: stage for each, stage in known.items() if (each in found if stage[0] in OPEN else each > self._after)
        }
        return sorted(changed, key=lambda action: action.id)

    def missed(self, connection: Connection, since_us: int) -> list[Action]:
        """Return the actions that are new, are not finished or have finished since an instant, by id."""
        return actions.changed_since(connection, self._tenant, _overlapping(since_us), since_us - OVERLAP_US, WATCHED)

    def _created(self, connection: Connection) -> list[Action]:
        """Return the actions created since the last look."""
        return actions.created_after(connection, self._tenant, self._after, MAX_ACTIONS)

    def _reload(self, connection: Connection, ids: list[str]) -> Iterable[Action]:
        """Read these actions again, a few hundred at a time."""
        for start in range(0, len(ids), _CHUNK):
            yield from actions.by_ids(connection, self._tenant, ids[start : start + _CHUNK])


def change_stamp(connection: Connection, tenant_id: str, action_id: str) -> ChangeStamp | None:
    """Return the change stamp of an action; None if it no longer exists."""
    lines, a = running_lines.c, table.c
    batches = (
        select(func.count())
        .select_from(running_lines)
        .where(lines.tenant_id == a.tenant_id, lines.action_id == a.id)
        .scalar_subquery()
    )
    found = select(a.state, a.attempt, a.step, batches).where(a.tenant_id == tenant_id, a.id == action_id)
    row = connection.execute(found).first()
    return None if row is None else (row[0], row[1], row[2], row[3])


def _stage(action: Action) -> Stage:
    """Return state, attempt and step of an action, by which its changes are noticed."""
    return (action.state, action.attempt, action.step)


def _overlapping(us: int) -> str:
    """Return the smallest id of an action created shortly before this instant."""
    return first_id_at(max(0, us - OVERLAP_US))
