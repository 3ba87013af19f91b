"""Database sessions that have waited for a lock for at least a second, and the sessions that hold it."""

from dataclasses import dataclass

from sqlalchemy import Connection

from lodger.engine.store.drivers import driver_of
from lodger.engine.store.drivers.features import Session

#: Waits that are shorter are normal, seconds.
MIN_S = 1.0


@dataclass(frozen=True, slots=True)
class Chain:
    """A waiting session, and the sessions that block it directly and indirectly.

    Attributes:
        waited_s: how long it has waited.
        blockers: nearest first; the last ones block all others.
    """

    waits: Session
    waited_s: float
    blockers: tuple[Session, ...]


def chains(connection: Connection, min_s: float = MIN_S) -> list[Chain]:
    """Return the chains of this database, longest wait first; empty on a database with one writer at a time."""
    sessions = {row[0].pid: row for row in driver_of(connection).waiting_sessions(connection)}
    found = []
    for session, waited_s, holders in sessions.values():
        if not holders or waited_s < min_s:
            continue
        blockers: list[int] = []
        wave = list(holders)
        while wave:
            pid = wave.pop(0)
            if pid in sessions and pid not in blockers and pid != session.pid:
                blockers.append(pid)
                wave += sessions[pid][2]
        found.append(Chain(session, waited_s, tuple(sessions[pid][0] for pid in blockers)))
    return sorted(found, key=lambda chain: -chain.waited_s)
