"""Log lines of running attempts: batches that are replaced by the attempt's stored logs when it ends.

The node that runs an attempt writes them; any process may read them. Batches of a lost node are deleted after a day.
"""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, and_, delete, or_, select, tuple_

from lodger.engine.store.bulk import insert_many
from lodger.engine.store.schema.access import running_lines
from lodger.engine.store.schema.scheduling import actions, attempt_logs, attempts
from lodger.sandbox.job import LogLine

#: Retention of the lines of an attempt that never ended, microseconds.
KEPT_US = 86_400_000_000
Key = tuple[int, int]
#: Step and number of an attempt, and the number of a line in it, from 1.
Place = tuple[int, int, int]
#: Tenant, action, step and number.
Attempt = tuple[str, str, int, int]
_c = running_lines.c


@dataclass(frozen=True, slots=True)
class Batch:
    """Lines of one attempt, with the sequence number of the batch."""

    tenant_id: str
    action_id: str
    step: int
    n: int
    number: int
    lines: tuple[LogLine, ...]


def write(connection: Connection, batches: Iterable[Batch], now_us: int) -> None:
    """Store batches; skip those of deleted actions."""
    wanted = list(batches)
    existing = _existing(connection, {(each.tenant_id, each.action_id) for each in wanted})
    insert_many(
        connection,
        running_lines,
        [
            {
                "tenant_id": each.tenant_id,
                "action_id": each.action_id,
                "step": each.step,
                "n": each.n,
                "number": each.number,
                "lines": encode_lines(each.lines),
                "written_us": now_us,
            }
            for each in wanted
            if (each.tenant_id, each.action_id) in existing
        ],
        absent=True,
    )


def delete_stored(connection: Connection, over: Iterable[Attempt]) -> set[Attempt]:
    """Delete the lines of attempts that are stored or belong to a deleted action; return those attempts."""
    wanted = list(over)
    existing = _existing(connection, {each[:2] for each in wanted})
    t = attempts.c
    stored = {
        tuple(row)
        for row in connection.execute(
            select(t.tenant_id, t.action_id, t.step, t.n).where(
                t.tenant_id.in_({each[0] for each in wanted}), t.action_id.in_({each[1] for each in wanted})
            )
        )
    }
    done = {key for key in wanted if key in stored or key[:2] not in existing}
    if done:
        connection.execute(delete(running_lines).where(tuple_(_c.tenant_id, _c.action_id, _c.step, _c.n).in_(done)))
    return done


def _existing(connection: Connection, wanted: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return those of these actions (tenant, id) that exist. The lookup is by key: a scan would read all history twice a second."""
    a = actions.c
    mine = (a.tenant_id.in_({tenant for tenant, _ in wanted}), a.id.in_({action for _, action in wanted}))
    return {(row.tenant_id, row.id) for row in connection.execute(select(a.tenant_id, a.id).where(*mine))}


def sweep(connection: Connection, now_us: int) -> int:
    """Delete batches of lost nodes that are older than :data:`KEPT_US`; return their number."""
    return connection.execute(delete(running_lines).where(_c.written_us < now_us - KEPT_US)).rowcount


def encode_lines(lines: Iterable[LogLine]) -> str:
    """Return log lines as the text that is stored."""
    return json.dumps([[line.level, line.text, line.us] for line in lines])


def decode_lines(text: str) -> list[LogLine]:
    """Return log lines from their stored text."""
    return [LogLine(*line) for line in json.loads(text)]


class LogStream:
    """Log of one action: each line once, as it is written, and the remaining ones when their attempt is stored.

    Args:
        after: place of the last line that is not wanted.
    """

    def __init__(self, tenant_id: str, action_id: str, after: Place = (0, 0, 0)) -> None:
        self._tenant_id = tenant_id
        self.action_id = action_id
        self._stored: set[Key] = set()
        self._returned: dict[Key, Counter[tuple[int, str]]] = {}
        self._numbers: dict[Key, int] = {}
        self._counts: Counter[Key] = Counter()
        self._after = after

    def poll(self, connection: Connection) -> list[tuple[Place, LogLine]]:
        """Return the lines since the last poll, in order, each with its place."""
        found: dict[Key, list[LogLine]] = {}
        logs = attempt_logs.c
        new = tuple_(logs.step, logs.n).not_in(self._stored)
        mine = (logs.tenant_id == self._tenant_id, logs.action_id == self.action_id)
        for step, n, lines in connection.execute(select(logs.step, logs.n, logs.lines).where(*mine, new)).all():
            found[step, n] = self._remaining((step, n), decode_lines(lines))
        known = or_(
            tuple_(_c.step, _c.n).in_(self._stored),
            *(and_(_c.step == step, _c.n == n, _c.number <= last) for (step, n), last in self._numbers.items()),
        )
        fresh = select(_c.step, _c.n, _c.number, _c.lines).where(
            _c.tenant_id == self._tenant_id, _c.action_id == self.action_id, ~known
        )
        for step, n, number, lines in connection.execute(fresh.order_by(_c.step, _c.n, _c.number)).all():
            self._numbers[step, n] = number
            more = decode_lines(lines)
            self._returned.setdefault((step, n), Counter()).update((line.us, line.level) for line in more)
            found.setdefault((step, n), []).extend(more)
        placed: list[tuple[Place, LogLine]] = []
        for key in sorted(found):
            begin = self._counts[key]
            self._counts[key] += len(found[key])
            placed += [((*key, number), line) for number, line in enumerate(found[key], begin + 1)]
        return [each for each in placed if each[0] > self._after]

    def _remaining(self, key: Key, lines: list[LogLine]) -> list[LogLine]:
        """Return those lines of a stored attempt that were not returned while it ran.

        Lines are matched by instant and level, because a secret that the script received later is masked in all its
        stored lines.
        """
        self._stored.add(key)
        self._numbers.pop(key, None)
        returned = self._returned.pop(key, Counter())
        remaining = []
        for line in lines:
            if returned[line.us, line.level] > 0:
                returned[line.us, line.level] -= 1
            else:
                remaining.append(line)
        return remaining
