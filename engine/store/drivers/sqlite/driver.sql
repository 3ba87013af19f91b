-- Statements of driver.py.

-- name: unique_rules
SELECT l.name, i.name FROM pragma_index_list(:table) l, pragma_index_info(l.name) i WHERE l."unique"
UNION ALL SELECT 'the key', name FROM pragma_table_info(:table) WHERE pk > 0

-- name: count_triggers
SELECT count(*) FROM sqlite_master WHERE type = 'trigger' AND tbl_name = :table AND name LIKE :name || '%'

-- name: last_change
SELECT coalesce(max(seq), 0) FROM lodger_changes

-- name: attribute
UPDATE lodger_changes SET made_by = :consumer WHERE seq > :last AND made_by IS NULL
