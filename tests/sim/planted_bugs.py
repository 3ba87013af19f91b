"""Planted bugs that the simulation must find: changed SQL statements, and transactions that are committed too early.

Each has the number of worlds within which the simulation must find it.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection, event
from tests.sim.simulator.plan import Shape

from lodger.engine.store.connection.database import Database

#: Receives a statement and its parameters; its result is executed instead.
Listener = Callable[..., tuple[str, Any]]


SHORT = Shape(seconds=20)
#: Worlds with many waiting actions and few slots.
CROWDED = Shape(seconds=20, schedules=16, tenants=8, slots=4, trouble=4)
#: Worlds with few schedules.
FEW = Shape(seconds=20, schedules=12)
#: Worlds of one node with few faults of machines: it takes minutes until nothing more can end.
CALM = Shape(seconds=5, schedules=10, nodes=1, trouble=0.3)


@dataclass
class PlantedBug:
    """One planted bug.

    Attributes:
        where: pattern of the statement to change.
        becomes: replacement of the match; None commits the transaction before the statement.
        within: number of worlds in which it must be found.
        first: world to play first, known to show the bug.
        law: prefix of the law that must be broken; empty if several may be.
        shape: of the worlds.
        hits: number of changed statements; must not be 0.
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
        """Return its row of the table in docs/proof.md."""
        return (
            f"| {self.name} | {'order' if self.becomes is None else 'SQL'} | {self.within} | {self.law or 'several'} |"
        )

    def seeds(self) -> list[int]:
        """Return the seeds in the order of play."""
        return sorted(range(1, self.within + 1), key=lambda seed: (seed != self.first, seed))

    def install(self, database: Database) -> None:
        """Install the bug in a database."""
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
_TAKE = r"UPDATE lodger_actions SET state=\?, node_id=given.node_id, lease_epoch=given.lease_epoch, attempt="
_FIRST = r"^WITH given \(tenant, labels, maximum\) .* AS rank .*$"
_MOVE = r"UPDATE lodger_schedule_clock SET state=given.state, next_at="
_RELEASE = r"UPDATE lodger_actions SET held=\?"
_ENDED = r"UPDATE lodger_actions SET due_at=given.due_at, state="
_CANCEL = r"UPDATE lodger_actions SET state=\?, held=\?, reason=\?, node_id="
_SUSPEND = (
    r"UPDATE lodger_actions SET state=\?, node_id=\?, lease_epoch=\?, started_us=\?, deadline_us=\? "
    r"WHERE lodger_actions.tenant_id = \? AND state = 'running'$"
)
_SLOTS = r"INSERT INTO lodger_actions .*ON CONFLICT DO NOTHING"
_STEP = r"UPDATE lodger_actions SET script_id=given.script_id, script_version=given.script_version, step="


IN_THE_SQL = [
    PlantedBug("turns are not refreshed", rf"({_REFRESH}.*)$", r"\1 AND 0", 1, "turns are"),
    PlantedBug("a turn ignores the cap", rf"({_REFRESH}.*)< lodger_turns.cap", r"\1< 1000000", 2, "turns are", FEW, 2),
    PlantedBug(
        "a turn ignores retries",
        rf"({_REFRESH}.*)'ready', 'waiting_retry'(.*)$",
        r"\1'ready'\2",
        2,
        "turns are",
        CROWDED,
        first=2,
    ),
    PlantedBug(
        "a turn ignores the tenant's state",
        rf"({_REFRESH}.*)(\(SELECT lodger_tenants.state .*lodger_turns.tenant_id\) = \?)",
        r"\1(\2 OR 1)",
        2,
        shape=replace(SHORT, focus="suspend"),
    ),
    PlantedBug(
        "a claim ignores running actions",
        r"'running'\) AS running",
        r"'running' AND 0) AS running",
        2,
        "no tenant",
    ),
    PlantedBug(
        "a claim takes held actions",
        _FIRST,
        lambda first: first[0].replace("held = 0 AND ", ""),
        1,
        "no service fails",
        shape=CROWDED,
    ),
    PlantedBug(
        "a claim ignores due times",
        _FIRST,
        lambda first: first[0].replace("lodger_actions.due_at <= ?", "(lodger_actions.due_at <= ? OR 1)"),
        2,
        "nothing starts before",
        replace(FEW, schedules=8, tenants=2),
        first=2,
    ),
    PlantedBug(
        "an attempt keeps its number",
        rf"({_TAKE}.*?lodger_actions.attempt \+ )\?",
        r"\g<1>0 * ?",
        1,
        "an attempt has one",
    ),
    PlantedBug(
        "tenants are served in the order of their names",
        r"ORDER BY lodger_turns.served_us, lodger_turns.tenant_id",
        "ORDER BY lodger_turns.tenant_id",
        4,
        "tenants are served",
        shape=CROWDED,
        first=2,
    ),
    PlantedBug(
        "a served tenant keeps its turn",
        r"(UPDATE lodger_turns SET served_us=)(\?|given.now), ",
        r"\1lodger_turns.served_us + 0 * \2, ",
        4,
        "tenants are served",
        shape=CROWDED,
        first=2,
    ),
    PlantedBug(
        "expired actions start",
        r"(state = 'ready' AND step = 0 AND attempt = 0 AND lodger_actions.expires_at <= \?)",
        r"\1 AND 0",
        3,
        "nothing starts after",
    ),
    PlantedBug(
        "actions expire too early",
        r"(state = 'ready' AND step = 0 AND attempt = 0 AND lodger_actions.expires_at) <= \?",
        r"\1 - 900000 <= ?",
        3,
        "nothing expires",
        first=2,
    ),
    PlantedBug("a tick accounts for a second too much", rf"({_MOVE}.*? accounted_us=)", r"\g<1>1000000 + ", 1),
    PlantedBug(
        "a tick does not store its progress",
        rf"({_MOVE}.*? accounted_us=)(given.accounted_us)",
        r"\1min(\2, lodger_schedule_clock.accounted_us)",
        1,
    ),
    PlantedBug("the next slot is set a second late", rf"({_MOVE})", r"\g<1>1000000 + ", 1, "an enabled schedule"),
    PlantedBug(
        "gaps are not written",
        r"(INSERT INTO lodger_actions .*given.slot_to.*WHERE 1 = 1)",
        r"\1 AND given.slot_to IS NULL",
        2,
        "each slot",
        first=2,
    ),
    PlantedBug(
        "a tick ignores running actions",
        r"(WHERE lodger_actions.schedule_id IN .*) AND state IN \('ready', 'running', 'sealed'",
        r"\1 AND state IN ('ready', 'sealed'",
        2,
    ),
    PlantedBug(
        "held actions do not wait for their predecessors",
        rf"({_RELEASE}.*)NOT \(EXISTS \((.*ahead.held = 0)\)\)",
        r"\1(EXISTS (\2) OR 1)",
        3,
        "actions of a serial",
        shape=CROWDED,
    ),
    PlantedBug(
        "the newest held action starts first",
        rf"({_RELEASE}.*ELSE \? END, lodger_actions.due_at)",
        r"\1 DESC",
        4,
        "a serial schedule",
        first=2,
    ),
    PlantedBug("the next held action is not released", rf"({_RELEASE}.*)$", r"\1 AND 0", 2, "a held action"),
    PlantedBug(
        "the end of an attempt has no row",
        r"(INSERT INTO lodger_attempts .*WHERE 1 = 1)$",
        r"\1 AND 0",
        1,
        "an attempt that ended",
    ),
    PlantedBug(
        "a run is charged twice",
        r"lodger_usage_days.runs \+ excluded.runs",
        "lodger_usage_days.runs + 2 * excluded.runs",
        1,
        "a run is charged",
    ),
    PlantedBug(
        "a step is started twice",
        rf"({_STEP}\(lodger_actions.step \+ )\?",
        r"\g<1>0 * ?",
        2,
    ),
    PlantedBug(
        "cancelling changes finished actions",
        rf"({_CANCEL}.*schedule_id = \?.*) AND state IN \(.*?\)",
        r"\1",
        2,
        shape=replace(FEW, focus="delete"),
    ),
    PlantedBug(
        "a suspended tenant's attempts continue",
        rf"({_SUSPEND[:-1]})$",
        r"\1 AND 0",
        6,
        shape=replace(FEW, focus="suspend"),
    ),
    PlantedBug(
        "a lease is taken two seconds early",
        r"lodger_nodes.lease_until_us < \?",
        "lodger_nodes.lease_until_us - 2000000 < ?",
        4,
        "a lease",
        first=4,
    ),
    PlantedBug(
        "actions of lost nodes are not recovered",
        r"(state = 'running' AND lodger_actions.node_id IN )",
        r"0 AND \1",
        4,
        "a running action is leased",
        first=2,
    ),
    PlantedBug(
        "what the machine took away waits like a failure",
        rf"({_ENDED})given.state",
        r"\1replace(given.state, 'ready', 'waiting_retry')",
        2,
        "what the machine took away is ready",
        first=2,
    ),
    PlantedBug(
        "silent attempts are not ended",
        r"(state = 'running' AND lodger_actions.deadline_us < \?)",
        r"\1 AND 0",
        4,
        "everything ends",
        shape=CALM,
        first=3,
    ),
    PlantedBug(
        "a backfill repeats slots that have run",
        r"(lodger_actions.slot_to IS NULL) AND \(lodger_actions.origin = ",
        r"\1 AND 0 AND (lodger_actions.origin = ",
        6,
        shape=replace(CROWDED, focus="backfill", schedules=8),
    ),
    PlantedBug("a refused effect is kept", r"^ROLLBACK TO SAVEPOINT .*", "SELECT 1", 4),
    PlantedBug(
        "retention deletes unfinished actions",
        r"(WHERE lodger_actions.state) IN \(\?, \?, \?, \?, \?\)",
        r"\1 NOT IN (?, ?, ?, ?, ?)",
        6,
        "an unfinished action",
    ),
    PlantedBug(
        "a deleted schedule keeps its waiting actions",
        rf"({_CANCEL}.*lodger_actions.state IN .*)$",
        r"\1 AND 0",
        6,
        shape=replace(FEW, focus="delete"),
        first=5,
    ),
]

IN_THE_ORDER = [
    PlantedBug("slots are committed before their schedule's position", rf"{_MOVE}.*, wake", None, 2),
    PlantedBug("slots are committed before they are planned", _SLOTS, None, 2, first=2),
    PlantedBug("turns are refreshed in a transaction of their own", _REFRESH, None, 1, "turns are"),
    PlantedBug("effects are committed before the outcome", _ENDED, None, 1, "effects come"),
    PlantedBug(
        "the outcome is committed before its attempt's row", r"INSERT INTO lodger_attempts .*WHERE 1 = 1$", None, 1
    ),
    PlantedBug(
        "the outcome is committed before its charge", r"INSERT INTO lodger_usage_days", None, 1, "a run is charged"
    ),
    PlantedBug("the next held action is released later", _RELEASE, None, 3),
    PlantedBug(
        "an edit is committed before its schedule's position",
        r"UPDATE lodger_schedule_clock SET state=\?, next_at=\?, accounted_us=\?, revision=",
        None,
        6,
        shape=replace(FEW, focus="edit"),
        first=6,
    ),
    PlantedBug(
        "a lease is lost before its actions are recovered",
        r"state = 'running' AND lodger_actions.node_id IN ",
        None,
        4,
        "a running action is leased",
        first=4,
    ),
    PlantedBug("a suspension is committed before its attempts are stopped", _SUSPEND, None, 6, first=6),
    PlantedBug("the next step starts before the step is recorded as done", _STEP, None, 3),
]

PLANTS = [*IN_THE_SQL, *IN_THE_ORDER]
