"""Creates the schema in an empty database from the declared tables, at the newest revision.

So a new ledger runs no migration, and each table is declared once: migrations only bring ledgers of earlier releases to the
state that the declared tables describe. The wings are imported by name, because their tables belong to the schema.
"""

import json
import secrets
import time
import uuid
from importlib import import_module

from sqlalchemy import DDL, Column, Connection, MetaData, String, Table, insert

from lodger.engine.core.ids import PLATFORM
from lodger.engine.store.drivers import driver_of
from lodger.engine.store.migrations.revision import VERSION_TABLE, compatible_with, head
from lodger.engine.store.schema import metadata
from lodger.engine.store.schema.access import keys
from lodger.engine.store.schema.nodes import ledger
from lodger.engine.store.schema.scheduling import tenants, turns

#: Shown as the step of an upgrade.
SENTENCE = "The schema of a new ledger."
#: Limits of the platform's own tenant.
PLATFORM_LIMITS = {"concurrent_runs": 1000, "min_interval_s": 1, "schedules": 10000}

_version = Table(VERSION_TABLE, MetaData(), Column("version_num", String(32), primary_key=True))


def create(connection: Connection) -> None:
    """Create the tables, their guards, and the first rows."""
    import_module("lodger.engine.features")
    driver = driver_of(connection)
    metadata.create_all(connection, checkfirst=False)
    for statement in driver.table_statements(metadata.sorted_tables):
        connection.execute(DDL(statement.replace("%", "%%")))  # type: ignore[no-untyped-call]  # SQLAlchemy's own
    first: dict[Table, dict[str, object]] = {
        ledger: {"one": 1, "identity": str(uuid.uuid4()), "compatible_with": compatible_with()},
        keys: {"name": "signing", "secret": secrets.token_bytes(32)},
        tenants: {
            "id": PLATFORM, "name": "the platform", "state": "active", "generation": 1,
            "limits": json.dumps(PLATFORM_LIMITS), "created_us": time.time_ns() // 1000,
        },
        turns: {"tenant_id": PLATFORM, "served_us": 0, "cap": PLATFORM_LIMITS["concurrent_runs"]},
    }  # fmt: skip
    for table, row in first.items():
        connection.execute(insert(table), row)
    _version.create(connection)
    connection.execute(insert(_version), {"version_num": head()})
