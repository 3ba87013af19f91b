"""Live streams: what becomes of actions while it happens, for one's own tenant, bounded, ended with the token or a slow reader."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import Connection, update
from tests.api.running_api import NO_CERTIFICATES, RunningApi, running_api
from tests.api.workers import worked

from lodger.engine.server import live
from lodger.engine.service import live_changes
from lodger.engine.store.actions import action_stream, actions
from lodger.engine.store.lifecycle import running_lines
from lodger.engine.store.schema.scheduling import actions as table
from lodger.sandbox.job import LogLine

PLAIN: dict[str, Any] = {"trust_env": False, "verify": NO_CERTIFICATES}


@contextmanager
def listening(
    lodge: RunningApi, path: str, token: str | None = None, tenant: str = "acme"
) -> Iterator[Iterator[tuple[str, Any]]]:
    """Return the events of a stream, from the moment at which the server has begun it."""
    shown = {"authorization": f"Bearer {token or lodge.token('viewer', tenant)}"}
    with httpx2.stream("GET", lodge.url + "/api/v1" + path, headers=shown, timeout=120, **PLAIN) as answer:
        if answer.status_code != 200:
            answer.read()
            answer.raise_for_status()
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield events(answer)


def events(answer: httpx2.Response) -> Iterator[tuple[str, Any]]:
    """Yield kind and body of each event of a response."""
    kind = ""
    for line in answer.iter_lines():
        name, _, value = line.partition(": ")
        if name == "event":
            kind = value
        elif name == "data":
            yield kind, json.loads(value)
        elif line.startswith(":"):
            yield "comment", line


def test_a_tenants_actions_are_told_as_they_are_made_and_move_on(url: str) -> None:
    with running_api(url) as lodge:
        lodge.furnish()
        lodge.furnish("zeta")
        waiting = lodge.engine.actions.run_now("acme", "s")
        with listening(lodge, "/tenants/acme/live") as reported:
            assert next(reported)[0] == "comment"
            lodge.engine.actions.run_now("zeta", "s")
            made = lodge.engine.actions.run_now("acme", "s", params=[1])
            assert next(reported) == ("action", lodge.ask("GET", f"/actions/{made.id}").json())
            lodge.engine.actions.cancel(None, waiting.id)
            kind, body = next(reported)
            assert (kind, body["id"], body["state"]) == ("action", waiting.id, "cancelled"), "it was there before"
            worked(lodge)
            seen = [next(reported)[1]]
            while seen[-1]["state"] != "done":
                seen.append(next(reported)[1])
            assert {each["id"] for each in seen} == {made.id}
            assert {each["tenant_id"] for each in seen} == {"acme"}


def test_one_action_with_its_lines_until_it_is_over(lodge: RunningApi) -> None:
    asked = lodge.engine.actions.run_now("acme", "s")
    with listening(lodge, f"/tenants/acme/actions/{asked.id}/live") as reported:
        kind, body = next(reported)
        assert (kind, body["state"]) == ("action", "ready")
        worked(lodge, fails=True, logs=(LogLine("info", "one"), LogLine("warn", "two\n: not a comment")))
        rest = list(reported)
    assert [body["text"] for kind, body in rest if kind == "log"] == ["one", "two\n: not a comment"]
    assert rest[-1][0] == "action"
    assert (rest[-1][1]["state"], rest[-1][1]["error"]["message"]) == ("failed", "no")
    with listening(lodge, f"/tenants/acme/actions/{asked.id}/live") as reported:
        assert [kind for kind, _body in reported] == ["log", "log", "action"], "of one that is over, all at once"


def identified(
    lodge: RunningApi, path: str, last: str | None = None, *, until: int | None = None
) -> list[tuple[str, str, Any]]:
    """Return id, kind and body of the events of a stream: all, or the first ``until``."""
    shown = {"authorization": f"Bearer {lodge.token('viewer', 'acme')}"} | (
        {} if last is None else {"last-event-id": last}
    )
    found, kind, place = [], "", ""
    with httpx2.stream("GET", lodge.url + "/api/v1" + path, headers=shown, timeout=120, **PLAIN) as answer:
        if answer.status_code == 204:
            return []
        assert answer.status_code == 200, answer.read()
        for line in answer.iter_lines():
            name, _, value = line.partition(": ")
            if name == "event":
                kind = value
            elif name == "id":
                place = value
            elif name == "data":
                found.append((place, kind, json.loads(value)))
            elif not line and until == 0:
                return [(place, "", None)]
            if until and len(found) == until:
                break
    return found


def test_a_stream_of_an_action_continues_after_each_of_its_events(lodge: RunningApi) -> None:
    asked = lodge.engine.actions.run_now("acme", "s")
    path = f"/tenants/acme/actions/{asked.id}/live"
    (ready,) = identified(lodge, path, until=1)
    lines = tuple(LogLine("info", str(number), number) for number in range(4))
    worked(lodge, fails=True, logs=lines)
    whole = identified(lodge, path)
    assert [kind for _id, kind, _body in whole] == ["log"] * 4 + ["action"]
    assert [each[1:] for each in identified(lodge, path, ready[0])] == [each[1:] for each in whole]
    for number, (last, _kind, _body) in enumerate(whole):
        assert identified(lodge, path, last) == whole[number + 1 :], "no line again, none left out"
    # A later attempt has lines of its own.
    lodge.engine.actions.retry(None, asked.id)
    worked(lodge, logs=lines)
    more = identified(lodge, path, whole[-1][0])
    assert [body["text"] for _id, kind, body in more if kind == "log"] == ["0", "1", "2", "3"]
    assert more[-1][2]["state"] == "done"
    with httpx2.Client(timeout=120, **PLAIN) as http:
        shown = {"authorization": f"Bearer {lodge.token('viewer', 'acme')}", "last-event-id": more[-1][0]}
        assert http.get(f"{lodge.url}/api/v1{path}", headers=shown).status_code == 204, "an EventSource stops"
    everything = [each[1:] for each in identified(lodge, path)]
    for foreign in (
        "nonsense",
        f"{asked.id}.1",
        whole[0][0].replace(asked.id, lodge.engine.actions.run_now("acme", "s").id),
    ):
        assert [each[1:] for each in identified(lodge, path, foreign)] == everything, (
            "the id of no event of this stream"
        )


def test_a_stream_of_a_tenant_continues_where_it_broke_off(lodge: RunningApi) -> None:
    path = "/tenants/acme/live"
    (begin,) = identified(lodge, path, until=0)
    made = [lodge.engine.actions.run_now("acme", "s").id for _ in range(3)]
    first = identified(lodge, path, begin[0], until=2)
    assert [body["id"] for _id, _kind, body in first] == made[:2], "what happened while nobody listened"
    lodge.engine.actions.cancel(None, made[0])
    rest = identified(lodge, path, first[-1][0], until=2)
    assert [(body["id"], body["state"]) for _id, _kind, body in rest] == [(made[2], "ready"), (made[0], "cancelled")]


def test_a_stream_of_a_tenant_continues_in_a_server_that_was_started_meanwhile(tmp_path: Path) -> None:
    """The other process does not know what was sent: each action that is open or has changed since is sent as it is."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    with running_api(url) as lodge:
        lodge.furnish()
        over = lodge.engine.actions.run_now("acme", "s").id
        worked(lodge)
        lodge.clock.advance(60)
        (begin,) = identified(lodge, "/tenants/acme/live", until=0)
        begun_us = lodge.clock.us
    with running_api(url) as lodge:
        lodge.clock.us = begun_us
        made = lodge.engine.actions.run_now("acme", "s").id
        found = identified(lodge, "/tenants/acme/live", begin[0], until=1)
        assert [body["id"] for _id, _kind, body in found] == [made] != [over]


def test_whose_it_is_not_hears_nothing(lodge: RunningApi) -> None:
    lodge.furnish("zeta")
    theirs = lodge.engine.actions.run_now("zeta", "s")
    for path in ("/tenants/zeta/live", f"/tenants/zeta/actions/{theirs.id}/live", f"/tenants/acme/actions/{theirs.id}/live",
                 "/tenants/acme/actions/x/live", "/tenants/nobody/live"):  # fmt: skip
        assert lodge.ask("GET", path, role="viewer", tenant="acme").status_code == 404


def test_streams_are_bounded_by_token_and_counted_out_however_they_end(
    lodge: RunningApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MAX_STREAMS_OF_TOKEN", 2)
    with listening(lodge, "/tenants/acme/live") as one, listening(lodge, "/tenants/acme/live") as two:
        next(one), next(two)
        refused = lodge.ask("GET", "/tenants/acme/live", role="viewer", tenant="acme")
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_streams")
        with listening(lodge, "/tenants/acme/live", lodge.token("editor", "acme")) as theirs:
            next(theirs)
    open_stream(lodge)


def open_stream(lodge: RunningApi) -> None:
    """Begin a stream, as soon as closed ones are no longer counted."""
    shown = {"authorization": f"Bearer {lodge.token('viewer', 'acme')}"}
    for _ in range(500):
        with httpx2.stream(
            "GET", f"{lodge.url}/api/v1/tenants/acme/live", headers=shown, timeout=120, **PLAIN
        ) as answer:
            if answer.status_code == 200:
                assert next(events(answer))[0] == "comment"
                return
    raise AssertionError("they were never counted out")


@pytest.mark.parametrize("what", ["tenant", "action"])
def test_a_revoked_token_ends_its_streams_however_much_there_is_to_tell(
    lodge: RunningApi, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(live, "COMMENT_S", 0.2)
    made = lodge.engine.tokens.create("short", "viewer", tenant_id="acme")
    action = lodge.engine.actions.run_now("acme", "s")
    over = threading.Event()

    def chatter() -> None:
        while not over.wait(0.01):
            with lodge.engine.context.database.write() as connection:
                connection.execute(update(table).where(table.c.id == action.id).values(attempt=table.c.attempt + 1))
            lodge.engine.changed()

    talking = threading.Thread(target=chatter)
    talking.start()
    try:
        path = "/tenants/acme/live" if what == "tenant" else f"/tenants/acme/actions/{action.id}/live"
        with listening(lodge, path, made.text) as reported:
            while next(reported)[0] != "action":
                pass
            lodge.engine.tokens.revoke(made.token.id)
            assert {kind for kind, _body in reported} <= {"comment", "action"}
    finally:
        over.set()
        talking.join()


def test_streams_of_actions_read_their_logs_only_after_a_change(
    lodge: RunningApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_changes, "POLL_S", 0.05)
    asked, moved, looks = list[str](), threading.Condition(), Counter[str]()
    change_stamp, poll = action_stream.change_stamp, running_lines.LogStream.poll

    def asking(connection: Connection, tenant_id: str, action_id: str) -> Any:
        with moved:
            asked.append(action_id)
            moved.notify_all()
        return change_stamp(connection, tenant_id, action_id)

    def looking(stream: running_lines.LogStream, connection: Connection) -> Any:
        looks[stream.action_id] += 1
        return poll(stream, connection)

    monkeypatch.setattr(live_changes, "change_stamp", asking)
    monkeypatch.setattr(running_lines.LogStream, "poll", looking)
    made = [lodge.engine.actions.run_now("acme", "s").id for _ in range(3)]
    with ExitStack() as streams:
        reported = [streams.enter_context(listening(lodge, f"/tenants/acme/actions/{each}/live")) for each in made]
        for each in reported:
            assert next(each)[0] == "action"
        with moved:
            assert moved.wait_for(lambda: min(asked.count(each) for each in made) >= 5, 60), asked
        assert looks == dict.fromkeys(made, 1), "nothing moved: nobody looked"
        lodge.engine.actions.cancel(None, made[1])
        kind, body = next(reported[1])
        assert (kind, body["state"]) == ("action", "cancelled")
        assert looks == dict.fromkeys(made, 1) | {made[1]: 2}
    with listening(lodge, f"/tenants/acme/actions/{made[0]}/live") as again:
        assert next(again)[0] == "action"
        with moved:
            assert moved.wait_for(lambda: set(asked[-10:]) == {made[0]}, 60), "streams that ended ask no more"


def test_a_reader_that_falls_behind_is_let_go(lodge: RunningApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_changes, "MAX_WAITING", 3)
    with listening(lodge, "/tenants/acme/live") as reported:
        next(reported)
        with lodge.engine.context.database.write() as connection:
            # One transaction: one look sees them all, and no reader takes so many in between.
            for number in range(300):
                store_request(lodge, connection, number)
        lodge.engine.changed()
        assert len(list(reported)) < 300


def store_request(lodge: RunningApi, connection: Connection, number: int) -> None:
    """Store a request for a run, which is due in a second."""
    due_us = lodge.clock.us + 1_000_000
    actions.once(lodge.engine.context, connection, "acme", "job", due_us, number, None)


def test_a_tenant_that_goes_ends_its_streams(lodge: RunningApi) -> None:
    with listening(lodge, "/tenants/acme/live") as reported:
        next(reported)
        lodge.engine.tenants.delete("acme")
        assert [kind for kind, _body in reported if kind != "comment"] == []


def test_nothing_is_missed_when_more_is_made_than_one_look_reads(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(action_stream, "MAX_ACTIONS", 7)
    with running_api(url) as lodge:
        lodge.furnish()
        each = action_stream.ActionStream("acme")
        with lodge.engine.context.database.read() as connection:
            each.start(connection, lodge.clock.us)
        made = []
        for _ in range(40):
            made.append(lodge.engine.actions.run_now("acme", "s").id)
            lodge.clock.advance(0.5)
        seen: list[str] = []
        for _ in range(40):
            with lodge.engine.context.database.read() as connection:
                seen += [action.id for action in each.poll(connection)]
        assert seen == made
        for action in made[:10]:
            lodge.engine.actions.cancel(None, action)
        with lodge.engine.context.database.read() as connection:
            assert [action.id for action in each.poll(connection)] == made[:10]
            assert each.poll(connection) == []
