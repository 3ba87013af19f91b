"""Bugs to plant: in the SQL that reaches the database, and in the order in which a transaction is written.

A bug in the SQL is a statement that says something else; one in the order is a transaction that is committed before it is
whole, so that what was to happen entirely happens in two halves. Each carries the number of worlds within which the
simulation has to find it.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection, event
from tests.sim.simulator.plan import Shape

from lodger.engine.store.connection.database import Database

#: A statement as the database gets it, and its parameters; what comes back is executed in its place.
Listener = Callable[..., tuple[str, Any]]


SHORT = Shape(seconds=20)
#: Many wait for few slots.
CROWDED = Shape(seconds=20, schedules=50, tenants=8, slots=4, trouble=4)
#: Little is done to the machines.
CALM = Shape(seconds=10, schedules=30, trouble=0.3)
#: Much is edited, deleted, asked for.
BUSY = Shape(seconds=20, trouble=6)


@dataclass
class Plant:
    """One bug.

    Attributes:
        where: matches the statement that it sits in.
        becomes: what the match is replaced by; None commits the transaction right before such a statement.
        within: worlds.
        first: the world that is played before the others, because it is known to show the bug soon.
        law: begins the sentence of the law that has to be the broken one; empty when it shows in several.
        shape: of the worlds.
        hits: statements that it changed; a bug that sits nowhere any more is no proof.
    """

    name: str
    where: str
    becomes: str | Callable[[re.Match[str]], str] | None
    within: int
    law: str = ""
    shape: Shape = SHORT
    first: int = 1
    hits: int = field(default=0, compare=False)

    def row(self) -> str:
        """Give its row of the table in docs/proof.md."""
        return (
            f"| {self.name} | {'order' if self.becomes is None else 'SQL'} | {self.within} | {self.law or 'several'} |"
        )

    def seeds(self) -> list[int]:
        """Give the worlds in the order in which they are played."""
        return sorted(range(1, self.within + 1), key=lambda seed: (seed != self.first, seed))

    def into(self, database: Database) -> None:
        """Plant it."""
        pattern = re.compile(self.where, re.DOTALL)
        event.listen(database.engine, "before_cursor_execute", self._listener(pattern), retval=True)

    def _listener(self, pattern: re.Pattern[str]) -> Listener:
        def listen(
            connection: Connection, cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool
        ) -> tuple[str, Any]:
            if pattern.search(statement) is None:
                return statement, parameters
            self.hits += 1
            if self.becomes is not None:
                return pattern.sub(self.becomes, statement), parameters
            connection.dispatch.commit(connection)
            cursor.execute("COMMIT")
            cursor.execute("BEGIN IMMEDIATE")
            return statement, parameters

        return listen


_REFRESH = r"UPDATE lodger_turns SET startable_at="
_TAKE = r"UPDATE lodger_actions SET state=\?, node_id=\?, lease_epoch=\?, attempt="
_FIRST = r"^WITH given \(tenant, labels, maximum\) .* AS rank .*$"
_MOVE = r"UPDATE lodger_schedule_clock SET state=\?, next_at="
_RELEASE = r"UPDATE lodger_actions SET held=\?"
_ENDED = r"UPDATE lodger_actions SET due_at=\?, state="
_CANCEL = r"UPDATE lodger_actions SET state=\?, held=\?, reason=\?, node_id="
_SUSPEND = (
    r"UPDATE lodger_actions SET state=\?, node_id=\?, lease_epoch=\?, started_us=\?, deadline_us=\? "
    r"WHERE lodger_actions.tenant_id = \? AND state = 'running'$"
)
_SLOTS = r"INSERT INTO lodger_actions .*ON CONFLICT DO NOTHING"
_STEP = r"UPDATE lodger_actions SET script_id=\?, script_version=\?, step="


def _without_gaps(insert: re.Match[str]) -> str:
    """Insert a row only when it is no gap."""
    columns = insert[1].split(", ")
    if "slot_to" not in columns:
        return insert[0]
    cells = ", ".join(f"?{number}" for number in range(1, len(columns) + 1))
    where = f"WHERE ?{columns.index('slot_to') + 1} IS NULL"
    return f"INSERT INTO lodger_actions ({insert[1]}) SELECT {cells} {where} ON CONFLICT DO NOTHING"


IN_THE_SQL = [
    Plant("turns are not refreshed", rf"({_REFRESH}.*WHERE lodger_turns.tenant_id = \?)$", r"\1 AND 0", 1, "turns are"),
    Plant("a turn ignores the cap", rf"({_REFRESH}.*)< lodger_turns.cap", r"\1< 1000000", 1, "turns are"),
    Plant("a turn ignores retries", rf"({_REFRESH}.*)'ready', 'waiting_retry'(.*)$", r"\1'ready'\2", 2, "turns are"),
    Plant(
        "a turn ignores the tenant's state",
        rf"({_REFRESH}.*)(\(SELECT lodger_tenants.state .*lodger_turns.tenant_id\) = \?)",
        r"\1(\2 OR 1)",
        2,
    ),
    Plant(
        "a claim ignores running actions",
        r"(count\(\*\) AS number \nFROM lodger_actions .*'running') GROUP",
        r"\1 AND 0 GROUP",
        2,
        "no tenant",
        first=2,
    ),
    Plant(
        "a claim takes held actions",
        _FIRST,
        lambda first: first[0].replace("held = 0 AND ", ""),
        1,
        "no service fails",
        shape=CROWDED,
    ),
    Plant(
        "a claim ignores due times",
        _FIRST,
        lambda first: first[0].replace("lodger_actions.due_at <= ?", "(lodger_actions.due_at <= ? OR 1)"),
        2,
        "nothing starts before",
    ),
    Plant(
        "an attempt keeps its number",
        rf"({_TAKE}.*?lodger_actions.attempt \+ )\?",
        r"\g<1>0 * ?",
        1,
        "an attempt has one",
    ),
    Plant(
        "tenants are served in the order of their names",
        r"ORDER BY lodger_turns.served_us, lodger_turns.tenant_id",
        "ORDER BY lodger_turns.tenant_id",
        4,
        "tenants are served",
        shape=CROWDED,
    ),
    Plant(
        "a served tenant keeps its turn",
        r"UPDATE lodger_turns SET served_us=\?, ",
        "UPDATE lodger_turns SET served_us=served_us + 0 * ?, ",
        4,
        "tenants are served",
        shape=CROWDED,
    ),
    Plant(
        "expired actions start",
        r"(state = 'ready' AND step = 0 AND lodger_actions.expires_at <= \?)",
        r"\1 AND 0",
        3,
        "nothing starts after",
    ),
    Plant(
        "actions expire too early",
        r"(state = 'ready' AND step = 0 AND lodger_actions.expires_at) <= \?",
        r"\1 - 900000 <= ?",
        3,
        "nothing expires",
        first=2,
    ),
    Plant("a tick accounts for a second too much", rf"({_MOVE}\?, accounted_us=)\?", r"\1? + 1000000", 1),
    Plant("a tick does not store its progress", rf"({_MOVE}\?, accounted_us=)\?", r"\1min(?, accounted_us)", 1),
    Plant("the next slot is set a second late", rf"({_MOVE})\?", r"\1? + 1000000", 1, "an enabled schedule"),
    Plant(
        "gaps are not written",
        r"INSERT INTO lodger_actions \(([^)]*)\) VALUES .*ON CONFLICT DO NOTHING",
        _without_gaps,
        2,
        "each slot",
    ),
    Plant(
        "a tick ignores running actions",
        r"(WHERE lodger_actions.schedule_id IN .*) AND state IN \('ready', 'running', 'sealed'",
        r"\1 AND state IN ('ready', 'sealed'",
        2,
    ),
    Plant(
        "held actions do not wait for their predecessors",
        rf"({_RELEASE}.*)NOT \(EXISTS \((.*ahead.held = \?)\)\)",
        r"\1(EXISTS (\2) OR 1)",
        2,
        "actions of a serial",
        shape=CROWDED,
    ),
    Plant(
        "the newest held action starts first",
        rf"({_RELEASE}.*ELSE \? END, lodger_actions.due_at)",
        r"\1 DESC",
        4,
        "a serial schedule",
    ),
    Plant("the next held action is not released", rf"({_RELEASE} WHERE )", r"\g<1>0 AND ", 2, "a held action"),
    Plant(
        "the end of an attempt has no row",
        r"(INSERT INTO lodger_attempts .*) VALUES \((.*)\)$",
        r"\1 SELECT \2 WHERE 0",
        1,
        "an attempt that ended",
    ),
    Plant(
        "a run is charged twice",
        r"lodger_usage_days.runs \+ excluded.runs",
        "lodger_usage_days.runs + 2 * excluded.runs",
        1,
        "a run is charged",
    ),
    Plant(
        "a step is started twice",
        r"(SET script_id=\?, script_version=\?, step=\(lodger_actions.step \+ )\?",
        r"\g<1>0 * ?",
        2,
    ),
    Plant(
        "cancelling changes finished actions",
        rf"({_CANCEL}.*schedule_id = \?.*) AND state IN \(.*?\)",
        r"\1",
        2,
    ),
    Plant("a suspended tenant's attempts continue", rf"({_SUSPEND[:-1]})$", r"\1 AND 0", 6, shape=BUSY),
    Plant(
        "a lease is taken two seconds early",
        r"lodger_nodes.lease_until_us < \?",
        "lodger_nodes.lease_until_us - 2000000 < ?",
        4,
        "a lease",
    ),
    Plant(
        "actions of lost nodes are not recovered",
        r"(state = 'running' AND lodger_actions.node_id IN )",
        r"0 AND \1",
        4,
        "a running action is leased",
    ),
    Plant(
        "silent attempts are not ended",
        r"(state = 'running' AND lodger_actions.deadline_us < \?)",
        r"\1 AND 0",
        4,
        "everything ends",
        shape=CALM,
    ),
    Plant(
        "a backfill repeats slots that have run",
        r"(SELECT lodger_actions.slot, lodger_actions.state, lodger_actions.origin .* IS NULL)",
        r"\1 AND 0",
        6,
        shape=replace(CROWDED, focus="backfill"),
    ),
    Plant("a refused effect is kept", r"^ROLLBACK TO SAVEPOINT .*", "SELECT 1", 4, first=4),
    Plant(
        "retention deletes unfinished actions",
        r"(AND lodger_actions.state) IN \(\?, \?, \?, \?, \?\)",
        r"\1 NOT IN (?, ?, ?, ?, ?)",
        6,
        "an unfinished action",
    ),
    Plant(
        "a deleted schedule keeps its waiting actions",
        rf"({_CANCEL}.*lodger_actions.state IN .*)$",
        r"\1 AND 0",
        6,
        shape=replace(CROWDED, focus="delete"),
    ),
]

IN_THE_ORDER = [
    Plant("slots are committed before their schedule's position", rf"{_MOVE}\?, accounted_us=\?, wake", None, 2),
    Plant("slots are committed before they are planned", _SLOTS, None, 2, first=2),
    Plant("turns are refreshed in a transaction of their own", _REFRESH, None, 1, "turns are"),
    Plant("effects are committed before the outcome", _ENDED, None, 1, "effects come"),
    Plant("the outcome is committed before its attempt's row", r"INSERT INTO lodger_attempts .* VALUES", None, 1),
    Plant("the outcome is committed before its charge", r"INSERT INTO lodger_usage_days", None, 1, "a run is charged"),
    Plant("the next held action is released later", _RELEASE, None, 3),
    Plant("an edit is committed before its schedule's position", rf"{_MOVE}\?, accounted_us=\?, revision=", None, 6),
    Plant(
        "a lease is lost before its actions are recovered",
        r"state = 'running' AND lodger_actions.node_id IN ",
        None,
        4,
        "a running action is leased",
    ),
    Plant("a suspension is committed before its attempts are stopped", _SUSPEND, None, 6),
    Plant("the next step starts before the step is recorded as done", _STEP, None, 3),
]

PLANTS = [*IN_THE_SQL, *IN_THE_ORDER]
