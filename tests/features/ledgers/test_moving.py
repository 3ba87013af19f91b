"""A tenant moves between ledgers: with everything of its own, or not at all, wherever its mover is killed."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, insert, select, text
from tests.features.archive.archives import contents, furnish
from tests.features.ledgers.systems import create_schedule, ledgers, opened
from tests.store.bench import Bench
from tests.store.virtual_clock import VirtualClock

from lodger.engine.core.clock import from_us
from lodger.engine.core.errors import Conflict, InputError, NotFound, Unavailable
from lodger.engine.core.ids import PLATFORM
from lodger.engine.core.settings import Settings
from lodger.engine.data.changes import feed
from lodger.engine.features.ledgers import directory
from lodger.engine.store.connection.database import Database
from lodger.engine.store.schema.feeds import changes, cursors
from lodger.engine.sync import Engine

KILLED = 9


def furnish_tenant(system: Any, clock: VirtualClock) -> Bench:
    """Furnish the tenant with something of every kind, also what archives leave out."""
    system.scripts.put(PLATFORM, "other", "export default () => 0", offered=True)
    # The platform's script has another id in each ledger, and this one is in both.
    system.scripts.put(PLATFORM, "report", "export default () => 1", offered=True)
    bench = Bench(system.at("acme"), clock)
    furnish(bench)
    assert system.tenants.place("acme").ledger == "home", "it was created there without the system"
    system.scripts.put("acme", "job", "export default () => 2", shadow=5)
    system.urls.create("acme", "hook", script="two")
    system.tokens.create("key", "viewer", tenant_id="acme")
    with bench.engine.context.database.write() as connection:
        feed.record(connection, "collection:carts", "acme", [(str(number), "insert") for number in range(5)], clock.us)
        rows = connection.execute(select(changes.c.xid, changes.c.seq).order_by(changes.c.seq)).all()
        place = {"tenant_id": "acme", "consumer": "c", "source": "collection:carts", "updated_us": clock.us}
        connection.execute(insert(cursors).values(**place, xid=rows[2].xid, seq=rows[2].seq))
    return bench


def unread(engine: Engine) -> list[str]:
    """Return the keys of the changes that the reader has not read."""
    with engine.context.database.read() as connection:
        at = connection.execute(select(cursors.c.xid, cursors.c.seq)).one()
        return [each.key for each in feed.read(connection, "collection:carts", "acme", feed.Position(*at), 10).changes]


def states(system: Any) -> dict[str, str | None]:
    """Return the tenant's state in each ledger."""
    found: dict[str, str | None] = {}
    for name in ("home", "far"):
        found[name] = None
        with suppress(NotFound):
            found[name] = system.member(name).opened().tenants.get("acme").state
    return found


def move_and_die(settings: Settings, clock: VirtualClock, commits: int) -> bool:
    """Move the tenant in a child process that commits so often and dies before it commits again; return whether it died."""
    left = iter(range(commits))
    write = Database.write

    @contextmanager
    def dying(database: Database, *more: Any) -> Iterator[Connection]:
        with write(database, *more) as connection:
            yield connection
            if next(left, None) is None:
                os._exit(KILLED)

    child = os.fork()
    if child == 0:
        code = 1
        with suppress(BaseException), opened(settings, clock) as system:
            system.ledgers.list()  # opens both
            Database.write = dying  # type: ignore[method-assign]  # in the child alone
            system.tenants.move("acme", "far")
            code = 0
        os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, KILLED)
    return code == KILLED


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.mark.parametrize(
    "kind", ["sqlite"], indirect=True
)  # servers: tests/features/ledgers/test_moves_of_busy_tenants.py
def test_nothing_is_lost_wherever_the_mover_is_killed(
    url: str, place: str, tmp_path: Path, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ledgers(tmp_path, url, far=place)
    with opened(settings, clock) as system:
        here = furnish_tenant(system, clock)
        old, new = (system.member(name).opened() for name in ("home", "far"))
        before, others = contents(old), unread(old)
        before_ids = {each.id for each in old.actions.list("acme", limit=None)}
        assert others == ["3", "4"]
        seen = set()
        for commits in range(20):
            if not move_and_die(settings, clock, commits):
                break
            clock.advance(60)
            now = states(system)
            seen.add(tuple(now.values()))
            active = [name for name, state in now.items() if state == "active"]
            assert active in ([], [system.tenants.place("acme").ledger]), "it runs where the directory says, or nowhere"
            if None not in now.values():
                with monkeypatch.context() as ended_meanwhile:
                    ended_meanwhile.setattr(directory, "moving", lambda _connection: [])
                    assert [each.id for each in system.tenants.list()] == ["acme"], "it is listed once"
                    first_page = system.tenants.list(limit=1)
                    assert first_page.next is None or not system.tenants.list(limit=1, cursor=first_page.next)
            if "moving" in now.values():
                with pytest.raises((Conflict, NotFound)):
                    old.tenants.edit("acme", name="a change that would be lost")
                assert here.claim() == []
                if now["far"] != "active":
                    with pytest.raises(Conflict, match="moves to another ledger"):
                        system.tenants.resume("acme")
                    assert [each.moving for each in system.ledgers.list()] == [("acme",), ("acme",)]
            if commits % 2:  # it goes on, and comes back
                assert system.tenants.move("acme", "far").source is None
                assert states(system) == {"home": None, "far": "active"}
            assert system.tenants.move("acme", "home").target is None
            assert states(system) == {"home": "active", "far": None}
        assert {("active", None), ("moving", None), ("moving", "moving"), ("moving", "active")} <= seen
        assert states(system) == {"home": None, "far": "active"}
        assert (system.tenants.place("acme").ledger, system.tenants.place("acme").source) == ("far", None)
        after = contents(new)
        for name in before:
            if name not in {"lodger_schedule_clock", "lodger_actions", "lodger_audit", "lodger_scripts"}:
                assert len(after[name]) == len(before[name]), name
        assert before_ids <= {each.id for each in new.actions.list("acme", limit=None)}
        rows = [each for each in new.actions.list("acme", "failing", limit=None) if each.origin == "slot"]
        assert {each.reason for each in rows} >= {"tenant_suspended"}
        slots: list[datetime] = []
        for row in rows:
            slot = row.slot
            while slot is not None and slot <= (row.slot_to or row.slot):
                slots.append(slot)
                slot += timedelta(seconds=70)
        first = min(slots)
        assert sorted(slots) == [first + number * timedelta(seconds=70) for number in range(len(slots))], (
            "each slot once"
        )
        assert max(slots) > from_us(clock.us) - timedelta(seconds=140)
        assert [each.name for each in system.urls.list("acme")] == ["hook"]
        assert [each.name for each in system.tokens.list("acme")] == ["key"]
        assert system.scripts.shadow("acme", "job").wanted == 5
        assert unread(new) == others
        assert contents(old) == {name: set() for name in before}
        there = Bench(new, clock)
        assert there.claim(), "what waited runs there"
        clock.advance(100)
        assert there.tick()
        assert here.tick() == []
        # And back, by the same verb.
        assert system.tenants.move("acme", "home").ledger == "home"
        assert unread(old) == others
        assert {each.verb for each in system.audit.list(target="acme")} >= {"tenants.move"}


def test_a_suspended_tenant_stays_so_and_what_cannot_move_is_refused(tmp_path: Path, clock: VirtualClock) -> None:
    settings = ledgers(tmp_path, "home.db")
    with opened(settings, clock) as system:
        furnish_tenant(system, clock)
        system.tenants.move("acme", "far")
        system.tenants.suspend("acme")
        assert system.tenants.move("acme", "home").resumes is False
        assert system.tenants.get("acme").state == "suspended", "as it was"
        with pytest.raises(Conflict):
            system.tenants.move(PLATFORM, "far")
        for tenant, ledger in (("acme", "west"), ("nobody", "far")):
            with pytest.raises(NotFound):
                system.tenants.move(tenant, ledger)
        with Engine.open(str(tmp_path / "far.db"), settings=settings) as far:
            far.tenants.create("acme")
        with pytest.raises(Conflict, match="already exists"):
            system.tenants.move("acme", "far")
        assert states(system)["home"] == "suspended"


def test_a_ledger_that_cannot_take_a_tenant_leaves_it_as_it_is(tmp_path: Path, clock: VirtualClock) -> None:
    settings = ledgers(tmp_path, "home.db")
    with opened(settings, clock) as system:
        create_schedule(system, "acme", ledger="home")
        create_schedule(system, "there", ledger="far")
        version = text("UPDATE lodger_version SET version_num = '9999'")
        with system.member("far").opened().context.database.write() as connection:
            connection.execute(version)
        with pytest.raises(InputError, match=r"'far' has schema revision '9999', 'home' has '0001'"):
            system.tenants.move("acme", "far")
        assert (system.tenants.get("acme").state, system.tenants.place("acme").target) == ("active", None)
    (tmp_path / "far.db").rename(tmp_path / "away.db")
    with opened(settings, clock) as system:
        with pytest.raises(Unavailable, match="'far' cannot be reached"):
            system.tenants.move("acme", "far")
        assert (system.tenants.get("acme").state, system.tenants.place("acme").target) == ("active", None)
