"""SQLite: one writer at a time, a file instead of a server. It must never hold a query on an aggregate."""

from lodger.engine.store.drivers.sqlite.driver import DRIVER, SqliteDriver

__all__ = ["DRIVER", "SqliteDriver"]
