"""One tree: up, down, up; what it builds is what the tables say."""

import os
import re
import subprocess
import sys
from contextlib import ExitStack

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, inspect, text
from sqlalchemy.schema import CreateSchema

from lodger.engine.core.errors import Unavailable
from lodger.engine.store.connection.database import Database
from lodger.engine.store.connection.inspection import inspect_database
from lodger.engine.store.migrations.revision import VERSION_TABLE, compatibility, current, head, known
from lodger.engine.store.migrations.upgrade import downgrade, pending, tree, upgrade
from lodger.engine.store.schema import metadata


def test_autogenerate_finds_nothing(url: str) -> None:
    database = Database(url)
    with database.read() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, metadata) == []
    database.close()


def test_the_files_names_are_what_alembic_reads_in_them() -> None:
    assert head() == tree().get_current_head()
    assert known() == {script.revision for script in tree().walk_revisions()}


def test_a_ledger_that_is_set_up_opens_without_alembic(url: str) -> None:
    Database(url).close()
    code = "import sys; from lodger.engine.sync import Engine; Engine.open(sys.argv[1]).close(); assert 'alembic' not in sys.modules"
    subprocess.run([sys.executable, "-c", code, url], check=True, timeout=120, env=os.environ | {"PYTHONPATH": "."})


def test_up_down_up(empty_url: str) -> None:
    reported: list[tuple[str, int, int]] = []
    database = Database(
        empty_url, progress=lambda revision, _sentence, number, total: reported.append((revision, number, total))
    )
    revisions = [script.revision for script in reversed(list(tree().walk_revisions()))]
    assert reported == [(revision, number, len(revisions)) for number, revision in enumerate(revisions, 1)]
    for revision in [*reversed(revisions[:-1]), None]:
        with database.write() as connection:
            downgrade(connection, revision or "base")
            assert current(connection) == revision
    with database.read() as connection:
        assert set(inspect(connection).get_table_names()) <= {VERSION_TABLE}
    for revision in revisions:
        with database.write() as connection:
            upgrade(connection, to=revision)
            assert current(connection) == revision
    with database.read() as connection:
        assert set(metadata.tables) <= set(inspect(connection).get_table_names())
    database.close()


def test_checks_and_partial_indexes_are_those_of_the_tables(url: str) -> None:
    """Alembic compares neither, so they are compared here by name and text."""
    database = Database(url)
    if database.driver.name == "postgresql":
        database.close()
        pytest.skip("PostgreSQL rewrites conditions: the next test compares them in its own words")
    with database.read() as connection:
        inspector = inspect(connection)
        for table in metadata.sorted_tables:
            stored = {
                (check["name"], " ".join(str(check["sqltext"]).split()))
                for check in inspector.get_check_constraints(table.name)
            }
            declared = {
                (
                    f"ck_{table.name}_{check.name}".replace(f"ck_{table.name}_ck_{table.name}_", f"ck_{table.name}_"),
                    " ".join(str(check.sqltext).split()),
                )
                for check in table.constraints
                if hasattr(check, "sqltext")
            }
            assert stored == declared
            for index in table.indexes:
                condition = index.dialect_options["sqlite"]["where"]
                found = next(each for each in inspector.get_indexes(table.name) if each["name"] == index.name)
                kept = found.get("dialect_options", {}).get("sqlite_where")
                assert str(kept) == str(condition)
                assert bool(found["unique"]) == bool(index.unique)
    database.close()


def test_what_the_tree_builds_is_what_the_tables_say_in_the_databases_own_words(url: str) -> None:
    """The declared tables are made beside the migrated ones, and both are read back."""
    database = Database(url)
    if database.driver.name != "postgresql":
        database.close()
        pytest.skip("SQLite has no schemas")
    with database.write() as connection:
        connection.execute(CreateSchema("declared"))
        metadata.create_all(connection.execution_options(schema_translate_map={None: "declared"}))
    with database.read() as connection:
        for table in metadata.sorted_tables:
            migrated, declared = (_described(connection, table.name, schema) for schema in ("public", "declared"))
            assert migrated == declared
    database.close()


def _described(connection: Connection, table: str, schema: str) -> object:
    """Return constraints and indexes by name, and columns with types and defaults, without the schema's name."""
    columns = (
        "SELECT column_name, data_type, character_maximum_length, is_nullable, column_default "
        "FROM information_schema.columns WHERE table_schema = :schema AND table_name = :table ORDER BY 1"
    )
    constraints = (
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = to_regclass(:whole) ORDER BY 1"
    )
    indexes = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = :schema AND tablename = :table ORDER BY 1"
    values = {"schema": schema, "table": table, "whole": f"{schema}.{table}"}
    return [
        [tuple(str(cell).replace(f"{schema}.", "") for cell in row) for row in connection.execute(text(each), values)]
        for each in (columns, constraints, indexes)
    ]


def test_a_database_of_a_later_lodger_is_left_alone_unless_that_says_that_it_may_be_used(url: str) -> None:
    database = Database(url)
    with database.write() as connection:
        connection.exec_driver_sql(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    database.close()
    Database(url).close()
    assert inspect_database(url).verdict == "ahead"
    database = Database(url)
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE lodger_ledger SET compatible_with = '9998'")
    database.close()
    with pytest.raises(Unavailable) as refused:
        Database(url)
    assert refused.value.code == "database_newer"
    assert refused.value.fix
    assert inspect_database(url).verdict == "newer"


def test_a_database_of_an_earlier_lodger_is_upgraded_when_told(url: str) -> None:
    database = Database(url)
    with database.write() as connection:
        downgrade(connection, "0120")
    database.close()
    with pytest.raises(Unavailable) as refused:
        Database(url)
    assert refused.value.code == "database_behind"
    assert inspect_database(url).verdict == "behind"
    Database(url, upgrade=True).close()
    assert inspect_database(url).verdict == "current"


def test_of_two_processes_that_upgrade_at_once_one_migrates_and_the_other_says_so(url: str) -> None:
    database = Database(url)
    with database.write() as connection:
        downgrade(connection, "0120")
    command = [sys.executable, "-u", "-m", "lodger.engine.cli", "db", "upgrade", "--without-backup", "--db", url]
    with ExitStack() as stack:
        # Both have read the old schema and wait for the lock before either can migrate.
        with database.write() as connection:
            database.driver.prepare_upgrade(connection)
            both = [
                stack.enter_context(
                    subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": "."})
                )
                for _ in range(2)
            ]
            assert all("schema 0120" in str(each.stdout and each.stdout.readline()) for each in both)
        said = [each.communicate(timeout=120)[0] for each in both]
    database.close()
    assert [each.returncode for each in both] == [0, 0]
    steps = [step.revision for step in pending("0120")]
    applied = [re.findall(r"^\d+/\d+  (\w+)", each, re.MULTILINE) for each in said]
    assert sorted(applied) == [[], steps]
    assert "another process has upgraded the database at the same time" in said[applied.index([])]
    assert inspect_database(url).verdict == "current"


def test_migrations_only_add_to_what_the_oldest_compatible_release_uses(url: str) -> None:
    """A column stays as it was, and a new one has a default: the release before writes rows without it."""
    database = Database(url)
    oldest = next(each for step in reversed(pending(None)) if (each := compatibility(step.revision)))
    with database.write() as connection:
        downgrade(connection, oldest)
        before = _columns(connection)
        upgrade(connection)
        after = _columns(connection)
    for place, (kind, required) in before.items():
        assert after[place][0] == kind, place
        assert required or not after[place][1], f"{place} must be given now"
    tables = {table for table, _name in before}
    for (table, name), (_kind, required) in after.items():
        assert (table, name) in before or table not in tables or not required, f"{table}.{name} has no default"
    database.close()


def _columns(connection: Connection) -> dict[tuple[str, str], tuple[str, bool]]:
    """Return type of each column, and whether an INSERT must give it."""
    inspector = inspect(connection)
    return {
        (table, column["name"]): (str(column["type"]), not column["nullable"] and column["default"] is None)
        for table in inspector.get_table_names()
        for column in inspector.get_columns(table)
    }


def test_an_upgrade_that_fails_leaves_nothing_behind(empty_url: str) -> None:
    def stop(_revision: str, _sentence: str, number: int, _total: int) -> None:
        if number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Database(empty_url, progress=stop)
    reported: list[str] = []
    database = Database(empty_url, progress=lambda revision, *_: reported.append(revision))
    assert len(reported) == len(list(tree().walk_revisions())), "it begins again from nothing"
    with database.read() as connection:
        assert current(connection) == tree().get_current_head()
    database.close()
