"""Counters of PostgreSQL: how many pages queries have looked at."""

from sqlalchemy import text

from lodger.engine.store.connection.database import Database

#: Counts the other sessions of this database.
OTHER_SESSIONS = (
    "SELECT count(*) FROM pg_stat_activity "
    "WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
)


def pages_read(database: Database) -> int:
    """Return the pages that queries have looked at."""
    with database.read() as connection:
        connection.execute(text("SELECT pg_stat_force_next_flush()"))
    with database.read() as connection:
        counted = "sum(heap_blks_hit + heap_blks_read + coalesce(idx_blks_hit, 0) + coalesce(idx_blks_read, 0))"
        found = connection.scalar(text(f"SELECT {counted}::bigint FROM pg_statio_user_tables"))
    assert isinstance(found, int)
    return found
