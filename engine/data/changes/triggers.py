"""Triggers that write every change of an exposed table to the feed, whichever program makes it: for ``expose(…, feed="trigger")``."""

from sqlalchemy import Connection

from lodger.engine.data.changes.feed import source_of
from lodger.engine.data.sets.dataset import TableDataset
from lodger.engine.store.drivers import Driver, driver_of
from lodger.engine.store.drivers.features import WatchedTable
from lodger.engine.store.drivers.postgresql.row_security import RowSecurity

_PREFIX = "lodger_changes_"
#: Inserts, updates, deletes.
_KINDS = 3


def stands(connection: Connection, rows: TableDataset) -> bool:
    """Whether a table's feed triggers exist and are enabled, so that nothing else records its changes."""
    return driver_of(connection).count_triggers(connection, rows.origin, _PREFIX) == _KINDS


def statements(rows: TableDataset, driver: Driver, security: RowSecurity | None) -> list[str]:
    """Return the statements that create the triggers of a dataset's table, or drop them if its feed needs none."""
    watched = WatchedTable(rows.origin, source_of(rows), rows.tenant_column, rows.key.column)
    return driver.trigger_statements(watched, security, wanted=rows.feed == "trigger")
