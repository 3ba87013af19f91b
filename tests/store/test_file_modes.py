"""The files of a ledger on SQLite are closed to other users, and a check says so when they are not."""

import os
from pathlib import Path

import pytest
from tests.e2e.command import lodger

from lodger.engine.store.connection.database import Database
from lodger.engine.store.drivers.features import Check
from lodger.engine.store.drivers.sqlite.connections import explain


def check(database: Database) -> Check:
    """What is said about the files of a ledger."""
    with database.read() as connection:
        (found,) = [each for each in database.driver.check_settings(connection) if each.name == "ledger's files"]
    return found


def test_the_files_are_their_owners_and_open_ones_are_named_with_the_command(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir(0o755)
    before = os.umask(0)
    try:  # by a command: tests in this process copy a ledger that is there
        assert lodger("db", "upgrade", "--db", folder / "ledger.db").code == 0
    finally:
        os.umask(before)
    ledger = Database(str(folder / "ledger.db"))
    try:
        assert {each.name: each.stat().st_mode & 0o777 for each in folder.iterdir()} == dict.fromkeys(
            ("ledger.db", "ledger.db-wal", "ledger.db-shm"), 0o600
        )
        assert check(ledger).state == "ok"
        (folder / "ledger.db").chmod(0o644)
        assert check(ledger).state == "warn"
        assert check(ledger).fix.startswith(f"chmod o-rwx {folder / 'ledger.db'}")
        (folder / "ledger.db").chmod(0o600)
        folder.chmod(0o777)
        assert (check(ledger).state, check(ledger).fix) == ("fail", f"chmod o-w {folder}")
        folder.chmod(0o1777)
        assert check(ledger).state == "ok"
    finally:
        ledger.close()


def test_a_read_only_file_system_is_not_called_a_mode_of_the_file(tmp_path: Path) -> None:
    mounted = [
        line.split()[1] for line in Path("/proc/mounts").read_text().splitlines() if "ro" in line.split()[3].split(",")
    ]
    folder = next((each for each in mounted if Path(each).is_dir()), None)
    if folder is None:
        pytest.skip("nothing is mounted read-only here")
    found = explain("attempt to write a readonly database", f"{folder}/ledger.db")
    assert found is not None
    assert found.why == "it is mounted read-only"
    other = explain("attempt to write a readonly database", str(tmp_path / "ledger.db"))
    assert other is not None
    assert "make the file and its folder writable" in other.fix
