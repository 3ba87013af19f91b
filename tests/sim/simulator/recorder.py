"""The recorder: collects the rows that a transaction writes, by triggers, and passes them on before the commit.

Its cost does not depend on the size of the ledger. Rows that are rolled back, also to a savepoint, are discarded.
"""

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, event
from tests.sim.simulator.executor import EFFECTS

from lodger.engine.store.connection.database import Database

#: Recorded columns of each table; key columns, which identify deleted rows, come first.
SEEN: dict[str, tuple[int, tuple[str, ...]]] = {
    "lodger_actions": (2, (
        "tenant_id", "id", "schedule_id", "revision", "origin", "slot", "slot_to", "due_at", "state", "held", "reason", "node_id",
        "lease_epoch", "step", "attempt", "started_us", "expires_at", "finished_us", "outcome", "script_version", "requires",
    )),
    "lodger_schedule_clock": (2, ("tenant_id", "schedule_id", "state", "next_at", "accounted_us", "revision", "wake_at")),
    "lodger_schedule_revisions": (3, ("tenant_id", "schedule_id", "revision", "rules", "overlap")),
    "lodger_schedules": (2, ("tenant_id", "id", "revision", "deleted_us")),
    "lodger_tenants": (1, ("id", "state", "generation")),
    "lodger_turns": (2, ("tenant_id", "requires", "bound", "served_us", "startable_at", "cap")),
    "lodger_nodes": (1, ("id", "epoch", "state", "lease_until_us", "labels")),
    "lodger_attempts": (4, ("tenant_id", "action_id", "step", "n", "outcome", "node_id", "lease_epoch")),
    "lodger_usage_days": (2, ("tenant_id", "day", "runs")),
    "effects_seen": (2, ("id", "step", "n", "node_id", "lease_epoch")),
}  # fmt: skip

#: (table, i or u or d, values)
Row = tuple[str, str, tuple[Any, ...]]
Heard = Callable[[list[Row]], None]


class Recorder:
    """Recorder of one ledger.

    Args:
        heard: called with the rows of each transaction that wrote some, before its commit.
    """

    def __init__(self, database: Database, heard: Heard) -> None:
        self._heard = heard
        self._rows: list[Row] = []
        #: Savepoints: name and number of earlier rows, outermost first.
        self._savepoints: list[tuple[str, int]] = []
        if database.driver.name == "sqlite":
            event.listen(database.engine, "connect", self._listen)
            database.engine.dispose()  # pooled connections lack the SQL function
        with database.write() as connection:
            EFFECTS.create(connection)
            for statement in (_on_sqlite if database.driver.name == "sqlite" else _on_server)():
                connection.exec_driver_sql(statement)
        self._of_server = database.driver.name != "sqlite"
        event.listen(database.engine, "commit", self._commit)
        # A failed commit is rolled back by the pool without an event: its rows are discarded at the next begin.
        event.listen(database.engine, "begin", self._forget)
        event.listen(database.engine, "rollback", self._forget)
        event.listen(database.engine, "after_cursor_execute", self._executed)

    def _listen(self, raw: Any, _record: object) -> None:
        raw.create_function("lodger_saw", -1, self._add_row)

    def _add_row(self, table: str, how: str, *values: Any) -> None:
        """Keep a changed row that a trigger reports."""
        self._rows.append((table, how, values))

    def _commit(self, connection: Connection) -> None:
        """Pass on the rows of a transaction before it is committed."""
        if self._of_server:
            self._rows = _read(connection)
        if self._rows:
            rows, self._rows = self._rows, []
            self._heard(rows)

    def _forget(self, _connection: Connection) -> None:
        self._rows = []
        self._savepoints = []

    def _executed(self, _connection: Connection, _cursor: object, statement: str, *_how: object) -> None:
        """Track savepoints by their SQL statements."""
        if "SAVEPOINT " not in statement[:22]:
            return
        words = statement.split()
        if words[0] == "SAVEPOINT":
            self._savepoints.append((words[1], len(self._rows)))
            return
        while self._savepoints[-1][0] != words[-1]:
            self._savepoints.pop()
        if words[0] == "ROLLBACK":
            del self._rows[self._savepoints[-1][1] :]
        else:
            self._savepoints.pop()


_HOW = {"i": ("INSERT", "NEW"), "u": ("UPDATE", "NEW"), "d": ("DELETE", "OLD")}


def _on_sqlite() -> list[str]:
    """Return the statements that create the triggers on SQLite."""
    return [
        f"CREATE TRIGGER sim_{table}_{how} AFTER {word} ON {table} BEGIN SELECT lodger_saw('{table}', '{how}', "
        + ", ".join(f"{row}.{name}" for name in (columns[:keys] if how == "d" else columns))
        + "); END"
        for table, (keys, columns) in SEEN.items()
        for how, (word, row) in _HOW.items()
    ]


def _on_server() -> list[str]:
    """Return the statements that create the triggers on PostgreSQL."""
    statements = ["CREATE TABLE sim_rows (number BIGSERIAL, seen TEXT, how TEXT, cells JSONB)"]
    for table, (keys, columns) in SEEN.items():
        for how, (word, row) in _HOW.items():
            cells = ", ".join(f"{row}.{name}" for name in (columns[:keys] if how == "d" else columns))
            name = f"sim_{table}_{how}"
            noted = f"INSERT INTO sim_rows (seen, how, cells) VALUES ('{table}', '{how}', jsonb_build_array({cells}))"
            statements += [
                f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {noted}; RETURN NULL; END $$",
                f"CREATE TRIGGER {name} AFTER {word} ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()",
            ]
    return statements


def _read(connection: Connection) -> list[Row]:
    """Take the rows that triggers of the present transaction have stored."""
    if connection.get_execution_options().get("postgresql_readonly"):
        return []
    # Bypasses the engine's events: this is not a statement of Lodger, and no fault occurs in it.
    cursor = connection.connection.cursor()
    cursor.execute("DELETE FROM sim_rows RETURNING number, seen, how, cells")
    rows = sorted(cursor.fetchall())
    cursor.close()
    return [(seen, how, tuple(cells)) for _number, seen, how, cells in rows]
