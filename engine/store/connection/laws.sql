-- Laws of the ledger: each query returns the rows that break one.

-- name: a schedule that is armed has its revision
SELECT c.tenant_id, c.schedule_id, c.revision FROM lodger_schedule_clock c WHERE c.state = 'armed' AND NOT EXISTS
(SELECT 1 FROM lodger_schedule_revisions r
 WHERE r.tenant_id = c.tenant_id AND r.schedule_id = c.schedule_id AND r.revision = c.revision)

-- name: an action is of a tenant
SELECT a.tenant_id, a.id FROM lodger_actions a WHERE NOT EXISTS (SELECT 1 FROM lodger_tenants t WHERE t.id = a.tenant_id)

-- name: a running action is leased by a node
SELECT a.tenant_id, a.id, a.node_id, a.lease_epoch FROM lodger_actions a LEFT JOIN lodger_nodes n ON n.id = a.node_id
WHERE a.state = 'running' AND (n.id IS NULL OR a.lease_epoch > n.epoch)

-- name: every attempt that ended an action has its row
SELECT a.tenant_id, a.id, a.attempt FROM lodger_actions a
WHERE a.outcome IS NOT NULL AND a.state IN ('done', 'failed') AND NOT EXISTS
(SELECT 1 FROM lodger_attempts t WHERE t.tenant_id = a.tenant_id AND t.action_id = a.id AND t.step = a.step AND t.n = a.attempt)

-- name: a slot is done at most once, replays apart
SELECT schedule_id, slot, count(*) FROM lodger_actions
WHERE origin IN ('slot', 'backfill') AND state = 'done' GROUP BY schedule_id, slot, node_key HAVING count(*) > 1

-- name: two rows never stand for one slot
-- In order of slots, gaps first: a row that begins within an earlier gap accounts a slot twice.
SELECT schedule_id, covered, slot FROM (
    SELECT schedule_id, slot, origin, max(slot_to) OVER (
        PARTITION BY schedule_id ORDER BY slot, CASE WHEN slot_to IS NULL THEN 1 ELSE 0 END
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS covered FROM lodger_actions WHERE slot_to IS NOT NULL OR origin = 'slot'
) AS placed WHERE origin = 'slot' AND covered >= slot

-- name: a share of a day is held by an unfinished action
SELECT l.tenant_id, l.action_id, l.attempt, l.budget FROM lodger_lots l WHERE NOT EXISTS
(SELECT 1 FROM lodger_actions a WHERE a.tenant_id = l.tenant_id AND a.id = l.action_id
 AND a.state IN ('ready', 'running', 'sealed', 'waiting_retry'))

-- name: a tenant with actions to run is in the queue
SELECT DISTINCT a.tenant_id FROM lodger_actions a WHERE a.held = 0 AND a.state IN ('ready', 'waiting_retry')
AND NOT EXISTS (SELECT 1 FROM lodger_turns t WHERE t.tenant_id = a.tenant_id)
