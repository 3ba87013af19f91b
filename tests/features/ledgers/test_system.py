"""Several ledgers are one engine, one API and one command line."""

import asyncio
import itertools
import json
import os
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.api.running_api import SETTINGS, RunningApi, serving
from tests.databases.template import EMPTY
from tests.e2e.command import inside
from tests.features.ledgers.systems import create_schedule, ledgers, opened
from tests.store.virtual_clock import VirtualClock

from lodger.engine import Engine as AsyncEngine
from lodger.engine.client.blocking import Client
from lodger.engine.core.errors import Conflict, Explained, InputError, NotFound, Unavailable
from lodger.engine.core.ids import PLATFORM
from lodger.engine.core.ledger_file import read
from lodger.engine.core.partial_answers import HEADER, unreachable_ledgers
from lodger.engine.core.settings import Settings
from lodger.engine.features.ledgers import directory
from lodger.engine.store.actions import actions as stored_actions
from lodger.engine.store.connection import backups
from lodger.engine.sync import Engine

#: Tenants, each with its ledger.
TENANTS = {"ada": "far", "bob": "home", "cy": "far", "dan": "home", "eve": "far"}

#: With few looked at, each of them is sorted by itself.
SORTED = ("sort:due", "sort:-due", "sort:-ended", "ended_since:2020-01-01 sort:ended")


def pages_of(listed: Any, limit: int, **more: Any) -> list[Any]:
    """Return all entries, read in pages of a size."""
    found, cursor = [], None
    while True:
        page = listed(limit=limit, cursor=cursor, **more)
        assert len(page) <= limit
        found += page
        cursor = page.next
        if cursor is None:
            return found


def furnish(engine: Any, clock: VirtualClock, places: dict[str, str | None]) -> None:
    for number, (tenant_id, ledger) in enumerate(places.items()):
        clock.advance(1)
        create_schedule(engine, tenant_id, **({"ledger": ledger} if ledger else {}))
        engine.plans.put("free", {"runs_per_day": 100 + number})
        engine.tenants.edit(tenant_id, name=f"name {-number}", plan="free")
        for _ in range(number):
            clock.advance(1)
            engine.actions.run_in(tenant_id, "job", 60)
        engine.tokens.create(f"of {tenant_id}", "viewer", tenant_id=tenant_id)


def shown(engine: Any) -> dict[str, Any]:
    """What callers see without a tenant, without ids, which differ."""
    tenants, actions = engine.tenants, engine.actions
    return {
        **{f"tenants {sort} {limit}": [each.id for each in pages_of(tenants.list, limit, filter=f"sort:{sort}")]
           for sort in ("id", "-id", "name", "-created") for limit in (2, 100)},
        "activity of tenants": [(each.id, each.runs) for each in pages_of(tenants.activity, 2)],
        **{f"actions {text} {limit}": [(each.tenant_id, each.due_at) for each in pages_of(actions.list, limit, filter=text)]
           for text in ("", "sort:due", "sort:-due", "tenant:eve") for limit in (3, 100)},
        "all actions": len(actions.list(limit=None)),
        "counts": [tenants.count(), tenants.count(filter="id:a*"), actions.count(), engine.schedules.count()],
        "schedules": [(each.tenant_id, each.name) for each in pages_of(engine.schedules.list, 2)],
        "scripts": [(each.tenant_id, each.name) for each in pages_of(engine.scripts.list, 2)], "of all": engine.scripts.count(),
        "tokens": [each.name for each in pages_of(engine.tokens.list, 2)],
        "audit": [(each.verb, each.tenant_id) for each in pages_of(engine.audit.list, 3, verb="tenants.")],
        "exported": [(each.verb, each.tenant_id) for each in engine.audit.export() if each.verb.startswith("tenants")],
        "now": [getattr(actions.activity(), name) for name in ("running", "due", "done")],
        "overdue": [(each.tenant_id, each.waits_ms) for each in actions.overdue(limit=3)],
        "errors": actions.errors(), "running": actions.running(), "durations": engine.schedules.durations(),
        "plans": [(each.name, each.limits) for each in engine.plans.list()],
        "limits": [each.limits_in_effect for each in pages_of(tenants.list, 2, filter="plan:free")],
        "offered": [each.name for each in engine.scripts.offered()], "nodes": engine.nodes.list(), "locks": engine.locks.list(),
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)  # the other ledger is a file of SQLite
def test_it_shows_what_one_ledger_would_show(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, many = VirtualClock(), VirtualClock()
    single = Settings(**SETTINGS)
    with (
        Engine.open(str(tmp_path / "one.db"), clock=one, settings=single) as engine,
        opened(ledgers(tmp_path, url), many) as system,
    ):
        for each, clock, places in ((engine, one, dict.fromkeys(TENANTS)), (system, many, TENANTS)):
            each.scripts.put(PLATFORM, "shared", "export default () => 1", offered=True)
            furnish(each, clock, places)
            clock.advance(100)
        assert shown(system) == shown(engine)
        assert {each: system.tenants.place(each).ledger for each in TENANTS} == TENANTS
        monkeypatch.setattr(
            stored_actions, "MOST_LOOKED_AT", 2
        )  # a page ends before it is full, and the next one goes on
        for each, text in itertools.product(
            (engine, system), ("tenant:eve", "-tenant:bob", "state:ready sort:created", *SORTED, "nothing")
        ):
            with monkeypatch.context() as whole:
                whole.setattr(stored_actions, "MOST_LOOKED_AT", 1000)
                wanted = [one.id for one in pages_of(each.actions.list, 100, filter=text)]
            found = [one.id for one in pages_of(each.actions.list, 2, filter=text)]
            assert (sorted(found) if text in SORTED else found) == (sorted(wanted) if text in SORTED else wanted), text
        counted = engine.actions.count(filter="-tenant:bob")
        assert (counted.count, counted.complete) == (2, False)
        monkeypatch.undo()
        assert [each.tenants for each in system.ledgers.list()] == [2, 3]
        of_system, of_one = system.actions.list(), engine.actions.list()
        assert system.actions.get(None, of_system[0].id).tenant_id == engine.actions.get(None, of_one[0].id).tenant_id
        for filter_, do in (("tenant:ada", "cancel"), ("state:ready", "cancel")):
            matched = []
            for each in (engine, system):
                cursor, result = None, None
                while result is None or cursor is not None:
                    result = each.actions.bulk(None, do, filter=filter_, limit=2, cursor=cursor)
                    cursor = result.next
                matched.append((result.matched, result.done, result.refused))
            assert matched[0] == matched[1]
        assert system.actions.count(filter="state:ready").count == 0
        with pytest.raises(InputError, match="cursor"):
            system.tenants.list(cursor=system.actions.list(limit=1).next)
        token = system.tokens.list("ada")[0]
        assert system.tokens.revoke(token.prefix).revoked_at is not None
        system.tenants.delete("ada")
        with pytest.raises(NotFound, match="ada"):
            system.tenants.get("ada")
        create_schedule(system, "ada", ledger="home")
        assert system.tenants.place("ada").ledger == "home"
        with pytest.raises(Conflict, match="already exists"):
            system.tenants.create("ada", ledger="far")


def test_new_tenants_go_where_there_is_room(tmp_path: Path) -> None:
    with opened(ledgers(tmp_path, "home.db", room=999)) as system:
        for number in range(6):
            system.tenants.create(f"t{number}")
        assert [each.tenants for each in system.ledgers.list()] == [3, 3]
    (tmp_path / "ledgers.toml").write_text('home = { url = "home.db", room = 3 }\nfar = { url = "far.db", room = 0 }\n')
    with opened(Settings(**SETTINGS | {"ledgers": tmp_path / "ledgers.toml"})) as system:
        with pytest.raises(Conflict, match="no ledger has room"):
            system.tenants.create("more")
        with pytest.raises(NotFound, match="no ledger 'west'"):
            system.tenants.create("more", ledger="west")
        assert system.tenants.create("more", ledger="far").id == "more", "said by the platform"
    with Engine.open(str(tmp_path / "home.db"), settings=Settings(**SETTINGS)) as engine:
        for verb in (lambda: engine.tenants.create("x", ledger="far"), lambda: engine.tenants.move("t0", "far")):
            with pytest.raises(InputError, match="one ledger"):
                verb()
        assert engine.ledgers.list() == []


def test_a_batch_goes_to_the_ledger_of_its_tenants(tmp_path: Path) -> None:
    with opened(ledgers(tmp_path, "home.db", room=2000)) as system:
        for tenant, ledger in (("ada", "far"), ("bob", "home")):
            system.tenants.create(tenant, ledger=ledger)
        source = {"name": "job", "source": "export default () => 1"}
        made = system.batches.create(
            tenants=[{"tenant_id": "cy"}], scripts=[source | {"tenant_id": each} for each in ("ada", "cy")]
        )
        assert (made.tenants, made.scripts) == (1, 2)
        assert [each.name for each in system.scripts.list("ada")] == ["job"]
        assert system.batches.create(tenants=[{"tenant_id": "dan"}]).tenants == 1
        assert [system.tenants.place(each).ledger for each in ("cy", "dan")] == ["far", "far"], "most room is there"
        for wrong, why in (
            ({"tenants": [{"tenant_id": "ada"}]}, "refused"),
            (
                {
                    "tenants": [{"tenant_id": "eve"}],
                    "schedules": [{"tenant_id": "eve", "name": "s", "script": "none", "rules": "every 60s"}],
                },
                "refused",
            ),
            ({"scripts": [source | {"tenant_id": each} for each in ("ada", "bob")]}, "several ledgers"),
            ({"scripts": [source | {"tenant_id": PLATFORM}]}, "several ledgers"),
        ):
            with pytest.raises(InputError, match=why):
                system.batches.create(**wrong)
        with pytest.raises(NotFound):
            system.tenants.get("eve")
        assert sum(each.tenants for each in system.ledgers.list()) == len(system.tenants.list()) == 4


def test_ledgers_that_had_tenants_join(tmp_path: Path) -> None:
    for name, tenants in (("home.db", ["a", "b"]), ("far.db", ["c"])):
        with Engine.open(str(tmp_path / name), clock=VirtualClock(), settings=Settings(**SETTINGS)) as engine:
            for each in tenants:
                engine.tenants.create(each)
    with opened(ledgers(tmp_path, "home.db")) as system:
        assert [system.tenants.place(each).ledger for each in "abc"] == ["home", "home", "far"]
        with pytest.raises(Conflict, match="already exists"):
            system.tenants.create("c", ledger="home")
    with Engine.open(str(tmp_path / "other.db"), clock=VirtualClock(), settings=Settings(**SETTINGS)) as engine:
        engine.tenants.create("a")
    with (tmp_path / "ledgers.toml").open("a") as file:
        file.write('other = "other.db"\n')
    with opened(Settings(**SETTINGS | {"ledgers": tmp_path / "ledgers.toml"})) as system:
        assert system.tenants.get("a").id == "a"
        assert "lives in the ledger home, too" in str(system.ledgers.list()[2].problem)


def test_the_api_is_one(url: str, tmp_path: Path) -> None:
    clock = VirtualClock()
    settings = ledgers(tmp_path, url)
    with (
        opened(settings, clock) as system,
        serving(system) as server,
        httpx2.Client(timeout=50, trust_env=False) as http,
    ):
        lodge = RunningApi(system, server.api, server.url, clock, http)
        furnish(system, clock, TENANTS)
        keyed = {"idempotency-key": "k"}
        made = [lodge.ask("POST", "/tenants", {"tenant_id": "new", "ledger": "far"}, headers=keyed) for _ in range(2)]
        assert [each.status_code for each in made] == [201, 201]
        assert made[1].headers["idempotent-replayed"] == "true"
        assert lodge.ask("GET", "/tenants/new/ledger").json()["ledger"] == "far"
        # Tokens and sessions of tenants of both ledgers, idempotency in the tenant's own.
        for tenant in ("ada", "bob"):
            runs = [
                lodge.ask(
                    "POST",
                    f"/tenants/{tenant}/run-in",
                    {"script": "job", "delay": 60},
                    role="editor",
                    tenant=tenant,
                    headers=keyed,
                )
                for _ in range(2)
            ]
            assert runs[0].json()["id"] == runs[1].json()["id"], runs[0].text
            assert lodge.ask("GET", "/tenants/cy", role="viewer", tenant=tenant).status_code == 404
            begun = http.post(f"{server.url}/api/v1/session", json={"token": lodge.token("editor", tenant)})
            assert begun.status_code == 201, begun.text
            cookie = {"cookie": begun.headers["set-cookie"].partition(";")[0], "x-csrf-token": begun.json()["csrf"]}
            asked = http.get(f"{server.url}/api/v1/tenants/{tenant}/actions", headers=cookie)
            assert asked.status_code == 200
            run = {"script": "job", "delay": 60}
            assert (
                http.post(f"{server.url}/api/v1/tenants/{tenant}/run-in", json=run, headers=cookie).status_code == 201
            )
            assert http.delete(f"{server.url}/api/v1/session", headers=cookie).status_code == 204
            assert http.get(f"{server.url}/api/v1/me", headers=cookie).status_code == 401
            address = system.urls.create(tenant, "hook", script="job").path
            assert http.post(server.url + address, json={}).status_code == 202
        assert lodge.ask("GET", f"/actions/{system.actions.list('ada')[0].id}").json()["tenant_id"] == "ada"
        assert http.post(f"{server.url}/api/v1/in/{'x' * 43}").status_code == 404
        with Client(server.url, lodge.token("admin")) as client:
            assert {each.id for each in client.tenants.list()} == {*TENANTS, "new"}
        page = http.get(f"{server.url}/tenants", headers=lodge.bearer())
        exported = lodge.ask("GET", "/audit/export").text.splitlines()
        assert {"tenants.create"} < {json.loads(each)["verb"] for each in exported}
        assert page.status_code in (200, 404)  # without a dashboard


def test_an_unreachable_ledger_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    settings = ledgers(tmp_path, "home.db")
    with opened(settings) as system:
        furnish(system, VirtualClock(), TENANTS)
        key = system.tokens.create("admin", "admin").text
        of_ada, of_bob = (system.tokens.create(each, "viewer", tenant_id=each).text for each in ("ada", "bob"))
    (tmp_path / "far.db").rename(tmp_path / "away.db")
    with opened(settings) as system, serving(system) as server:
        with unreachable_ledgers() as missing:
            assert [each.id for each in system.tenants.list()] == ["bob", "dan"]
        assert missing == {"far"}
        assert system.tenants.get("bob").state == "active"
        for refused in (
            lambda: system.tenants.get("ada"),
            lambda: system.actions.get(None, system.context.ids.new()),
            lambda: list(system.audit.export()),
            lambda: system.actions.bulk(None, "cancel", filter=""),
            lambda: system.scripts.put(PLATFORM, "shared", "export default () => 1", offered=True),
            lambda: system.tenants.move("bob", "far"),
        ):
            with pytest.raises(Unavailable, match="'far' cannot be reached"):
                refused()
        assert [each.problem is None for each in system.ledgers.list()] == [True, False]
        assert system.tenants.create("fay").id == "fay", "there is room in the other one"
        with Client(server.url, key) as client:
            assert client.tenants.create("gil").id == "gil", "a key of idempotency is looked up where it can be"
            client.tenants.delete("gil")
            with unreachable_ledgers() as missing:
                assert [each.id for each in client.tenants.list()] == ["bob", "dan", "fay"]
            assert missing == {"far"}
            with pytest.raises(Unavailable, match="'far' cannot be reached"):
                client.schedules.list("ada")
        answers = {
            name: httpx2.get(
                f"{server.url}/api/v1/{path}", headers={"authorization": f"Bearer {token}"}, trust_env=False
            )
            for name, path, token in (("ada", "me", of_ada), ("bob", "tenants/bob", of_bob), ("all", "tenants", key))
        }
        assert {name: answer.status_code for name, answer in answers.items()} == {"ada": 503, "bob": 200, "all": 200}
        assert answers["all"].headers[HEADER] == "far"
        assert server.api.engine.unready() == []


async def test_the_asynchronous_engine_follows_a_tenant_of_another_ledger(tmp_path: Path) -> None:
    settings = ledgers(tmp_path, "home.db")

    async with AsyncEngine.open_all(settings) as engine:
        await engine.tenants.create("ada", ledger="far")
        await engine.scripts.put("ada", "job", "export default () => 1")
        async with asyncio.timeout(60), aclosing(engine.live("ada")) as changes:
            begun = asyncio.ensure_future(anext(changes))
            made: list[str] = []
            while not begun.done():  # nothing says from when on the stream sees what is made
                made.append((await engine.actions.run_in("ada", "job", 3600)).id)
                await asyncio.wait({begun}, timeout=0.5)
            made, seen = made, begun.result().id
    assert seen in made


def test_the_command_line_names_the_ledgers(tmp_path: Path) -> None:
    file = str(ledgers(tmp_path, "home.db").ledgers)

    def said(*command: str) -> Any:
        answer = inside(*command, "--json", LODGER_LEDGERS=file)
        assert answer.code == 0, answer
        return answer.json

    said("tenant", "create", "ada", "--ledger", "far")
    said("tenant", "create", "bob", "--ledger", "home")
    assert [each["name"] for each in said("ledger", "list")["ledgers"]] == ["home", "far"]
    assert [each["id"] for each in said("tenant", "list", "--db", "far")["tenants"]] == ["ada"]
    assert said("tenant", "move", "ada", "home")["ledger"] == "home"
    assert len(said("tenant", "list")["tenants"]) == 2
    checks = {each["name"]: each["state"] for each in said("doctor", "--probe")["checks"]}
    assert (checks["ledger home"], checks["ledger far"]) == ("ok", "ok")
    (tmp_path / "far.db").unlink()
    with Engine.open_all(Settings(ledgers=Path(file))) as system:
        system.tenants.create("eve", ledger="far")
    (tmp_path / "far.db").unlink()
    left = inside("tenant", "list", LODGER_LEDGERS=file)
    assert left.code == 0
    assert "cannot be reached, and their part is missing: far" in left.err
    # Not as a path: a misspelt name would become a new, empty ledger.
    for command in (("tenant", "create", "eve"), ("up", "--role", "node"), ("db", "check")):
        wrong = inside(*command, "--db", "farr", "--json", LODGER_LEDGERS=file)
        assert (wrong.code, wrong.json["error"]["code"]) == (1, "ledger_unknown")
        assert "lodger ledger list shows them" in wrong.json["error"]["fix"]
    assert inside("tenant", "create", "eve", "--db", str(tmp_path / "farr"), LODGER_LEDGERS=file).code == 0


def test_a_file_without_a_ledger_that_has_tenants_says_so(tmp_path: Path) -> None:
    settings = ledgers(tmp_path, "home.db")
    with opened(settings) as system:
        for tenant, ledger in (("ada", "far"), ("bob", "home")):
            create_schedule(system, tenant, ledger=ledger)
        action = system.actions.run_in("ada", "job", 60).id
    file, lines = tmp_path / "ledgers.toml", (tmp_path / "ledgers.toml").read_text().splitlines(keepends=True)
    file.write_text(lines[0])
    with opened(settings) as system:
        with unreachable_ledgers() as missing:
            assert [each.id for each in system.tenants.list()] == ["bob"]
        assert missing == {"far"}
        assert "is not in the file" in {each.name: each.problem for each in system.ledgers.list()}["far"]
        refused: tuple[Callable[[], Any], ...] = (
            partial(system.schedules.list, "ada"),
            partial(system.tenants.create, "ada"),
            partial(system.tenants.move, "bob", "far"),
            partial(next, system.audit.export()),
            partial(system.actions.bulk, None, "cancel", filter=""),
            partial(system.secrets.rotate, drop=True),
            partial(system.actions.get, None, system.context.ids.new()),
        )
        for verb in refused:
            with pytest.raises((Unavailable, NotFound), match="ledger 'far'"):
                verb()
    file.write_text("".join(lines))
    with opened(settings) as system:
        assert [each.id for each in system.tenants.list()] == ["ada", "bob"]
        assert system.actions.get(None, action).tenant_id == "ada"
        assert [each.problem for each in system.ledgers.list()] == [None, None]


def test_a_tenant_that_another_process_enters_is_not_created_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ledgers(tmp_path, "home.db")
    with opened(settings) as system, opened(settings) as other:
        add = directory.add

        def late(connection: Any, tenant_ids: Any, ledger: str) -> list[str]:
            monkeypatch.setattr(directory, "add", add)
            return add(connection, ["cy"], "far") and add(connection, tenant_ids, ledger)

        monkeypatch.setattr(directory, "add", late)
        monkeypatch.setattr(system, "_roomiest", lambda: "home")
        with pytest.raises(InputError, match="several ledgers"):
            system.batches.create(tenants=[{"tenant_id": each} for each in ("cy", "dan")])
        assert other.tenants.list() == []
        assert other.tenants.create("cy", ledger="far").id == "cy", "the other one goes on"
        assert other.tenants.create("dan", ledger="far").id == "dan", "that of this batch was forgotten"
        assert [each.tenants for each in system.ledgers.list()] == [0, 2]


@contextmanager
def away(place: Path) -> Iterator[None]:
    """For the block, the file of a ledger is not there."""
    EMPTY.add(str(place))  # what is opened there is none
    place.rename(place.with_suffix(".away"))
    yield
    place.with_suffix(".away").rename(place)


def test_operators_tokens_outlive_the_first_ledger_and_a_revoked_one_stays_revoked(tmp_path: Path) -> None:
    settings, clock = ledgers(tmp_path, "home.db"), VirtualClock()
    home, far = tmp_path / "home.db", tmp_path / "far.db"

    def heard(texts: dict[str, str], asked: Callable[[Client], None] = lambda _client: None) -> list[str]:
        """The names of the tokens that an API accepts that is started while the first ledger is away."""
        with away(home), opened(settings, clock) as system, serving(system) as server:
            with Client(server.url, texts["kept"]) as client:
                asked(client)
            found = []
            for name, text in texts.items():
                head = {"authorization": f"Bearer {text}"}
                answer = httpx2.get(f"{server.url}/api/v1/tenants", headers=head, trust_env=False)
                assert answer.status_code in (200, 401, 503)
                found += [name] if answer.status_code == 200 else []
            return found

    def works(client: Client) -> None:
        assert client.schedules.list("bob") == []
        assert [each.problem is None for each in client.ledgers.list()] == [False, True]
        for refused in (
            partial(client.tenants.create, "eve", ledger="far"),
            partial(client.tokens.revoke, prefix["gone"]),
            partial(client.tokens.create, "new", "admin"),
            partial(client.tenants.delete, "bob"),
        ):
            with pytest.raises(Unavailable, match="'home' cannot be reached"):
                refused()

    def counts() -> bool:
        """Whether the copy of the token that is kept counts while the first ledger is away."""
        with away(home), opened(settings, clock) as system:
            return bool(system.knows(system.member("far").opened(), copied=True))

    with opened(settings, clock) as system:
        system.tenants.create("bob", ledger="far")
        made = {each: system.tokens.create(each, "admin") for each in ("kept", "gone", "late")}
        assert len(system.tokens.list()) == 3, "copies are not listed"
    texts, prefix = {n: t.text for n, t in made.items()}, {n: t.token.prefix for n, t in made.items()}
    assert heard(texts, works) == ["kept", "gone", "late"]
    backups.backup(str(far), tmp_path / "backup")
    with opened(settings, clock) as system:
        before = system.home.run(lambda engine: _change(engine, directory.operators_at))
        system.tokens.revoke(prefix["late"])
        # Another process has read the tokens before, and copies them now.
        system.member("far").run(lambda engine: _change(engine, directory.copy_operators, engine.context, *before))
    with away(far), opened(settings, clock) as system:
        for _ in range(2):
            with pytest.raises(Unavailable, match="revoked, but the ledgers far cannot be reached"):
                system.tokens.revoke(prefix["gone"])
    with opened(settings, clock) as system:
        assert system.tokens.revoke(prefix["gone"]).revoked_at is not None
    assert heard(texts) == ["kept"]
    with Engine.open(str(far), clock=clock, settings=Settings(**SETTINGS)) as alone, serving(alone) as server:
        with pytest.raises(Explained, match="token"), Client(server.url, texts["kept"]) as client:
            client.tenants.list()
        assert not alone.tokens.any_administrator()
    assert counts()
    clock.advance(25 * 3600)
    assert not counts(), "the copy is too old"
    clock.advance(-25 * 3600)
    for each in tmp_path.glob("far.db*"):
        each.unlink()
    backups.restore(str(far), tmp_path / "backup", drop_unsent=False)
    assert not counts(), "tokens of a backup may have been revoked since"


def _change(engine: Engine, change: Callable[..., Any], *args: Any) -> Any:
    with engine.context.database.write() as connection:
        return change(connection, *(args or (engine.context.clock.now_us(),)))


def test_a_ledger_that_is_not_the_one_of_its_name_is_refused(tmp_path: Path) -> None:
    settings, file = ledgers(tmp_path, "home.db"), tmp_path / "ledgers.toml"
    (tmp_path / "else").mkdir()
    other = ledgers(tmp_path / "else", "home.db")
    for each, tenants in ((settings, {"ada": "far", "bob": "home"}), (other, {"eve": "far"})):
        with opened(each) as system:
            for tenant, ledger in tenants.items():
                create_schedule(system, tenant, ledger=ledger)
    backups.backup(str(tmp_path / "home.db"), tmp_path / "copy.db")
    file.write_text('home = "home.db"\nfar = "far.db"\nwest = "west.db"\n')
    with opened(settings) as system:
        system.tenants.create("cy", ledger="west")
    EMPTY.add(str(tmp_path / "none.db"))
    for new in ("new.db", "empty.db"):
        Engine.open(str(tmp_path / new)).close()
    for (home, far, west), problems in (
        (("home.db", "west.db", "far.db"), (None, "that of 'west'", "that of 'far'")),
        (("home.db", "far.db", "copy.db"), (None, None, "that of 'home'")),
        (("far.db", "home.db", "west.db"), ("that of 'far'", "that of 'home'", None)),
        (("none.db", "far.db", "west.db"), ("no ledger", None, None)),
        (("home.db", "else/far.db", "west.db"), (None, "another system", None)),
        (("home.db", "far.db", "new.db"), (None, None, "a new one")),
        (("home.db", "postgresql://localhost:no-port/x", "west.db"), (None, "database_url", None)),
        (("empty.db", "far.db", "west.db"), ("a new one", None, None)),
        (("else/home.db", "far.db", "west.db"), (None, "another system", "another system")),
    ):
        file.write_text(f'home = "{home}"\nfar = "{far}"\nwest = "{west}"\n')
        with opened(settings) as system:
            found = [each.problem for each in system.ledgers.list()]
            for problem, wanted in zip(found, problems, strict=True):
                assert (problem is None) == (wanted is None), (home, far, found)
                assert (wanted or "") in (problem or "")
            with unreachable_ledgers() as missing:
                system.tenants.list()
            assert missing == {name for name, wanted in zip(("home", "far", "west"), problems, strict=True) if wanted}
        assert not (tmp_path / "none.db").exists()
    file.write_text('home = "home.db"\nfar = "west.db"\n')
    for command in (
        ("up", "--role", "node"),
        ("tenant", "list"),
        ("db", "check"),
        ("db", "upgrade"),
        ("db", "backup", "b"),
    ):
        wrong = inside(*command, "--db", "far", "--json", LODGER_LEDGERS=str(file))
        assert (wrong.code, wrong.json["error"]["code"]) == (1, "ledger_other"), (command, wrong)
    file.write_text('far = "far.db"\nhome = "home.db"\n')
    with pytest.raises(Unavailable, match="begins with the ledger 'far'"):
        Engine.open_all(settings)


def test_commands_about_ledgers_name_each_and_go_on_after_one_that_fails(tmp_path: Path) -> None:
    file = str(ledgers(tmp_path, "home.db").ledgers)

    def said(*command: str) -> Any:
        return inside(*command, "--json", LODGER_LEDGERS=file)

    assert said("tenant", "create", "ada", "--ledger", "far").code == 0
    for command in (("db", "check"), ("db", "upgrade"), ("db", "upgrade", "--dry-run"), ("db", "repair-clock")):
        answer = said(*command)
        assert (answer.code, {each["ledger"] for each in answer.json["ledgers"]}) == (0, {"home", "far"}), command
        assert "ledger" not in said(*command, "--db", "far").json
    for command in (("db", "backup", "b"), ("db", "restore", "b"), ("db", "upgrade", "--backup", "b")):
        answer = said(*command)
        assert (answer.code, answer.json["error"]["code"]) == (2, "ledgers_several"), command
    backup = str(tmp_path / "home.backup")
    assert said("db", "backup", backup, "--db", "home").code == 0
    for each in tmp_path.glob("far.db*"):
        each.unlink()
    answer = said("db", "restore", backup, "--db", "far")
    assert (answer.code, answer.json["error"]["code"]) == (1, "ledger_other")
    assert "restore a backup of 'far'" in answer.json["error"]["fix"], "it is too late to correct the URL"
    (tmp_path / "far.db").write_text("no database")
    answer = said("db", "check")
    assert (answer.code, ["error" in each for each in answer.json["ledgers"]]) == (1, [False, True])
    report = said("doctor", "--probe").json
    states = {each["name"]: each["state"] for each in report["checks"]}
    assert (states["home: schema"], states["far: ledger"], states["ledger home"], states["ledger far"]) == (
        "ok", "fail", "ok", "fail",
    )  # fmt: skip


def test_a_tenant_that_another_process_has_moved_is_found_while_the_first_ledger_is_down(tmp_path: Path) -> None:
    settings = ledgers(tmp_path, "home.db")
    with (tmp_path / "ledgers.toml").open("a") as file:
        file.write('west = "west.db"\n')
    with opened(settings) as system, opened(settings) as other:
        create_schedule(system, "bob", ledger="far")
        assert system.schedules.list("bob")
        other.tenants.move("bob", "west")
        with away(tmp_path / "home.db"):
            assert [each.name for each in system.schedules.list("bob")] == ["s"]


def test_a_copy_that_no_name_tells_from_its_ledger_is_refused(tmp_path: Path) -> None:
    Engine.open(str(tmp_path / "home.db")).close()
    backups.backup(str(tmp_path / "home.db"), tmp_path / "far.db")
    with opened(ledgers(tmp_path, "home.db")) as system:
        assert "copy of that of 'home'" in str(system.ledgers.list()[1].problem)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a = " + "[" * 3000,
        "#" * 300_000,
        "a = 3",
        'a = [["url", "x"]]',
        'a = "x"\nb = "sqlite:///./x"',
        'a = "x"\nb = "y"',
        'a = "x\\u0000"',
        "a = 1",
        "a = { room = 1 }",
        'a = "x"\nb = "x"',
        '"1" = "x"',
        'a = { url = "x", room = -1 }',
        "a =",
        'a = { url = "x", n = 1 }',
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "file").write_text(text)
    (tmp_path / "y").symlink_to("x")
    with pytest.raises(Explained, match="not a file of ledgers"):
        read(tmp_path / "file")


def test_a_pipe_is_no_file_of_ledgers(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError) as refused:
        read(tmp_path / "pipe")
    assert (refused.value.code, refused.value.why) == ("ledgers_invalid", "it is not a regular file")


def test_what_is_not_of_the_system_leaves_nothing(tmp_path: Path) -> None:
    settings = ledgers(tmp_path, "home.db")
    with opened(settings) as system:
        for each in TENANTS:
            system.tenants.create(each)
        with pytest.raises(InputError):
            system.tenants.create("no/name", ledger="far")
        assert sum(each.tenants for each in system.ledgers.list()) == len(TENANTS)
        cursor = system.tenants.list(limit=2).next
        for listed in (system.member("home").opened().tenants.list, system.schedules.list):
            with pytest.raises(InputError, match="does not belong to this list"):
                listed(limit=2, cursor=cursor)
        single = system.member("home").opened().tenants.list(limit=1).next
        with pytest.raises(InputError, match="does not belong to this list"):
            system.tenants.list(limit=1, cursor=single)
