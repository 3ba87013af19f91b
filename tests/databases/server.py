"""A PostgreSQL server of the tests' own: from the system's binaries, in a temporary folder, on a Unix socket only.

It lives as long as the test session: stopped at exit, and by the kernel when the session is killed. Durability is off,
because a test's data need not survive the machine. As root it runs as another user, since PostgreSQL refuses root.
"""

import atexit
import ctypes
import fcntl
import os
import pwd
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path

import psycopg
from psycopg.sql import SQL, Identifier
from tests.databases.pristine import Pristine
from tests.databases.template import CLUSTERS

from lodger.engine.store.connection.database import Database

SETTINGS = {
    "listen_addresses": "", "fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_connections": "120",
    "shared_buffers": "64MB", "log_min_messages": "warning", "deadlock_timeout": "200ms", "timezone": "Asia/Kathmandu",
}  # fmt: skip
_PDEATHSIG = 1
#: Database with Lodger's tables in the cluster that servers begin as copies of.
_LEDGER = "ledger"


def binaries() -> Path | None:
    """Return the folder of the newest PostgreSQL on this machine, None when there is none."""
    found = sorted(
        (path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")),
        key=lambda folder: int(re.sub(r"\D", "", folder.parent.name) or 0),
    )
    if found:
        return found[-1]
    elsewhere = shutil.which("initdb")
    return Path(elsewhere).resolve().parent if elsewhere else None


def _account() -> pwd.struct_passwd | None:
    """Return the user to run as, None for the present one."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("there is no user for PostgreSQL, which refuses root")


def ledger_tables(url: str) -> None:
    """Create Lodger's tables in an empty database."""
    Database(url).close()


def no_tables(_url: str) -> None:
    """Leave an empty database as it is."""


@dataclass(slots=True)
class Template:
    """A database to copy.

    Attributes:
        pristine: its content, to restore copies.
        spare: restored copies, to be used again.
    """

    name: str
    pristine: Pristine
    spare: list[str] = field(default_factory=list)


class Server:
    """One cluster. :meth:`database` gives fresh databases; :meth:`stop` and :meth:`start` may be called again and again."""

    def __init__(self, folder: Path, port: int | None = None, of: "Server | None" = None) -> None:
        """Make a cluster.

        Args:
            port: TCP port on the loopback; None for the Unix socket alone.
            of: the primary of which it is a standby.
        """
        self._port = port or 5432
        self._bin = binaries()
        assert self._bin is not None
        self.folder = folder
        self._data = folder / "data"
        self._numbers = count(1)
        self._process: subprocess.Popen[bytes] | None = None
        self._account = _account()
        self._templates: dict[Callable[[str], object], Template] = {}
        self._copies: dict[str, Template] = {}
        #: Databases to copy that the cluster had from the beginning.
        self._ready: dict[Callable[[str], object], str] = {}
        self.settings = dict(SETTINGS) | ({"listen_addresses": "127.0.0.1", "port": str(port)} if port else {})
        if self._account is not None:
            os.chown(folder, self._account.pw_uid, self._account.pw_gid)
        if of is not None:
            self._run(
                "pg_basebackup",
                "-D",
                str(self._data),
                "-d",
                of.conninfo("postgres"),
                "-R",
                "-X",
                "stream",
                "-c",
                "fast",
                "-N",
            )
            return
        if CLUSTERS:
            self._copy(CLUSTERS[-1])
        else:
            self._initdb()

    def _initdb(self) -> None:
        self._run(
            *("initdb", "-D", str(self._data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"),
            "--wal-segsize=1",  # little to copy
        )

    def _copy(self, cluster: Path) -> None:
        """Begin as a copy of a cluster that has Lodger's tables; the first server of a test run makes it."""
        cluster.parent.mkdir(exist_ok=True)
        with cluster.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not cluster.exists():
                self._initdb()
                self.start()
                self._execute("CREATE DATABASE {}", _LEDGER)
                ledger_tables(self.url(_LEDGER))
                self.stop()
                subprocess.run(["mv", str(self._data), str(cluster)], check=True)
        subprocess.run(["cp", "-a", str(cluster), str(self._data)], check=True)
        self._ready = {ledger_tables: _LEDGER}

    def _options(self) -> dict[str, object]:
        """Return the options for processes of the user who runs PostgreSQL."""
        if self._account is None:
            return {}
        return {"user": self._account.pw_uid, "group": self._account.pw_gid, "extra_groups": []}

    def _run(self, name: str, *arguments: str) -> None:
        assert self._bin is not None
        subprocess.run(
            [str(self._bin / name), *arguments], check=True, stdout=subprocess.DEVNULL, cwd=self.folder, timeout=60,
            **self._options(),  # type: ignore[call-overload]  # user, group and groups, or nothing
        )  # fmt: skip

    def start(self) -> None:
        """Start, and wait until it answers."""
        assert self._bin is not None
        assert self._process is None
        settings = [part for name, value in self.settings.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._bin / "postgres"), "-D", str(self._data), "-k", str(self.folder), *settings],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, preexec_fn=die_with_parent,
                **self._options(),  # type: ignore[call-overload]  # user, group and groups, or nothing
            )  # fmt: skip
        for _ in range(400):
            try:
                psycopg.connect(self.conninfo("postgres")).close()
            except psycopg.OperationalError:
                assert self._process.poll() is None, (self.folder / "log").read_text()
                time.sleep(0.05)
            else:
                return
        raise AssertionError("PostgreSQL does not answer: " + (self.folder / "log").read_text())

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop and wait; by default every connection is cut at once, SIGQUIT is a crash."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            process.wait(30)

    def slay(self) -> None:
        """Kill every process of the server at once, as a machine that loses its power does."""
        process, self._process = self._process, None
        if process is None:
            return
        below = [int(pid) for pid in _children(process.pid)]
        # First the one that would clean up after the others.
        for pid in (process.pid, *below):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait(30)

    def slay_one(self, chance: random.Random) -> bool:
        """Kill one of the server's processes: it ends all the others and recovers. False when it is down."""
        below = [] if self._process is None else _children(self._process.pid)
        if not below:
            return False
        with suppress(ProcessLookupError):
            os.kill(int(chance.choice(below)), signal.SIGKILL)
        return True

    @property
    def socket(self) -> str:
        """The Unix socket at which it answers."""
        return str(self.folder / f".s.PGSQL.{self._port}")

    def conninfo(self, name: str, user: str = "postgres") -> str:
        """Return what psycopg connects with."""
        return f"host={self.folder} port={self._port} dbname={name} user={user}"

    def url(self, name: str, user: str = "postgres") -> str:
        """Return what Lodger opens; a busy machine may take a while to start a backend."""
        return f"postgresql://{user}@/{name}?host={self.folder}&port={self._port}&connect_timeout=60"

    def _execute(self, statement: str, *names: str) -> None:
        with psycopg.connect(self.conninfo("postgres"), autocommit=True) as connection:
            connection.execute(SQL(statement).format(*(Identifier(name) for name in names)))  # type: ignore[arg-type]  # constants

    def database(
        self, *, empty: bool = False, used: bool = True, prepare: Callable[[str], object] = ledger_tables
    ) -> str:
        """Make a database and return its name.

        Args:
            empty: leave it empty.
            used: it may have statistics, counts and dead rows of another test.
            prepare: fills an empty database at a URL, once for each server: the database is a copy of that.
        """
        name = f"test_{next(self._numbers)}"
        if empty:
            prepare = no_tables
        if prepare not in self._templates:
            source = self._ready.get(prepare, f"template_{len(self._templates)}")
            if prepare not in self._ready:
                self._execute("CREATE DATABASE {}", source)
                prepare(self.url(source))
            self._templates[prepare] = Template(source, Pristine(self.conninfo(source)))
        template = self._templates[prepare]
        if used and template.spare:
            return template.spare.pop()
        # A copy of the files takes half the CPU time of writing each page to the log; before 15 it is the only way.
        self._execute("CREATE DATABASE {} TEMPLATE {}" + self._file_copy(), name, template.name)
        self._copies[name] = template
        return name

    def _file_copy(self) -> str:
        """Return the clause by which CREATE DATABASE copies files, "" before PostgreSQL 15."""
        with psycopg.connect(self.conninfo("postgres")) as connection:
            return " STRATEGY FILE_COPY" if connection.info.server_version >= 150_000 else ""

    def drop(self, name: str) -> None:
        """Restore a database for the next test, or remove it; connections left open are the leak fixture's to find."""
        template = self._copies.get(name)
        if template is not None and template.pristine.restore(self.conninfo(name)):
            template.spare.append(name)
            return
        self._copies.pop(name, None)
        self._execute("DROP DATABASE {} WITH (FORCE)", name)

    def remove(self) -> None:
        """Stop and leave nothing."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)


def _children(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


def die_with_parent() -> None:
    """Let the kernel end this process when its parent ends."""
    # The postmaster takes SIGQUIT as: end at once, with every process of yours.
    ctypes.CDLL(None).prctl(_PDEATHSIG, int(signal.SIGQUIT))


@cache
def shared() -> Server:
    """Return the session's server, started at the first call."""
    server = own()
    atexit.register(server.remove)
    return server


def own() -> Server:
    """Return a server for one test that stops or kills it; the caller removes it."""
    server = Server(Path(tempfile.mkdtemp(prefix="lodger-pg-")))
    try:
        server.start()
    except BaseException:
        server.remove()
        raise
    return server
