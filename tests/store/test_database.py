"""Opening the ledger where it cannot be opened says what to do; durability and isolation are what the pragmas promise."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from tempfile import gettempdir

import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.exc import OperationalError

from lodger.engine.core.errors import InputError, Unavailable
from lodger.engine.data.sets.foreign import ForeignDatabase
from lodger.engine.store.connection import database as module
from lodger.engine.store.connection.database import Database, mask_password
from lodger.engine.store.connection.inspection import inspect_database
from lodger.engine.store.drivers.sqlite import connections
from lodger.engine.store.drivers.sqlite.driver import SqliteDriver
from lodger.engine.sync import Engine


def refusal_of(path: str) -> Unavailable:
    with pytest.raises(Unavailable) as error:
        Database(path).close()
    assert error.value.fix
    return error.value


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "photo.jpg"
    path.write_bytes(os.urandom(5000))
    before = path.read_bytes()
    assert refusal_of(str(path)).code == "not_a_database"
    assert path.read_bytes() == before


def test_a_pipe_or_a_device_is_refused_at_once(tmp_path: Path) -> None:
    """To open a pipe would wait until something else opens it."""
    os.mkfifo(tmp_path / "pipe")
    for path in (str(tmp_path / "pipe"), "/dev/null"):
        assert refusal_of(path).code == "not_a_database"
        with Engine.open(str(tmp_path / "l.db")) as engine:
            with pytest.raises(Unavailable, match="not a regular file"):
                engine.expose("orders", tenant_column="tenant", database=f"sqlite:///{path}")
            with pytest.raises(Unavailable, match="not a regular file"):
                SqliteDriver().restore(make_url(f"sqlite:///{tmp_path}/new.db"), Path(path))


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    assert refusal_of(str(tmp_path / "no" / "ledger.db")).code == "database_unreadable"
    assert refusal_of(str(tmp_path)).code == "database_unreadable"


def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    """As an ordinary user: root may write everywhere."""
    folder = tmp_path / "locked"
    folder.mkdir()
    Database(str(folder / "there.db")).close()
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)
    for parent in (tmp_path, *tmp_path.parents):
        if parent.is_relative_to(gettempdir()) and parent != Path(gettempdir()):
            parent.chmod(0o755)
    code = (
        "import os, sys\n"
        "import lodger.engine.store.connection.database as d, lodger.engine.core.errors as e\n"
        # Everything is imported while the packages can be read, wherever they lie.
        "d.Database(sys.argv.pop(1)).close()\n"
        "if os.getuid() == 0: os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "for name in sys.argv[1:]:\n"
        "    try: d.Database(name)\n"
        "    except e.Unavailable as error: print(error.code)\n"
    )
    names = [str(tmp_path / "warm.db"), str(folder / "new.db"), str(folder / "there.db")]
    root = Path(module.__file__).absolute().parents[3]
    answer = subprocess.run(
        [sys.executable, "-c", code, *names],
        capture_output=True, text=True, env={"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}, timeout=60, check=False,
    )  # fmt: skip
    folder.chmod(0o755)
    assert answer.stdout.split() == ["database_unreadable", "database_read_only"], answer.stderr


def test_another_process_that_keeps_the_write_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "BUSY_TIMEOUT_MS", 50)
    path = tmp_path / "ledger.db"
    Database(str(path)).close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert refusal_of(str(path)).code == "database_busy"
    other.close()
    Database(str(path)).close()


@pytest.mark.parametrize("url", ["", ":memory:", "sqlite://", "oracle+nothing://x", "sqlite:///:memory:", "http://x"])
def test_a_url_that_names_no_ledger(url: str) -> None:
    with pytest.raises(InputError) as error:
        Database(url)
    assert error.value.code == "database_url"


@pytest.mark.parametrize(
    ("url", "reported"),
    [
        ("postgresql://ann:s@c?r:et@host/db", "postgresql://ann:***@host/db"),
        (
            "postgres://ann@host/db?password=secret&sslmode=require",
            "postgres://ann@host/db?password=***&sslmode=require",
        ),
        (
            "postgresql://host/db?application_name=shop&sslpassword=secret&%70assword=secret",
            "postgresql://host/db?application_name=shop&sslpassword=***&%70assword=***",
        ),
        ("oracle+nothing://ann:secret@host", "oracle+nothing://ann:***@host"),
        ("postgresql://ann@host:5432/db", "postgresql://ann@host:5432/db"),
        ("sqlite:///a:b@c.db", "sqlite:///a:b@c.db"),
        ("a:b@c.db", "a:b@c.db"),
    ],
)
def test_an_address_is_shown_without_its_password(url: str, reported: str) -> None:
    assert mask_password(url) == reported


def test_a_refused_address_is_shown_without_its_password() -> None:
    with pytest.raises(InputError) as caught:
        Database("oracle+nothing://ann:secret@host")
    assert "secret" not in str(caught.value)


def test_a_file_name_with_letters_of_a_url_is_found_again(tmp_path: Path) -> None:
    place = str(tmp_path / "a?b#c%20d.db")
    Database(place).close()
    assert [each.name for each in tmp_path.iterdir()] == ["a?b#c%20d.db"]
    assert inspect_database(place).verdict == "current"


def test_pragmas_hold_on_every_connection(tmp_path: Path) -> None:
    database = Database(str(tmp_path / "ledger.db"))
    with database.read() as one, database.read() as two:
        for connection in (one, two):
            values = [
                connection.exec_driver_sql(f"PRAGMA {name}").scalar()
                for name in ("journal_mode", "synchronous", "foreign_keys")
            ]
            assert values == ["wal", 2, 1]
    database.close()


def test_what_is_not_about_the_host_is_not_dressed_up(tmp_path: Path) -> None:
    database = Database(str(tmp_path / "ledger.db"))
    with pytest.raises(OperationalError), database.read() as connection:
        connection.exec_driver_sql("SELECT nothing FROM nowhere")
    database.close()


def test_what_is_in_use_when_it_is_closed_is_let_go_when_it_comes_back(url: str) -> None:
    """A thread that is still at work when an engine closes leaves no connection behind."""
    database = Database(url)
    with database.read() as connection:
        used = connection.connection.dbapi_connection
        assert used is not None
        database.close()
        assert connection.exec_driver_sql("SELECT 1").scalar() == 1, "it may end what it has begun"
    with pytest.raises(Exception, match="closed"):
        used.cursor().execute("SELECT 1")
    with database.read() as connection:
        late = connection.connection.dbapi_connection
        assert connection.exec_driver_sql("SELECT 1").scalar() == 1
    assert late is not None
    with pytest.raises(Exception, match="closed"):
        late.cursor().execute("SELECT 1")


@pytest.mark.parametrize("replaced", [False, True], ids=["deleted", "replaced"])
def test_nothing_is_written_to_a_file_that_lost_its_name(tmp_path: Path, replaced: bool) -> None:
    place = tmp_path / "ledger.db"
    database = Database(str(place))
    try:
        with database.write() as connection:
            connection.execute(text("CREATE TABLE probe (a)"))
        place.rename(tmp_path / "away.db")
        if replaced:
            shutil.copy(tmp_path / "away.db", place)
        for begin in (database.read, database.write):
            with pytest.raises(Unavailable) as found, begin():
                pytest.fail("the transaction began")
            assert found.value.code == "ledger_replaced"
        database.engine.dispose()  # what a pool does after a lost connection: the next one opens nothing else either
        with pytest.raises(Unavailable, match="replaced"), database.read():
            pytest.fail("the transaction began")
        assert place.exists() == replaced
        place.unlink(missing_ok=True)
        (tmp_path / "away.db").rename(place)
        with database.write() as connection:  # back in its place, it is the ledger again
            assert connection.scalar(text("SELECT count(*) FROM probe")) == 0
    finally:
        database.close()


@pytest.mark.parametrize("own", [False, True], ids=["by its address", "by the platform's engine"])
def test_an_exposed_database_that_was_replaced_is_refused_once_and_then_opened_anew(tmp_path: Path, own: bool) -> None:
    place = tmp_path / "shop.db"
    for path, count in ((place, 1), (tmp_path / "new.db", 2)):
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("CREATE TABLE lamps (id INTEGER PRIMARY KEY)")
            connection.executemany("INSERT INTO lamps VALUES (?)", [(number,) for number in range(count)])
    engine = create_engine(f"sqlite:///{place}")
    platform = ForeignDatabase(engine if own else f"sqlite:///{place}")
    try:
        with platform.read() as connection:
            assert connection.scalar(text("SELECT count(*) FROM lamps")) == 1
        (tmp_path / "new.db").rename(place)
        with pytest.raises(Unavailable) as found, platform.write():
            pytest.fail("the transaction began")
        assert found.value.code == "database_replaced"
        with platform.read() as connection:
            assert connection.scalar(text("SELECT count(*) FROM lamps")) == 2
    finally:
        platform.close()
        engine.dispose()
