-- Statements of server_settings.py.

-- name: settings
SELECT name, setting FROM pg_settings WHERE name IN ('server_version', 'fsync', 'full_page_writes', 'synchronous_commit',
'max_connections', 'superuser_reserved_connections')

-- name: state
SELECT pg_is_in_recovery() AS standby, (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS used
