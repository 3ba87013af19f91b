"""Who waits for whom in the database: sessions that have waited for a lock for a second, and who holds what they want."""

from dataclasses import dataclass

from sqlalchemy import Connection, text

#: Shorter waits are how locks work, seconds.
LEAST_S = 1.0


@dataclass(frozen=True, slots=True)
class Session:
    """One session of the server. ``transaction_s``: how long its transaction has been open."""

    pid: int
    application: str
    state: str
    transaction_s: float
    query: str


@dataclass(frozen=True, slots=True)
class Chain:
    """A session that waits, and those that it waits for, up to those that wait for nobody.

    Attributes:
        waited_s: how long it has waited.
        blockers: nearest first; the last ones hold up everybody.
    """

    waits: Session
    waited_s: float
    blockers: tuple[Session, ...]


_SESSIONS = text(
    """
    SELECT pid, coalesce(application_name, '') AS application, coalesce(state, '') AS state,
           coalesce(extract(epoch FROM clock_timestamp() - xact_start), 0)::float8 AS transaction_s,
           coalesce(left(query, 200), '') AS query,
           CASE WHEN wait_event_type = 'Lock' THEN pg_blocking_pids(pid) ELSE '{}' END AS blockers,
           coalesce((SELECT extract(epoch FROM clock_timestamp() - min(l.waitstart)) FROM pg_locks l
                     WHERE l.pid = a.pid AND NOT l.granted), 0)::float8 AS waited_s
    FROM pg_stat_activity a WHERE datname = current_database()
    """
)


def chains(connection: Connection, least_s: float = LEAST_S) -> list[Chain]:
    """Give the chains of this database, longest wait first; on SQLite, which has one writer and a time limit, none."""
    if connection.dialect.name == "sqlite":
        return []
    rows = {row.pid: row for row in connection.execute(_SESSIONS)}
    found = []
    for row in rows.values():
        if not row.blockers or row.waited_s < least_s:
            continue
        blockers: list[int] = []
        wave = list(row.blockers)
        while wave:
            pid = wave.pop(0)
            if pid in rows and pid not in blockers and pid != row.pid:
                blockers.append(pid)
                wave += rows[pid].blockers
        found.append(Chain(_session(row), row.waited_s, tuple(_session(rows[pid]) for pid in blockers)))
    return sorted(found, key=lambda chain: -chain.waited_s)


def _session(row: object) -> Session:
    return Session(row.pid, row.application, row.state, row.transaction_s, row.query)  # type: ignore[attr-defined]  # a row
