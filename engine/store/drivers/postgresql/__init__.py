"""PostgreSQL: many writers, row locks, notifications, row-level security. It must never hold a query on an aggregate."""

from lodger.engine.store.drivers.postgresql.driver import DRIVER, PostgresDriver

__all__ = ["DRIVER", "PostgresDriver"]
