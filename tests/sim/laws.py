"""What must hold after every step of the simulated world: each law is a query that finds nothing."""

OPEN = "state IN ('ready', 'running', 'sealed', 'waiting_retry')"
#: How many steps an action has, in words of both databases: each is a list [script id, version] with one pair of quotes.
STEPS = "(length(steps) - length(replace(steps, '\"', ''))) / 2"

LAWS = {
    "at most one committed set of effects": """
        SELECT id, step, count(*) FROM effects_seen GROUP BY id, step HAVING count(*) > 1
    """,
    "effects only of steps that are done": """
        SELECT e.id, e.step, a.state FROM effects_seen e JOIN lodger_actions a ON a.id = e.id
        WHERE NOT (a.state = 'done' OR e.step < a.step)
    """,
    "what is done has the effects of every step": f"""
        SELECT id FROM lodger_actions a WHERE state = 'done'
        AND (SELECT count(*) FROM effects_seen e WHERE e.id = a.id) <> coalesce({STEPS}, 1)
    """,
    "a step begins when the one before has its effects": """
        SELECT id, step FROM lodger_actions a WHERE step > 0
        AND (SELECT count(*) FROM effects_seen e WHERE e.id = a.id AND e.step < a.step) <> a.step
    """,
    "a slot is done at most once, replays apart": """
        SELECT schedule_id, slot, count(*) FROM lodger_actions
        WHERE origin IN ('slot', 'backfill') AND state = 'done' GROUP BY schedule_id, slot HAVING count(*) > 1
    """,
    "what has expired has not begun": """
        SELECT a.id FROM lodger_actions a JOIN effects_seen e ON e.id = a.id WHERE a.state = 'expired'
    """,
    "nothing starts after it has expired": """
        SELECT id FROM lodger_actions WHERE state = 'running' AND step = 0 AND started_us >= expires_at
        AND tenant_faults + engine_faults + conflicts = 0
    """,
    "a held action has one ahead of it": f"""
        SELECT id FROM lodger_actions h WHERE held = 1 AND NOT EXISTS (
            SELECT 1 FROM lodger_actions a WHERE a.schedule_id = h.schedule_id AND a.held = 0 AND a.{OPEN})
    """,
    "actions of a serial schedule never run side by side": f"""
        SELECT a.schedule_id, count(*) FROM lodger_actions a
        JOIN lodger_schedules s ON s.id = a.schedule_id
        JOIN lodger_schedule_revisions r ON r.schedule_id = s.id AND r.revision = s.revision
        WHERE r.overlap <> 'allow' AND a.held = 0 AND a.{OPEN}
        GROUP BY a.schedule_id HAVING count(*) > 1
    """,
    "turns are what the actions say": """
        SELECT tenant_id, startable_at FROM lodger_turns t WHERE startable_at IS DISTINCT FROM CASE
            WHEN (SELECT state FROM lodger_tenants WHERE id = t.tenant_id) = 'active'
             AND (SELECT count(*) FROM lodger_actions a WHERE a.tenant_id = t.tenant_id AND a.state = 'running') < cap
            THEN (SELECT min(due_at) FROM lodger_actions a
                  WHERE a.tenant_id = t.tenant_id AND held = 0 AND a.state IN ('ready', 'waiting_retry'))
            END
    """,
    "no tenant runs more than its cap": """
        SELECT tenant_id, count(*) FROM lodger_actions WHERE state = 'running' GROUP BY tenant_id HAVING count(*) > 3
    """,
    "what runs is leased by a living epoch": """
        SELECT a.id FROM lodger_actions a JOIN lodger_nodes n ON n.id = a.node_id
        WHERE a.state = 'running' AND (n.epoch <> a.lease_epoch OR n.state <> 'alive')
    """,
    "a suspended tenant runs nothing": """
        SELECT a.id FROM lodger_actions a JOIN lodger_tenants t ON t.id = a.tenant_id
        WHERE t.state <> 'active' AND a.state = 'running'
    """,
    "an enabled schedule has its next slot": """
        SELECT schedule_id FROM lodger_schedule_clock
        WHERE state = 'ended' OR (state = 'armed' AND next_at <= accounted_us)
    """,
}
