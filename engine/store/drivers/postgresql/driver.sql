-- Statements of driver.py.

-- name: now_us
(extract(epoch FROM clock_timestamp()) * 1000000)::bigint

-- name: oldest_transaction
(SELECT (pg_snapshot_xmin(pg_current_snapshot())::text)::bigint)

-- name: next_transaction
SELECT (pg_snapshot_xmax(pg_current_snapshot())::text)::bigint

-- name: oldest_writer
SELECT pid, (extract(epoch FROM xact_start) * 1000000)::bigint FROM pg_stat_activity
WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid() ORDER BY age(backend_xid) DESC LIMIT 1

-- name: sessions
SELECT pid, coalesce(application_name, '') AS application, coalesce(state, '') AS state,
       coalesce(extract(epoch FROM clock_timestamp() - xact_start), 0)::float8 AS transaction_s,
       coalesce(left(query, 200), '') AS query,
       CASE WHEN wait_event_type = 'Lock' THEN pg_blocking_pids(pid) ELSE '{}' END AS blockers,
       coalesce((SELECT extract(epoch FROM clock_timestamp() - min(l.waitstart)) FROM pg_locks l
                 WHERE l.pid = a.pid AND NOT l.granted), 0)::float8 AS waited_s
FROM pg_stat_activity a WHERE datname = current_database()

-- name: limits
SELECT current_setting('lock_timeout'), current_setting('statement_timeout')

-- name: check_constraints
DO $$ BEGIN SET CONSTRAINTS ALL IMMEDIATE; RAISE SQLSTATE 'LODGR'; EXCEPTION WHEN SQLSTATE 'LODGR' THEN END $$

-- name: sequence
SELECT pg_get_serial_sequence(:table, :column), attidentity FROM pg_attribute
WHERE attrelid = to_regclass(:table) AND attname = :column

-- name: next_numbers
SELECT nextval(CAST(:sequence AS regclass)) FROM generate_series(1, :many)

-- name: unique_rules
SELECT c.relname, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY k (number, place)
LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number AND k.number > 0
WHERE i.indrelid = to_regclass(:table) AND k.place <= i.indnkeyatts AND (i.indisunique OR i.indisexclusion)

-- name: count_triggers
SELECT count(*) FROM pg_trigger WHERE tgrelid = to_regclass(:table) AND tgname LIKE :name || '%' AND tgenabled <> 'D'

-- name: incomplete
SELECT 'the index ' || c.relname || ' is not valid' FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE NOT i.indisvalid AND c.relname LIKE '%lodger%' UNION ALL
SELECT 'the constraint ' || conname || ' is not validated' FROM pg_constraint
WHERE NOT convalidated AND conrelid::regclass::text LIKE 'lodger%'

-- name: timeline
SELECT (SELECT system_identifier FROM pg_control_system()) || '/' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)

-- name: attribute
SELECT set_config('lodger.made_by', :consumer, true)
