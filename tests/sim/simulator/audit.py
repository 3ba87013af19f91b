"""Audit of the whole ledger in SQL at the end of a world, and comparison with the mirror."""

from typing import TYPE_CHECKING

from sqlalchemy import text
from tests.sim.simulator.laws import Broken
from tests.sim.simulator.recorder import SEEN

from lodger.engine.store.connection.laws import LAWS

if TYPE_CHECKING:
    from tests.sim.simulator.world import World

OPEN = "state IN ('ready', 'running', 'sealed', 'waiting_retry')"
#: SQL for the number of steps of an action, for both databases: each step is a list [script id, version] with one pair of quotes.
STEPS = "(length(a.steps) - length(replace(a.steps, '\"', ''))) / 2"

#: Queries that must return no row, beside those that hold at any moment.
AUDITS = LAWS | {
    "nothing is left open": f"SELECT id, state FROM lodger_actions WHERE {OPEN}",
    "at most one committed set of effects": "SELECT id, step, count(*) FROM effects_seen GROUP BY id, step HAVING count(*) > 1",
    "effects only of steps that are done": """
        SELECT e.id, e.step, a.state FROM effects_seen e JOIN lodger_actions a ON CAST(a.id AS TEXT) = e.id
        WHERE NOT (a.state = 'done' OR e.step < a.step)
    """,
    # Counted once for all actions, because effects_seen has no index.
    "what is done has the effects of every step": f"""
        SELECT a.id FROM lodger_actions a LEFT JOIN (SELECT id, count(*) AS seen FROM effects_seen GROUP BY id) e
        ON e.id = CAST(a.id AS TEXT)
        WHERE a.state = 'done' AND coalesce(e.seen, 0) <> coalesce({STEPS}, 1)
    """,
    "what has expired has not begun": """
        SELECT a.id FROM lodger_actions a JOIN effects_seen e ON e.id = CAST(a.id AS TEXT) WHERE a.state = 'expired'
    """,
    "a share of a day is held by what runs": "SELECT tenant_id, action_id, attempt, budget FROM lodger_lots",
    "nobody waits for a turn": "SELECT tenant_id, startable_at FROM lodger_turns WHERE startable_at IS NOT NULL",
}  # fmt: skip


def audit(world: "World") -> None:
    """Audit a world after its end.

    Raises:
        Broken: a query returns rows, or the mirror differs from the ledger.
    """
    with world.database.read() as connection:
        for law, statement in AUDITS.items():
            found = connection.execute(text(statement)).first()
            if found is not None:
                raise Broken(law, str(tuple(found)))
        columns = SEEN["lodger_actions"][1]
        rows = connection.execute(text(f"SELECT {', '.join(columns)} FROM lodger_actions"))
        stored = {
            str(row.id): (row.state, row.held, row.attempt, row.step, row.slot, row.slot_to, row.outcome)
            for row in rows
        }
    remembered = {
        key: (each.state, each.held, each.attempt, each.step, each.slot, each.slot_to, each.outcome)
        for key, each in world.mirror.actions.items()
    }
    if stored != remembered:
        odd = next(key for key in {**stored, **remembered} if stored.get(key) != remembered.get(key))
        raise Broken("the simulation sees what is written", f"{odd}: {stored.get(odd)}, not {remembered.get(odd)}")
