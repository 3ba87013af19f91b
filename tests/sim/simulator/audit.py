"""Audit of the whole ledger in SQL at the end of a world, and comparison with the mirror."""

from typing import TYPE_CHECKING

from sqlalchemy import text
from tests.sim.simulator.laws import Broken
from tests.sim.simulator.recorder import SEEN

if TYPE_CHECKING:
    from tests.sim.simulator.world import World

OPEN = "state IN ('ready', 'running', 'sealed', 'waiting_retry')"
#: SQL for the number of steps of an action, for both databases: each step is a list [script id, version] with one pair of quotes.
STEPS = "(length(a.steps) - length(replace(a.steps, '\"', ''))) / 2"

#: Queries that must return no row.
AUDITS = {
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
    "a slot is done at most once, replays apart": """
        SELECT schedule_id, slot, count(*) FROM lodger_actions
        WHERE origin IN ('slot', 'backfill') AND state = 'done' GROUP BY schedule_id, slot HAVING count(*) > 1
    """,
    "what has expired has not begun": """
        SELECT a.id FROM lodger_actions a JOIN effects_seen e ON e.id = CAST(a.id AS TEXT) WHERE a.state = 'expired'
    """,
    "every attempt ended": """
        SELECT a.id, a.attempt FROM lodger_actions a WHERE a.outcome IS NOT NULL AND a.state IN ('done', 'failed') AND NOT EXISTS
        (SELECT 1 FROM lodger_attempts t WHERE t.tenant_id = a.tenant_id AND t.action_id = a.id AND t.step = a.step AND t.n = a.attempt)
    """,
    # In order of slots, gaps first: a row that begins within an earlier gap accounts a slot twice.
    "two rows never stand for one slot": """
        SELECT schedule_id, covered, slot FROM (
            SELECT schedule_id, slot, origin, max(slot_to) OVER (
                PARTITION BY schedule_id ORDER BY slot, CASE WHEN slot_to IS NULL THEN 1 ELSE 0 END
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS covered FROM lodger_actions WHERE slot_to IS NOT NULL OR origin = 'slot'
        ) AS placed WHERE origin = 'slot' AND covered >= slot
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
