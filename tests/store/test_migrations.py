"""A new ledger is created from the declared tables; an older one is migrated to the same schema, here by that of a next release."""

import os
import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect
from tests.databases.fixtures import place
from tests.databases.next_release import (
    REVISION,
    SENTENCE,
    environment,
    lodger_commands,
    next_release,
    python,
    write_migration,
)

from lodger.engine.core.errors import Unavailable
from lodger.engine.store.connection.database import Database
from lodger.engine.store.connection.inspection import inspect_database
from lodger.engine.store.drivers import addresses
from lodger.engine.store.migrations.revision import VERSION_TABLE, current, head
from lodger.engine.store.schema import metadata

__all__ = ["place"]


def plain(described: object) -> str:
    """Return a description as text, without SQLAlchemy's objects and the casts that PostgreSQL adds when it restores a condition."""
    if isinstance(described, dict):
        return str(sorted((key, plain(value)) for key, value in described.items()))
    return re.sub(r"::[a-z ]+(\[\])?|[()]", "", str(described))


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The next release."""
    return next_release(tmp_path_factory.mktemp("next") / "newer")


def schema(url: str) -> dict[str, Any]:
    """Return the columns, constraints and indexes of each table of Lodger's, in no order."""
    driver, address = addresses.ledger_url(url)
    pool = driver.open(address, synchronous="NORMAL", patience_s=60)
    found = inspect(pool)
    tables = {
        name: [
            sorted(plain(each) for each in part(name))
            for part in (found.get_columns, found.get_check_constraints, found.get_indexes, found.get_foreign_keys)
        ]
        for name in found.get_table_names()
        if name.startswith("lodger_")
    }
    pool.dispose()
    return tables


def test_a_new_ledger_has_the_declared_tables_at_the_newest_revision(empty_url: str) -> None:
    reported: list[tuple[str, int, int]] = []
    Database(empty_url, progress=lambda revision, _, number, total: reported.append((revision, number, total))).close()
    assert reported == [(head(), 1, 1)]
    assert set(schema(empty_url)) == {*metadata.tables, VERSION_TABLE}
    assert inspect_database(empty_url).verdict == "current"


def test_the_tenant_is_first_in_the_key_of_every_table_of_tenants() -> None:
    of_tenants = [table for table in metadata.tables.values() if "tenant_id" in table.primary_key.columns]
    assert len(of_tenants) > 20
    assert {next(iter(table.primary_key.columns)).name for table in of_tenants} == {"tenant_id"}


def test_a_ledger_is_set_up_and_opens_without_alembic(tmp_path: Path) -> None:
    opened = "Engine.open(sys.argv[1]).close(); "
    code = f"import sys; from lodger.engine.sync import Engine; {opened * 2}assert 'alembic' not in sys.modules"
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "ledger.db")],
        check=True,
        timeout=120,
        env=os.environ | {"PYTHONPATH": "."},
    )


def test_a_set_up_that_fails_leaves_nothing_behind(empty_url: str) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Database(empty_url, progress=stop)
    assert schema(empty_url) == {}
    Database(empty_url).close()


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


def test_the_next_release_upgrades_a_ledger_to_the_schema_of_a_new_one(
    url: str, place: str, empty_url: str, kind: str, newer: Path, tmp_path: Path
) -> None:
    Database(url).close()
    new = empty_url if kind == "postgresql" else f"sqlite:///{tmp_path / 'new.db'}"
    mine, restored, step = ("--db", url), ("--db", place), {"revision": REVISION, "sentence": SENTENCE}
    file = str(tmp_path / "before.backup")
    shown, checked, behind, careless, upgraded, again, made, as_it_was, later = lodger_commands(
        newer,
        ("db", "upgrade", "--dry-run", *mine),
        ("db", "check", "--schema-only", *mine),
        ("tenant", "list", *mine),
        ("db", "upgrade", *mine),
        ("db", "upgrade", "--backup", file, *mine),
        ("db", "upgrade", *mine),
        ("db", "upgrade", "--db", new),
        ("db", "restore", file, *restored),
        ("db", "upgrade", "--without-backup", *restored),
    )
    assert (shown["revision"], shown["wanted"], shown["pending"]) == (head(), REVISION, [step])
    assert checked["verdict"] == "behind"
    assert (behind["code"], behind["error"]["code"]) == (1, "database_behind")
    assert (careless["code"], careless["error"]["code"]) == (2, "backup_missing")
    assert upgraded["applied"] == later["applied"] == [step]
    assert again == {"applied": [], "code": 0}
    assert made["applied"][0]["revision"] == REVISION
    assert as_it_was["revision"] == head(), "a backup is restored as it is"
    assert inspect_database(url).verdict == "ahead", "this release can use what the next one has only added to"
    Database(url).close()
    assert schema(new) == schema(url) == schema(place), "created and upgraded are the same"


def test_of_two_processes_that_upgrade_at_once_one_migrates_and_the_other_says_so(url: str, newer: Path) -> None:
    database = Database(url)
    command = [sys.executable, "-u", "-m", "lodger.engine.cli", "db", "upgrade", "--without-backup", "--db", url]
    with ExitStack() as stack:
        # Both have read the old schema and wait for the lock before either can migrate.
        with database.write() as connection:
            database.driver.prepare_upgrade(connection)
            both = [
                stack.enter_context(
                    subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=newer, env=environment(newer))
                )
                for _ in range(2)
            ]
            assert all(f"schema {head()}" in str(each.stdout and each.stdout.readline()) for each in both)
        said = [each.communicate(timeout=120)[0] for each in both]
    database.close()
    assert [each.returncode for each in both] == [0, 0]
    applied = [re.findall(r"^\d+/\d+  (\w+)", each, re.MULTILINE) for each in said]
    assert sorted(applied) == [[], [REVISION]]
    assert "another process has upgraded the database at the same time" in said[applied.index([])]


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_an_upgrade_that_fails_changes_nothing(url: str, tmp_path: Path) -> None:
    database = Database(url)
    newer = next_release(tmp_path / "newer")  # its own: it gets a migration that fails
    # A column that is there already.
    write_migration(newer, "9002", REVISION, "slots")
    before = schema(url)
    failed = python(newer, "-m", "lodger.engine.cli", "db", "upgrade", "--without-backup", "--db", url)
    assert failed.returncode == 1
    assert schema(url) == before
    with database.read() as connection:
        assert current(connection) == head()
    database.close()
