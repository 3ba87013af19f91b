"""A base backup and archived WAL: the primary dies at work, and its ledger is restored to a moment before that (docs/how-to/backup.md)."""

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from email import message_from_bytes
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.chaos import engine_process, processes
from tests.chaos.processes import Start, until
from tests.chaos.standby import ask, free_ports
from tests.databases.fixtures import absent
from tests.databases.server import Server
from tests.e2e.command import inside
from tests.store.mail_server import MailerBench, posted

from lodger.engine.sync import Engine

start = processes.start
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(absent() is not None, reason=f"NOT TESTED on PostgreSQL: {absent()}"),
]


class Archived:
    """A primary that archives its WAL, and what is restored from a base backup and that archive, at the same address."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._port = free_ports()[0]
        self.primary = self._made(None)
        self._archive = self.primary.folder / "archive"
        self._archive.mkdir()
        owner = self.primary.folder.stat()
        os.chown(self._archive, owner.st_uid, owner.st_gid)
        self.primary.settings |= {"archive_mode": "on", "archive_command": f"cp %p {self._archive}/%f"}
        self.primary.start()
        self.name = self.primary.database()
        self.url = (
            f"postgresql://postgres@127.0.0.1:{self._port}/{self.name}?target_session_attrs=read-write&sslmode=disable"
        )

    def _made(self, of: Server | None) -> Server:
        made = Server(Path(tempfile.mkdtemp(prefix="lodger-pg-")), self._port, of)
        self._stack.callback(made.remove)
        made.settings |= {"synchronous_commit": "on", "wal_level": "replica"}
        return made

    def back_up(self) -> Server:
        """Take a base backup."""
        return self._made(self.primary)

    def lose(self) -> None:
        """Kill the primary as a loss of power does, once the WAL until now is archived."""
        segment = ask(self.primary, "SELECT pg_walfile_name(pg_switch_wal())")[0][0]
        until(lambda: (self._archive / str(segment)).exists(), 30)
        self.primary.slay()

    def restore(self, copy: Server, moment: str) -> None:
        """Recover a base backup to a moment, and open it for writing."""
        (copy.folder / "data" / "standby.signal").rename(copy.folder / "data" / "recovery.signal")
        copy.settings |= {
            "restore_command": f"cp {self._archive}/%f %p",
            "recovery_target_time": moment,
            "recovery_target_action": "promote",
        }
        copy.start()
        until(lambda: ask(copy, "SELECT pg_is_in_recovery()") == [(False,)], 30)


@pytest.fixture
def archived() -> Iterator[Archived]:
    with ExitStack() as stack:
        yield Archived(stack)


@pytest.fixture
def url(archived: Archived) -> str:
    return archived.url


def rows(url: str, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(statement).fetchall()  # type: ignore[call-overload, no-any-return]  # a constant


def done_after(url: str, us: int) -> bool:
    """Whether a slot after this instant is done; not while the server is down."""
    try:
        return rows(url, f"SELECT count(*) > 0 FROM lodger_actions WHERE state = 'done' AND slot > {us}") == [(True,)]
    except psycopg.OperationalError:
        return False


def now_us(server: Server) -> int:
    return int(ask(server, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")[0][0])


def test_a_ledger_restored_to_a_point_in_time_goes_on_from_there(archived: Archived, url: str, start: Start) -> None:
    primary = archived.primary
    with Engine.open(url, settings=engine_process.SETTINGS) as engine:
        processes.furnish(engine)
        for name, missed in (("each", "all"), ("rest", "skip")):
            engine.schedules.create("acme", name, script="job", rules="every 1s", missed=missed, overlap="allow")
        schedules = {engine.schedules.get("acme", name).id: name for name in ("each", "rest")}
    node = start("one", "punctual")
    until(lambda: done_after(url, 0), 60)
    copy = archived.back_up()
    backed_up = now_us(primary)
    until(lambda: done_after(url, backed_up), 60)
    moments: list[Any] = []

    async def before(post: MailerBench) -> None:
        post.queue(subject="with a receipt")
        await post.mailer.send_due()
        post.queue(subject="without")
        moments.extend((ask(primary, "SELECT clock_timestamp()")[0][0], now_us(primary)))
        await post.mailer.send_due()
        moments.append(post.box.got[1])

    posted(url, before)
    moment, target, sent = moments
    until(lambda: done_after(url, target + 2_000_000), 60)
    epochs = rows(url, "SELECT max(epoch) FROM lodger_nodes")
    archived.lose()
    archived.restore(copy, str(moment))
    restored = now_us(copy)
    # The one that was not stopped finds out, says how many commits are missing, and begins anew.
    kind, lost = node.stdout.readline().split()
    assert kind == "ledger_replaced"
    assert int(lost) >= 2
    until(lambda: done_after(url, restored + 1_000_000), 60)
    until(lambda: rows(url, "SELECT max(epoch) FROM lodger_nodes") > epochs, 60)
    node.send_signal(signal.SIGTERM)
    assert node.wait(60) == 0

    for schedule, name in schedules.items():
        found = rows(url, f"""
            SELECT slot, coalesce(slot_to, slot), state, reason FROM lodger_actions WHERE schedule_id = '{schedule}' ORDER BY slot
        """)  # fmt: skip
        assert {after[0] - before[1] for before, after in pairwise(found)} == {1_000_000}, (
            "each slot has one row, or is in a gap"
        )
        # A busy machine may also miss slots before.
        missed = [row for row in found if row[2:] == ("skipped", "missed") and row[1] > target]
        assert bool(missed) is (name == "rest"), found
        assert {row[2] for row in found if row[1] < restored} <= {"done", "skipped"}
    assert rows(url, "SELECT id FROM effects_seen GROUP BY id, step HAVING count(*) > 1") == []

    async def after(post: MailerBench) -> None:
        await post.mailer.send_due()
        ((_to, content),) = post.box.got
        assert message_from_bytes(content)["Message-ID"] == message_from_bytes(sent[1])["Message-ID"]

    posted(url, after)
    checked = inside("db", "check", "--db", url, "--json")
    assert (checked.json["verdict"], checked.json["damages"], checked.json["broken"]) == ("current", [], [])
