"""Databases made from the template and used again: what a test wrote is taken out, which costs a twentieth of a new one.

Tables and schemas that a test made are dropped. A database with another schema then, or with open connections, is not used again.
"""

import time

import psycopg
from psycopg import sql

#: What a test could change beside rows; statistics and free space are not looked at.
_SCHEMA = """
SELECT md5(string_agg(part, E'\\n' ORDER BY part)) FROM (
  SELECT 'class ' || (oid, relname, relnamespace, reltype, relowner, relkind, relpersistence, relrowsecurity,
                      relforcerowsecurity, relreplident, relacl, reloptions)::text AS part
    FROM pg_class WHERE oid >= 16384 AND relkind <> 't' AND relnamespace <> 'pg_toast'::regnamespace
  UNION ALL SELECT 'attribute ' || a::text FROM pg_attribute a WHERE attrelid >= 16384 AND attnum > 0
  UNION ALL SELECT 'default ' || d::text FROM pg_attrdef d
  UNION ALL SELECT 'constraint ' || c::text FROM pg_constraint c WHERE oid >= 16384
  UNION ALL SELECT 'index ' || i::text FROM pg_index i WHERE indexrelid >= 16384
  UNION ALL SELECT 'function ' || p::text FROM pg_proc p WHERE oid >= 16384
  UNION ALL SELECT 'trigger ' || t::text FROM pg_trigger t
  UNION ALL SELECT 'policy ' || p::text FROM pg_policy p
  UNION ALL SELECT 'type ' || t::text FROM pg_type t WHERE oid >= 16384
  UNION ALL SELECT 'statistics ' || s::text FROM pg_statistic_ext s
  UNION ALL SELECT 'namespace ' || n::text FROM pg_namespace n WHERE nspname NOT LIKE 'pg!_t%' ESCAPE '!'
  UNION ALL SELECT 'extension ' || e::text FROM pg_extension e
  UNION ALL SELECT 'setting ' || (setrole, setconfig)::text FROM pg_db_role_setting
    WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
) AS parts
"""
#: Changes whenever a row of those catalogs is written, and costs a tenth of the above.
_STAMP = "SELECT " + ", ".join(
    f"(SELECT (count(*), max(xmin::text::bigint))::text FROM {catalog})"
    for catalog in (
        *(f"{name} WHERE oid >= 16384" for name in ("pg_class", "pg_constraint", "pg_proc", "pg_type")),
        *(
            "pg_attribute WHERE attrelid >= 16384",
            "pg_index WHERE indexrelid >= 16384",
            "pg_attrdef",
            "pg_trigger",
            "pg_policy",
        ),
        *(
            "pg_statistic_ext",
            "pg_extension",
            "pg_db_role_setting",
            "pg_namespace WHERE nspname NOT LIKE 'pg!_t%' ESCAPE '!'",
        ),
    )
)
_WRITTEN = """
SELECT oid::regclass::text, pg_relation_size(oid) > 65536 FROM pg_class
WHERE oid >= 16384 AND relkind = 'r' AND pg_relation_size(oid) > 0
"""
_TABLES = "SELECT oid, oid::regclass::text FROM pg_class WHERE oid >= 16384 AND relkind IN ('r', 'p')"
_SCHEMAS = (
    "SELECT oid, oid::regnamespace::text FROM pg_namespace WHERE oid >= 16384 AND nspname NOT LIKE 'pg!_t%' ESCAPE '!'"
)
_OTHERS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


class Pristine:
    """What a new database of the template holds, and the way back to it."""

    def __init__(self, conninfo: str) -> None:
        #: As each database was left; one that has not been restored yet is looked at whole.
        self._stamps: dict[str, object] = {}
        with psycopg.connect(conninfo) as connection:
            self._schema = connection.execute(_SCHEMA).fetchone()
            self._known = {oid for listed in (_TABLES, _SCHEMAS) for oid, _ in connection.execute(listed).fetchall()}
            self._rows = {table: _copied(connection, table) for table, _ in connection.execute(_WRITTEN).fetchall()}
            self._sequences = connection.execute(
                "SELECT format('%I.%I', schemaname, sequencename), coalesce(last_value, start_value), last_value IS NOT NULL"
                " FROM pg_sequences"
            ).fetchall()

    def restore(self, conninfo: str) -> bool:
        """Take out what was written since. False where that cannot be done: the database is to be dropped."""
        with psycopg.connect(conninfo) as connection:
            for _ in range(20):
                # A backend ends a moment after its client has closed.
                if connection.execute(_OTHERS).fetchone() == (0,):
                    break
                connection.rollback()
                time.sleep(0.005)
            else:
                return False
            for what, listed in (("TABLE", _TABLES), ("SCHEMA", _SCHEMAS)):
                made = [name for oid, name in connection.execute(listed).fetchall() if oid not in self._known]
                if made:
                    connection.execute(f"DROP {what} {', '.join(made)} CASCADE")
            stamp = connection.execute(_STAMP).fetchone()
            if stamp != self._stamps.get(conninfo) and connection.execute(_SCHEMA).fetchone() != self._schema:
                return False
            written = connection.execute(_WRITTEN).fetchall()
            # Neither triggers nor foreign keys act on what follows.
            connection.execute("SET session_replication_role = replica")
            large = [table for table, many in written if many]
            if large:
                connection.execute("TRUNCATE " + ", ".join(large) + " CASCADE")
            for table, _ in written:
                connection.execute(f"DELETE FROM {table}")
            for table, rows in self._rows.items():
                with connection.cursor().copy(f"COPY {table} FROM STDIN (FORMAT binary)") as copy:
                    copy.write(rows)
            for name, value, called in self._sequences:
                connection.execute("SELECT setval(%s::regclass, %s, %s)", (name, value, called))
            self._stamps[conninfo] = connection.execute(_STAMP).fetchone() if large else stamp
        return True


def _copied(connection: psycopg.Connection, table: str) -> bytes:
    """Return the rows of a table in the form of binary COPY."""
    with connection.cursor().copy(sql.SQL(f"COPY {table} TO STDOUT (FORMAT binary)")) as copy:
        return b"".join(bytes(part) for part in copy)
