"""The ledger behind a real transaction pooler (pgbouncer): every transaction may be given another session of the server.

Skipped aloud where there is none (apt-get install pgbouncer). That nothing of a session outlives its transaction is held without
one too, in tests/store/test_postgres.py.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from tests.databases.server import Server, die_with_parent
from tests.node.harness import SETTINGS, Script, Signals

from lodger.engine import Engine
from lodger.engine.core.errors import Unavailable
from lodger.engine.store.connection.database import Database
from lodger.engine.store.queue import ready_queue

#: Fewer sessions than there are clients, so that they have to share them.
SESSIONS = 3


@pytest.fixture(scope="session")
def pooler(server: Server) -> Iterator[Path]:
    """A folder with the pooler's socket."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        pytest.skip("NOT TESTED behind a pooler: no pgbouncer (apt-get install pgbouncer)")
    folder = Path(tempfile.mkdtemp(prefix="lodger-pooler-"))  # pytest's own folders let no other user in
    users = folder / "users"
    users.write_text('"postgres" ""\n')
    settings = folder / "pgbouncer.ini"
    settings.write_text(
        f"[databases]\n* = host={server.folder}\nnarrow = host={server.folder} dbname=postgres pool_mode=statement\n"
        "[pgbouncer]\nlisten_port = 6432\nlisten_addr =\n"
        f"unix_socket_dir = {folder}\nauth_type = trust\nadmin_users = postgres\nauth_file = {users}\npool_mode = transaction\n"
        f"default_pool_size = {SESSIONS}\nmax_client_conn = 200\nlogfile = {folder}/log\nserver_reset_query =\n"
        "ignore_startup_parameters = extra_float_digits\n"
    )
    as_user = {}
    if os.getuid() == 0:
        account = pwd.getpwnam("postgres")
        os.chown(folder, account.pw_uid, account.pw_gid)
        as_user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    process = subprocess.Popen(
        [program, "-q", str(settings)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        preexec_fn=die_with_parent, **as_user,  # type: ignore[call-overload]  # user, group and groups, or nothing
    )  # fmt: skip
    for _ in range(200):
        try:
            psycopg.connect(f"host={folder} port=6432 user=postgres dbname=postgres").close()
            break
        except psycopg.OperationalError:
            assert process.poll() is None, (folder / "log").read_text()
            time.sleep(0.05)
    yield folder
    process.kill()
    process.wait(120)
    shutil.rmtree(folder)


@pytest.fixture
def url(server: Server, pooler: Path) -> Iterator[str]:
    name = server.database(empty=True)
    yield f"postgresql://postgres@/{name}?host={pooler}&port=6432"
    with psycopg.connect(f"host={pooler} port=6432 user=postgres dbname=pgbouncer", autocommit=True) as console:
        console.execute(f"KILL {name}")
    server.drop(name)


def test_transactions_share_sessions_and_leave_nothing_in_them(url: str, pooler: Path) -> None:
    """The pooler does what this file is about: without it, ten clients would have ten sessions. They may be another program's next."""
    database = Database(url)

    def pid(_number: int) -> int:
        with database.write() as connection:
            assert ready_queue.next_startable(connection) is None
            return int(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())

    with ThreadPoolExecutor(10) as threads:
        ours = set(threads.map(pid, range(60)))
    assert len(ours) <= SESSIONS
    database.close()
    left = (
        "SELECT pg_backend_pid(), (SELECT count(*) FROM pg_prepared_statements), current_setting('enable_seqscan'), "
        "current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout')"
    )
    with psycopg.connect(f"host={pooler} port=6432 user=postgres dbname={database.url.database}") as other:
        session, *found = other.execute(left).fetchone() or ()
    assert session in ours
    assert found == [0, "on", "0", "0"]


def test_a_pooler_without_transactions_is_refused_with_its_reason(pooler: Path) -> None:
    with pytest.raises(Unavailable, match="the pooler refused") as error:
        Database(f"postgresql://postgres@/narrow?host={pooler}&port=6432")
    assert "statement pooling" in error.value.why
    assert "pool_mode" in error.value.fix


async def test_two_nodes_work_through_it_and_hear_by_the_servers_own_address(url: str, server: Server) -> None:
    direct = url.partition("?")[0] + f"?host={server.folder}"

    settings = SETTINGS.model_copy(update={"listen_url": direct})
    async with Engine.open(url, settings=settings) as engine:
        await engine.tenants.create("acme", limits={"min_interval_s": 1})
        await engine.scripts.put("acme", "job", "export default () => 1")
        await engine.schedules.create("acme", "s", script="job", rules="every 1s")
        signals = Signals(engine)
        async with engine.node(Script(), "n1"), engine.node(Script(), "n2"):
            await signals.wait("finished", 2)
            for _ in range(10):
                await engine.run_in("acme", "job", 0)
            await signals.wait("finished", 12)
        assert not [event for event in signals.events if event.kind == "fault"]
        slots = [each.slot for each in await engine.actions.list("acme", origin="slot")]
        assert len(slots) == len(set(slots))
