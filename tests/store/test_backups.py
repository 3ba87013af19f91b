"""Backups of a ledger in use, and what becomes of slots, runs, leases and messages after a restore."""

import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text
from tests.databases.fixtures import postgres
from tests.e2e.command import Said, inside
from tests.node.small_disk import fill, small
from tests.store.bench import Bench
from tests.store.mail_server import MailerBench, posted
from tests.store.virtual_clock import VirtualClock

from lodger.engine.core.settings import Settings
from lodger.engine.store.connection import backups, laws
from lodger.engine.store.drivers import addresses
from lodger.engine.sync import Engine
from lodger.sandbox.outcome import Outcome

__all__ = ["small"]

Place = Callable[[], str]


@pytest.fixture
def elsewhere(kind: str, tmp_path: Path) -> Iterator[Place]:
    """Return a new place without a ledger at each call."""
    if kind == "sqlite":
        yield lambda: f"sqlite:///{tmp_path / f'restored-{len(list(tmp_path.iterdir()))}.db'}"
        return
    server, made = postgres(), []

    def create() -> str:
        made.append(server.database(empty=True))
        return server.url(made[-1])

    yield create
    for name in made:
        server.drop(name)


def db(verb: str, *arguments: object, place: str) -> Said:
    return inside("db", verb, *map(str, arguments), "--db", place, "--json")


def open_at(place: str, clock: VirtualClock) -> Bench:
    settings = Settings(sqlite_synchronous="NORMAL", concurrent_runs=100, min_interval_s=1)
    return Bench(Engine.open(place, clock=clock, settings=settings), clock)


def test_slots_since_the_backup_are_missed_and_what_was_running_runs_again(
    bench: Bench, url: str, elsewhere: Place, tmp_path: Path
) -> None:
    bench.tenant()
    bench.schedule("every 60s", name="each", missed="all")
    bench.schedule("every 60s", name="rest", missed="skip")
    asked = bench.engine.run_in("acme", "job", 0)
    (running,) = bench.claim()
    assert running.action_id == asked.id
    file = tmp_path / "ledger.backup"
    assert db("backup", file, place=url).code == 0
    # After the backup: it ends, and three slots run.
    bench.commit(running)
    for _ in range(3):
        bench.clock.advance(60)
        bench.tick()
        bench.run()
    target = elsewhere()
    said = db("restore", file, place=target)
    assert (said.code, said.json["running"], said.json["unsent"]) == (0, 1, 0), said
    assert db("check", place=target).json["broken"] == []
    identity = "SELECT identity FROM lodger_ledger"
    again = open_at(target, bench.clock)
    with again.engine:
        assert again.scalar(identity) != bench.scalar(identity)
        again.nodes["n1"] = bench.nodes["n1"]
        assert not again.renew(), "the node of that time has lost its lease"
        del again.nodes["n1"]
        rescued = again.rescue()
        assert [settled.outcome for settled in rescued.actions] == [Outcome.WORKER_LOST]
        again.lease("n2")
        assert again.commit(running, node="n2").lost == (running,), "what it held counts no more"
        bench.clock.advance(20)
        again.tick()
        slots = {
            name: [again.seconds(action) for action in again.actions(again.engine.schedules.get("acme", name))]
            for name in ("each", "rest")
        }
        assert slots == {"each": [(60, None), (120, None), (180, None)], "rest": [(60, 180)]}
        bench.clock.advance(60)
        again.run()
        assert again.engine.actions.get("acme", asked.id).state == "done"


@pytest.mark.parametrize("drop", [False, True])
def test_a_message_with_its_receipt_in_the_backup_is_not_sent_again(
    drop: bool, url: str, elsewhere: Place, tmp_path: Path
) -> None:
    file, target = tmp_path / "ledger.backup", elsewhere()

    async def before(post: MailerBench) -> None:
        post.queue(subject="sent before")
        await post.mailer.send_due()
        post.queue(subject="sent after")
        assert db("backup", file, place=url).code == 0
        await post.mailer.send_due()
        assert len(post.box.got) == 2

    async def after(post: MailerBench) -> None:
        await post.mailer.send_due()
        sent = [content.count(b"sent after") for _to, content in post.box.got]
        assert sent == ([] if drop else [1])
        assert [row.state for row in post.rows()] == ["sent", "failed" if drop else "sent"]

    posted(url, before)
    said = db("restore", file, *(["--drop-unsent"] if drop else []), place=target)
    assert (said.json["unsent"], said.json["dropped"]) == (1, drop)
    posted(target, after)


def test_a_backup_while_the_ledger_is_written_is_one_moment_of_it(
    bench: Bench, url: str, elsewhere: Place, tmp_path: Path
) -> None:
    bench.tenant()
    for number in range(20):
        bench.schedule("every 1s", name=f"s{number}", overlap="allow")
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            bench.clock.advance(1)
            bench.tick()
            bench.run()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for number in range(3):
            file, target = tmp_path / f"{number}.backup", elsewhere()
            assert db("backup", file, place=url).code == 0
            assert db("restore", file, place=target).code == 0
            checked = db("check", place=target)
            assert (checked.code, checked.json["damages"], checked.json["broken"]) == (0, [], [])
    finally:
        over.set()
        thread.join()
    assert file.stat().st_mode & 0o077 == 0, "a backup is its owner's"


def test_nothing_is_replaced(bench: Bench, url: str, elsewhere: Place, tmp_path: Path) -> None:
    file = tmp_path / "ledger.backup"
    assert db("backup", file, place=url).code == 0
    assert db("backup", file, place=url).json["error"]["code"] == "file_exists"
    assert db("restore", file, place=url).json["error"]["code"] == "ledger_exists"
    absent = db("restore", tmp_path / "absent", place=elsewhere())
    assert (absent.code, absent.json["error"]["code"]) == (1, "backup_failed")
    empty = db("backup", tmp_path / "other", place=elsewhere())
    assert (empty.code, empty.json["error"]["code"]) == (1, "not_a_ledger")
    assert not (tmp_path / "other").exists()


def test_a_file_that_is_no_backup_of_a_ledger_on_this_kind_of_database_is_refused(
    kind: str, elsewhere: Place, tmp_path: Path
) -> None:
    file = tmp_path / "other.backup"
    file.write_bytes(b"PGDMP and more" if kind == "sqlite" else b"SQLite format 3\0 and more")
    refused = db("restore", file, place=elsewhere())
    assert (refused.code, refused.json["error"]["code"]) == (1, "backup_invalid")
    file.unlink()
    if kind == "sqlite":
        with closing(sqlite3.connect(file)) as raw:
            raw.execute("CREATE TABLE shop_order (id INTEGER)")
    else:
        driver, source = addresses.ledger_url(elsewhere())
        driver.backup(source, file)
    refused = db("restore", file, place=elsewhere())
    assert (refused.code, refused.json["error"]["code"]) == (1, "backup_invalid")
    assert "has no ledger" in refused.json["error"]["message"]


#: What breaks each law of the ledger.
BREAKS = {
    "a schedule that is armed has its revision": "UPDATE lodger_schedule_clock SET revision = 77",
    "an action is of a tenant": "UPDATE lodger_actions SET tenant_id = 'gone' WHERE state = 'ready'",
    "a running action is leased by a node": "UPDATE lodger_actions SET lease_epoch = 9 WHERE state = 'running'",
    "every attempt that ended an action has its row": "DELETE FROM lodger_attempts",
    "a slot is done at most once, replays apart": """
        INSERT INTO lodger_actions (tenant_id, id, schedule_id, origin, slot, due_at, state)
        SELECT tenant_id, '01900000-0000-7000-8000-000000000000', schedule_id, 'backfill', slot, due_at, 'done'
        FROM lodger_actions WHERE state = 'done'
    """,
    "two rows never stand for one slot": """
        UPDATE lodger_actions SET state = 'skipped', reason = 'missed', slot_to = slot + 60000000 WHERE state = 'done'
    """,
    "a share of a day is held by an unfinished action": """
        INSERT INTO lodger_lots SELECT tenant_id, id, 1, 'queries', 1, 10 FROM lodger_actions WHERE state = 'done'
    """,
    "a tenant with actions to run is in the queue": "DELETE FROM lodger_turns",
}  # fmt: skip


@pytest.mark.parametrize("law", laws.LAWS)
def test_a_broken_law_is_found(law: str, bench: Bench) -> None:
    bench.tenant(runs_per_day=100)
    bench.schedule("every 60s", overlap="allow")
    bench.clock.advance(60)
    bench.tick()
    bench.run()
    bench.clock.advance(60)
    bench.tick()
    bench.claim()
    bench.clock.advance(60)
    bench.tick()
    assert sorted(bench.states()) == ["done", "ready", "running"]
    with pytest.raises(ZeroDivisionError), bench.engine.context.database.write() as connection:  # noqa: PT012 - rolled back
        assert laws.broken(connection) == []
        connection.execute(text(BREAKS[law]))
        assert law in [found["law"] for found in laws.broken(connection)]
        raise ZeroDivisionError


def test_a_full_disk_of_the_copy_is_no_damage_of_the_ledger(
    small: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = str(tmp_path_factory.mktemp("elsewhere") / "ledger.db")
    Engine.open(place).close()
    filler = fill(small)
    refused = db("backup", small / "ledger.backup", place=place).json["error"]
    assert (refused["code"], refused["message"]) == (
        "backup_failed",
        f"{small / 'ledger.backup'}: database or disk is full",
    )
    assert list(small.iterdir()) == [filler]


def test_a_damaged_file_is_found_and_not_backed_up(tmp_path: Path) -> None:
    place = tmp_path / "ledger.db"
    with Engine.open(str(place)) as engine:
        engine.tenants.create("acme")
        for number in range(50):
            engine.scripts.put("acme", f"s{number}", f"export default () => {number}")
    with closing(sqlite3.connect(place)) as raw:
        raw.execute("PRAGMA journal_mode = DELETE")
        (page,) = raw.execute("SELECT rootpage FROM sqlite_master WHERE name = 'lodger_scripts'").fetchone()
    healthy = tmp_path / "healthy.db"
    shutil.copy(place, healthy)
    with place.open("r+b") as file:
        file.seek((page - 1) * 4096 + 200)
        file.write(b"\xa5" * 3000)
    said = db("check", place=str(place))
    assert said.code == 1
    assert said.json.get("damages") or said.json["error"]["code"] == "database_damaged"
    refused = db("backup", tmp_path / "bad.backup", place=str(place))
    assert refused.json["error"]["code"] == "database_damaged"
    assert {path.name for path in tmp_path.iterdir()} == {"ledger.db", "healthy.db"} | {
        path.name for path in tmp_path.glob("ledger.db-*")
    }
    backups.backup(str(healthy), tmp_path / "good.backup")
