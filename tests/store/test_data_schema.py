"""The tables of scripts' data: the migration makes exactly what the schema says, up, down and up again."""

from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect

from lodger.engine.store.connection.database import Database
from lodger.engine.store.migrations.revision import VERSION_TABLE
from lodger.engine.store.migrations.upgrade import downgrade, upgrade
from lodger.engine.store.schema import metadata

OURS = {"lodger_kv", "lodger_documents", "lodger_outbox"}


def test_up_down_up(tmp_path: Path) -> None:
    database = Database(str(tmp_path / "ledger.db"))
    try:
        with database.write() as connection:
            assert set(inspect(connection).get_table_names()) >= OURS
            downgrade(connection, "0001")
            assert not OURS & set(inspect(connection).get_table_names())
            upgrade(connection)
        with database.read() as connection:
            context = MigrationContext.configure(
                connection, opts={"version_table": VERSION_TABLE, "compare_type": True}
            )
            found = [
                difference
                for difference in compare_metadata(context, metadata)
                if OURS & set(str(difference).split("'"))
            ]
            assert found == []
    finally:
        database.close()


def test_the_tenant_is_first_in_every_key() -> None:
    for name in OURS:
        table = metadata.tables[name]
        assert next(iter(table.primary_key.columns)).name == "tenant_id"
