"""What requests say and are answered: bodies, problems, pages, entity tags, idempotency keys, reasons, modules, short ids, rules."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import update
from tests.api.request_keys import idempotency_key, run_in_threads
from tests.api.running_api import ONE, RunningApi, running_api
from tests.escape.commands import HELLO
from tests.unit.recurrence.foreign_rules import BERLIN, CASES

from lodger.engine.client import Client
from lodger.engine.core.access.audit_context import audit_as
from lodger.engine.core.access.roles import Caller
from lodger.engine.core.errors import InputError, NotFound
from lodger.engine.features import TABLE
from lodger.engine.store import pages
from lodger.engine.store.platform import idempotency
from lodger.engine.store.schema.scheduling import actions
from lodger.engine.vault.keyring import Keyring
from lodger.sandbox.limits import LIMITS

TWO = "export default () => 2"


def test_every_answer_is_what_its_verb_gives(lodge: RunningApi) -> None:
    """The shape of an answer is that of the record, whole."""
    from lodger.engine.core.serialization import to_jsonable

    made = lodge.ask("PUT", "/tenants/acme/scripts/two", {"source": {"main.js": ONE, "x.js": "1"}, "why": "new"}).json()
    assert made == to_jsonable(lodge.engine.scripts.get("acme", "two"))
    assert lodge.ask("GET", "/tenants/acme/schedules/s").json() == to_jsonable(lodge.engine.schedules.get("acme", "s"))
    asked = lodge.ask("POST", "/tenants/acme/schedules/s/run-now", {"params": {"a": [1]}}).json()
    assert asked == to_jsonable(lodge.engine.actions.get(None, asked["id"]))
    assert lodge.ask("POST", "/preview", {"rules": ["every 60s", "every 90s"], "n": 2}).json()["slots"]
    assert lodge.ask("DELETE", "/tenants/acme").status_code == 204
    assert lodge.ask("GET", "/tenants/acme").json()["code"] == "tenant_unknown"


def test_who_and_why_of_a_request_stand_in_the_audit_log(lodge: RunningApi) -> None:
    answer = lodge.ask(
        "PATCH", "/tenants/acme/schedules/s", {"rules": "every 120s"}, role="editor", tenant="acme",
        headers={"lodger-why": "r%C3%BChig", "x-request-id": "abc-1"},
    )  # fmt: skip
    assert answer.headers["x-request-id"] == "abc-1"
    row = lodge.engine.audit.list("acme", verb="schedules.edit")[0]
    assert (row.via, row.why, row.request_id) == ("http", "rühig", "abc-1")
    assert row.actor.startswith("editor acme (lodger_")
    assert lodge.engine.schedules.revisions("acme", "s")[0].why == "rühig"
    for acting_as, shown in (("ann%40shop.example", "ann@shop.example"), ("a%0Ab", "a b"), ("x" * 500, "x" * 98)):
        lodge.ask("POST", "/tenants/acme/schedules/s/run-now", {}, headers={"lodger-acting-as": acting_as})
        actor = lodge.engine.audit.list("acme", verb="actions.run_now")[0].actor
        assert re.fullmatch(rf"admin None \(lodger_\w+\) as {shown}", actor)
    with audit_as("sue", acting_as="ann"), audit_as(why="ticket 1"):
        lodge.engine.actions.run_now("acme", "s")
    assert lodge.engine.audit.list("acme", verb="actions.run_now")[0].actor == "sue as ann"
    assert Caller.user("ann", "viewer", "acme", impersonator="sue").called == "sue as ann"
    long = lodge.ask("POST", "/tenants/acme/schedules/s/pause", {}, headers={"lodger-why": "x" * 2000})
    assert (long.status_code, long.json()["code"]) == (422, "why_invalid")
    for wild in ("a\tb", "x" * 65, "<script>", "a b"):
        answer = lodge.http.get(f"{lodge.url}/healthz", headers={"x-request-id": wild})
        assert answer.headers["x-request-id"] != wild


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "json_not_json"),
        (b'{"source": "a", "source": "b"}', 400, "json_duplicate_key"),
        (b'{"source": NaN}', 400, "json_not_json"),
        (b'{"source": 1e999}', 400, "json_number_out_of_range"),
        (b"\xff\xfe", 400, "json_not_utf8"),
        (b"[" * 100_000, 400, "json_too_deep"),
        (b'{"source": ' + b"[" * 65 + b"]" * 65 + b"}", 400, "json_too_deep"),
        (b'{"source": [' + b'{"a":1},' * 80_000 + b"1]}", 413, "json_too_many_values"),
        (b'["source"]', 400, "request_invalid"),
        (b'"source"', 400, "request_invalid"),
        (b"null", 400, "request_invalid"),
        (b"{}", 400, "request_invalid"),
        (b"", 400, "request_invalid"),
        (b'{"source": "a", "sauce": 1}', 400, "request_invalid"),
        (b'{"source": 1}', 400, "request_invalid"),
        (b'{"source": "a", "after_version": "1"}', 400, "request_invalid"),
        (b'{"source": "a", "after_version": 1.5}', 400, "request_invalid"),
        (b'{"source": "a", "after_version": true}', 400, "request_invalid"),
        (b'{"source": "a", "after_version": 99999999999999999999}', 400, "request_invalid"),
        (b'{"source": "\\ud800"}', 400, "request_invalid"),
        (b'{"source": "a\\u0000"}', 422, "source_not_text"),
        (b'{"source": ""}', 422, "script_empty"),
        (b'{"source": "a", "why": "\\u001b[2J"}', 422, "why_invalid"),
    ],
)  # fmt: skip
def test_a_body_that_is_not_taken(steady: RunningApi, body: bytes, status: int, code: str) -> None:
    answer = steady.ask(
        "PUT", "/tenants/acme/scripts/x", content=body, headers={"content-type": "application/json; charset=utf-8"}
    )
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    reported = answer.json()
    assert reported["type"] == f"urn:lodger:error:{code}"
    assert reported["status"] == status
    assert reported["detail"]
    assert len(answer.content) < 4000
    assert [script.name for script in steady.engine.scripts.list("acme")] == ["job"]


@pytest.mark.parametrize(
    ("method", "path", "body", "at", "what", "fix"),
    [
        ("PUT", "/tenants/acme/scripts/x", {}, "source", "is missing", "add source"),
        ("PUT", "/tenants/acme/scripts/x", {"source": "a", "sauce": 1}, "sauce", "is not a known field", "did you mean source?"),
        ("PUT", "/tenants/acme/scripts/x", {"source": "a", "zzz": 1}, "zzz", "is not a known field", "leave zzz out"),
        ("PUT", "/tenants/acme/scripts/x", {"source": "a", "after_version": "1"}, "after_version",
         "must be a whole number", "send a whole number"),
        ("PUT", "/tenants/acme/scripts/x", {"source": "a", "after_version": 1 << 40}, "after_version",
         "must be at most 2147483647", "send at most 2147483647"),
        ("PUT", "/tenants/acme/scripts/x", {"source": 1}, "source", "must be text or an object", "send text or an object"),
        ("PUT", "/tenants/acme/scripts/x", {"source": {"main.js": 1}}, "source", "must be text", "send text"),
        ("POST", "/preview", {"rules": "every 60s", "n": "x"}, "n", "must be a whole number", "send a whole number"),
        ("POST", "/preview", {"rules": "every 60s", "after": 5}, "after",
         "an instant is text such as 2027-01-01T09:00:00Z", "correct after"),
        ("GET", "/tenants/acme/actions?limit=0", None, "query/limit", "must be at least 1", "send at least 1"),
        ("GET", "/tenants/acme/actions?limit=x", None, "query/limit", "must be a whole number", "send a whole number"),
        ("GET", "/tenants/acme/actions?limti=5", None, "query/limti", "is not a known field", "leave limti out"),
    ],
)  # fmt: skip
def test_a_wrong_field_says_where_what_and_how_to_fix_it(
    steady: RunningApi, method: str, path: str, body: object, at: str, what: str, fix: str
) -> None:
    answer = steady.ask(method, path, body)
    said = answer.json()
    assert (answer.status_code, said["code"]) == (400, "request_invalid")
    assert said["errors"][0] == {"at": at, "what": what, "fix": fix}
    assert what in said["detail"]
    assert "Input should" not in answer.text
    assert "pydantic" not in answer.text.lower()


def test_a_body_of_another_kind(lodge: RunningApi) -> None:
    for media in ("text/plain", "application/xml", "application/wasm", ""):
        answer = lodge.ask(
            "PUT", "/tenants/acme/scripts/x", content=b'{"source": "a"}', headers={"content-type": media}
        )
        assert (answer.status_code, answer.json()["code"]) == (415, "media_type")
    extra = lodge.ask("POST", "/tenants/acme/suspend", content=b"x")
    assert extra.status_code == 400


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=1001", "limit=x", "limit=1&limit=2", "limti=5", "cursor=x", "state=x", "since=yesterday",
              "since=5", "since=2026-01-01T00:00:00", "before=%00", "state=%00", "script=%ed%a0%80"],
)  # fmt: skip
def test_a_query_that_is_not_taken(steady: RunningApi, query: str) -> None:
    answer = steady.ask("GET", f"/tenants/acme/actions?{query}")
    if answer.status_code == 200:
        assert answer.json()["items"] == []
        assert query == "before=%00"
    else:
        assert answer.status_code in {400, 422}
        assert answer.json()["code"] in {
            "request_invalid", "cursor_invalid", "state_unknown", "filter_invalid", "text_unstorable", "path_invalid",
        }  # fmt: skip


def test_hostile_names_in_paths(lodge: RunningApi) -> None:
    """Path tricks: what climbs, splits, or cannot be stored is a clear 4xx, and nothing comes into being."""
    for name in ("..%2f..%2fetc%2fpasswd", "%2e%2e", "a%2fb", "a%5cb", "%00", "%0d%0aSet-Cookie:x", "%e2%80%ae", "%ff%fe",
                 "x" * 201, "x" * 3000, "%20", "con%20", "a%00b"):  # fmt: skip
        answer = lodge.ask("PUT", f"/tenants/acme/scripts/{name}", {"source": ONE})
        assert 400 <= answer.status_code < 500, name
        assert "set-cookie" not in answer.headers
    assert [script.name for script in lodge.engine.scripts.list("acme")] == ["job"]
    for good in ("job.js", "naïve café", "a?b#c%d", "日本", "-", "' OR 1=1", "<b>"):
        from urllib.parse import quote

        path = f"/tenants/acme/scripts/{quote(good, safe='')}"
        assert lodge.ask("PUT", path, {"source": ONE}).status_code == 200
        assert lodge.ask("GET", path).json()["name"] == good


def test_lists_are_paged(lodge: RunningApi) -> None:
    for number in range(25):
        lodge.engine.actions.run_now("acme", "s", params=number)
    seen, cursor = [], ""
    while True:
        page = lodge.ask("GET", f"/tenants/acme/actions?limit=10{cursor}").json()
        assert len(page["items"]) <= 10
        seen += [item["params"] for item in page["items"]]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    assert seen == list(range(24, -1, -1))
    first = lodge.ask("GET", "/tenants/acme/actions?limit=10").json()["next"]
    lodge.furnish("other")
    crossed = lodge.ask("GET", f"/tenants/other/actions?limit=10&cursor={first}", role="viewer", tenant="other")
    assert (crossed.status_code, crossed.json()["code"]) == (422, "cursor_invalid")
    assert lodge.ask("GET", "/actions?tenant_id=acme&state=ready&limit=5", role="operator").json()["next"]


def test_a_page_ends_where_it_grows_too_long(lodge: RunningApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MAX_BYTES", 100_000)
    for _ in range(10):
        lodge.engine.actions.run_now("acme", "s", params="x" * 40_000)
    page = lodge.ask("GET", "/tenants/acme/actions?limit=10").json()
    assert 1 < len(page["items"]) < 5
    assert page["next"]


def test_a_change_is_made_to_what_was_seen_or_not_at_all(lodge: RunningApi) -> None:
    path = "/tenants/acme/schedules/s"
    read = lodge.ask("GET", path)
    tag = read.headers["etag"]
    lodge.clock.advance(3600)
    assert lodge.ask("GET", path).headers["etag"] == tag, "a tag is not moved by the clock"
    done = lodge.ask("PATCH", path, {"rules": "every 120s"}, headers={"if-match": tag})
    assert done.status_code == 200
    assert done.headers["etag"] not in {tag, None}
    late = lodge.ask("PATCH", path, {"rules": "every 180s"}, headers={"if-match": tag})
    assert (late.status_code, late.json()["code"]) == (412, "precondition_failed")
    assert lodge.engine.schedules.get("acme", "s").revision == 2
    either = lodge.ask("PATCH", path, {"rules": "every 180s"}, headers={"if-match": f"{tag}, {done.headers['etag']}"})
    assert either.status_code == 200
    assert lodge.ask("DELETE", path, headers={"if-match": tag}).status_code == 412
    assert lodge.ask("DELETE", path, headers={"if-match": "*"}).status_code == 200


def test_the_tag_of_a_tenant_and_of_an_alert_rule_moves_with_each_edit(lodge: RunningApi) -> None:
    lodge.ask("PUT", "/tenants/acme/people", {"addresses": ["ann@example.com"]})
    rule = {"mail": ["ann@example.com"]}
    lodge.ask("PUT", "/tenants/acme/alerts/a", rule)
    for method, path, body in (
        ("PATCH", "/tenants/acme", {"labels": ["gpu"]}),
        ("PUT", "/tenants/acme/alerts/a", rule | {"kinds": ["late"]}),
    ):
        tag = {"if-match": lodge.ask("GET", path).headers["etag"]}
        lodge.clock.advance(1)
        assert lodge.ask(method, path, body, headers=tag).status_code == 200
        assert lodge.ask(method, path, body, headers=tag).status_code == 412


def test_if_none_match_makes_only_what_is_not_there(lodge: RunningApi) -> None:
    path = "/tenants/acme/scripts/fresh"
    only = {"if-none-match": "*"}
    assert lodge.ask("PUT", path, {"source": ONE}, headers=only).status_code == 200
    assert lodge.ask("PUT", path, {"source": TWO}, headers=only).status_code == 412
    assert (
        lodge.ask("PUT", "/tenants/acme/scripts/none", {"source": TWO}, headers={"if-match": '"x"'}).status_code == 412
    )
    assert lodge.ask("PUT", path, {"source": TWO}, headers={"if-none-match": '"x"'}).json()["code"] == "header_invalid"
    assert lodge.ask("PUT", path, {"source": TWO}, headers={"if-match": "no quotes"}).status_code == 412
    assert lodge.ask("POST", "/tenants/acme/schedules/s/run-now", {}, headers={"if-match": "*"}).status_code == 400


#: What is sent to each route that changes a thing which others may have changed meanwhile.
EDITS: dict[str, object] = {
    "tenants_edit": {"name": "Other"}, "tenants_suspend": None, "tenants_resume": None, "tenants_delete": None,
    "grants_keep": {"held": ["kv"]}, "grants_give": {"given": ["kv"]}, "grants_take": {"taken": ["kv"]},
    "grants_people": {"addresses": ["a@example.com"]}, "webhooks_put": {"url": "https://example.com/other"}, "webhooks_renew": None,
    "webhooks_delete": None, "scripts_put": {"source": TWO}, "scripts_put_module": HELLO,
    "scripts_put_ping": {"url": "https://example.com/other"}, "scripts_rollback": {"version": 1},
    "schedules_edit": {"rules": "every 120s"}, "schedules_rollback": {"revision": 1}, "schedules_pause": {}, "schedules_resume": None,
    "schedules_delete": None, "tokens_revoke": None, "tokens_revoke_everywhere": None, "scripts_suspend": None, "scripts_resume": None,
    "scripts_promote": {}, "scripts_drop": None,
    "scripts_record": {"which": "all"},
    "alerts_put": {"webhooks": ["hook"]}, "alerts_delete": None, "plans_put": {"limits": {"runs_per_day": 7}}, "plans_delete": None,
    "connections_put": {"token_url": "https://crm.example/other", "client_id": "c", "client_secret": "s", "hosts": ["crm.example"]},
    "connections_delete": None, "documents_put": {"document": "b", "values": {"n": 2}}, "documents_delete": None,
}  # fmt: skip
#: Those that overwrite nothing that can be read, or do the same however often they are asked.
BLIND = {
    "tenants_restore",
    "collections_index",
    "collections_drop_index",
    "secrets_put",
    "secrets_delete",
    "urls_revoke",
}


def test_every_edit_can_ask_for_what_was_seen(tmp_path: Path, subtests: pytest.Subtests) -> None:
    edits = {route.identity: route for route in TABLE.routes if route.declared.tagged}
    overwrite = {
        route.identity for route in TABLE.routes if route.changes and route.method in {"PUT", "PATCH", "DELETE"}
    }
    assert overwrite - BLIND <= set(edits) == set(EDITS)
    Keyring(tmp_path / "keys").add()
    with running_api(f"sqlite:///{tmp_path / 'ledger.db'}", secret_keys=tmp_path / "keys") as lodge:
        lodge.furnish()
        engine = lodge.engine
        engine.webhooks.put("acme", "hook", "https://example.com/in")
        engine.scripts.put_ping("acme", "knock", "https://example.com/in")
        engine.scripts.put("acme", "wasm", HELLO)
        engine.alerts.put("acme", "broken", webhooks=["hook"])
        engine.plans.put("basic", {"runs_per_day": 8})
        engine.connections.put("acme", "crm", "https://crm.example/token", "c", "s", hosts=["crm.example"])
        for name in ("promoted", "dropped"):
            engine.scripts.put("acme", name, ONE)
            engine.scripts.put("acme", name, TWO, shadow=1)
        named = {
            "tenant_id": "acme",
            "schedule": "s",
            "collection": "carts",
            "token": engine.tokens.create("x", "viewer", tenant_id="acme").token.prefix,
        }
        of = {"scripts": "job", "webhooks": "hook", "alerts": "broken", "plans": "basic", "connections": "crm"}
        there = {"scripts_put_module": "wasm", "scripts_put_ping": "knock"} | {
            "scripts_promote": "promoted",
            "scripts_drop": "dropped",
        }

        def asked(identity: str, tag: str) -> httpx2.Response:
            route, body = edits[identity], EDITS[identity]
            query = {"params": {"document": "a"}} if identity == "documents_delete" else {}
            name = there.get(identity) or of.get(route.noun, "")
            path = route.path.format_map(named | {"name": name})
            sent = {"content": body} if isinstance(body, bytes) else {"body": body}
            kind = {"content-type": "application/octet-stream"} if isinstance(body, bytes) else {}
            return lodge.ask(route.method, path, headers={"if-match": tag} | kind, **sent, **query)

        lodge.token("admin")
        for key in ("a", "b"):
            engine.documents.put("acme", "carts", key, {"n": 1})
        logged = len(engine.audit.list(limit=500))
        for identity in sorted(edits):
            with subtests.test(route=identity):
                answer = asked(identity, '"seen long ago"')
                assert (answer.status_code, answer.json()["code"]) == (412, "precondition_failed")
        assert len(engine.audit.list(limit=500)) == logged, "nothing was changed"
        for identity in sorted(edits, key=lambda each: ("delete" in each, each.startswith("tenants_"), each)):
            with subtests.test(route=identity):
                assert asked(identity, "*").status_code < 300


def test_of_many_who_saw_the_same_one_changes_it(lodge: RunningApi) -> None:
    tag = lodge.ask("GET", "/tenants/acme/schedules/s").headers["etag"]
    shown = lodge.bearer("editor", "acme")
    said: list[int] = []

    def change(number: int) -> None:
        answer = httpx2.patch(
            f"{lodge.url}/api/v1/tenants/acme/schedules/s", json={"params": number}, headers=shown | {"if-match": tag},
            trust_env=False, timeout=120,
        )  # fmt: skip
        said.append(answer.status_code)

    run_in_threads(change, 6)
    assert sorted(said) == [200] + [412] * 5
    assert lodge.engine.schedules.get("acme", "s").revision == 2


def test_the_same_request_is_carried_out_once(lodge: RunningApi) -> None:
    path, body = "/tenants/acme/run-in", {"script": "job", "delay": "90s"}
    first = lodge.ask("POST", path, body, headers=idempotency_key("a"))
    again = lodge.ask("POST", path, body, headers=idempotency_key("a"))
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.content == first.content
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers
    assert len(lodge.engine.actions.list("acme")) == 1
    other = lodge.ask("POST", path, body | {"delay": "91s"}, headers=idempotency_key("a"))
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    assert (
        lodge.ask("POST", path, body, headers=idempotency_key("a"), role="editor", tenant="acme").json() != first.json()
    )
    lodge.clock.advance(24 * 3600 + 1)
    with lodge.engine.context.database.write() as connection:
        assert idempotency.delete_expired(connection, lodge.clock.us) == 2
    assert lodge.ask("POST", path, body, headers=idempotency_key("a")).json() != first.json()


def test_a_refused_request_is_not_remembered(lodge: RunningApi) -> None:
    body = {"name": "t", "script": "later", "rules": "every 60s"}
    assert lodge.ask("POST", "/tenants/acme/schedules", body, headers=idempotency_key("b")).status_code == 404
    lodge.engine.scripts.put("acme", "later", ONE)
    assert lodge.ask("POST", "/tenants/acme/schedules", body, headers=idempotency_key("b")).status_code == 201


def test_of_many_with_one_key_one_is_carried_out(url: str) -> None:
    with running_api(url) as lodge:
        lodge.furnish()
        shown, said = lodge.bearer(), []

        def ask(_number: int) -> None:
            answer = httpx2.post(
                f"{lodge.url}/api/v1/tenants/acme/schedules/s/run-now", json={"params": 1}, headers=shown | idempotency_key("once"),
                trust_env=False, timeout=60,
            )  # fmt: skip
            said.append((answer.status_code, answer.json()["id"]))

        run_in_threads(ask, 12)
        assert len(set(said)) == 1
        assert said[0][0] == 201
        assert len(lodge.engine.actions.list("acme")) == 1
        assert len(lodge.engine.audit.list("acme", verb="actions.run_now")) == 1


def test_keys_that_are_none_and_answers_that_are_not_kept(lodge: RunningApi) -> None:
    for wrong in ("", "x" * 201, "a\tb"):
        answer = lodge.ask("POST", "/tenants/acme/suspend", headers=idempotency_key(wrong))
        assert (answer.status_code, answer.json()["code"]) == (400, "header_invalid")
    secret = lodge.ask("POST", "/tokens", {"name": "x", "role": "admin"}, headers=idempotency_key("t"))
    assert (secret.status_code, secret.json()["code"]) == (422, "idempotency_refused")
    made = lodge.ask("POST", "/tokens", {"name": "x", "role": "admin"}).json()
    assert made["text"].startswith(made["token"]["prefix"])
    assert made["text"] not in lodge.ask("GET", "/tokens").text


def test_a_module_goes_up_and_comes_down_as_bytes(lodge: RunningApi) -> None:
    from tests.escape.commands import HELLO

    path = "/tenants/acme/scripts/wasm/module"
    made = lodge.ask("PUT", f"{path}?why=compiled", content=HELLO, headers={"content-type": "application/wasm"})
    assert made.status_code == 200, made.text
    assert (made.json()["wasm_bytes"], made.json()["why"]) == (len(HELLO), "compiled")
    with Client(lodge.url, lodge.token("editor", "acme")) as client:
        typed = client.scripts.put("acme", "wasm", HELLO, params={"who": {"type": "text"}})
        assert list(client.scripts.get("acme", "wasm").fields or ()) == ["who"]
    assert typed.version == 2
    back = lodge.ask("GET", path)
    assert (back.content, back.headers["content-type"]) == (HELLO, "application/wasm")
    wrong = lodge.ask("PUT", path, content=b"\0asm nonsense", headers={"content-type": "application/wasm"})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "module_refused")


def test_the_audit_log_streams_as_lines(lodge: RunningApi) -> None:
    lodge.furnish("other")
    whole = lodge.ask("GET", "/audit/export", role="operator")
    assert whole.headers["content-type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in whole.text.splitlines()]
    assert [line["id"] for line in lines] == sorted(line["id"] for line in lines)
    mine = lodge.ask("GET", "/tenants/acme/audit/export", role="viewer", tenant="acme").text
    assert {json.loads(line)["tenant_id"] for line in mine.splitlines()} == {"acme"}
    assert lodge.ask("GET", "/tenants/nobody/audit/export", role="operator").json()["code"] == "tenant_unknown"
    assert lodge.ask("GET", "/audit/export?since=2027-01-01T00:00:00Z", role="operator").text == ""


def test_the_deepest_result_that_limits_allow_keeps_no_list_from_being_shown(lodge: RunningApi) -> None:
    deepest = next(each.maximum for each in LIMITS if each.name == "json_depth")
    asked = lodge.engine.run_in("acme", "job", 0)
    with lodge.engine.context.database.write() as connection:
        done = {"state": "done", "outcome": "ok", "result": "[" * deepest + "]" * deepest}
        connection.execute(update(actions).values(done))
    for path in ("/actions", f"/tenants/acme/actions/{asked.id}"):
        assert lodge.ask("GET", path, role="admin").status_code == 200


def test_a_key_stands_for_method_path_query_precondition_and_body(lodge: RunningApi) -> None:
    index, module = "/tenants/acme/collections/carts/indexes/city", "/tenants/acme/scripts/tool/module"
    wasm = {"content": HELLO, "headers": idempotency_key("q") | {"content-type": "application/wasm"}}
    seen = {"if-match": "*"}
    pairs = (
        (
            lambda: lodge.ask("PUT", index, headers=idempotency_key("m")),
            lambda: lodge.ask("DELETE", index, headers=idempotency_key("m")),
        ),
        (
            lambda: lodge.ask("POST", "/tenants/acme/suspend", headers=idempotency_key("p")),
            lambda: lodge.ask("POST", "/tenants/acme/resume", headers=idempotency_key("p")),
        ),
        (lambda: lodge.ask("PUT", module + "?why=a", **wasm), lambda: lodge.ask("PUT", module + "?why=b", **wasm)),
        (
            lambda: lodge.ask("POST", "/tenants/acme/resume", headers=idempotency_key("i") | seen),
            lambda: lodge.ask("POST", "/tenants/acme/resume", headers=idempotency_key("i")),
        ),
    )
    for first, other in pairs:
        answered, refused = first(), other()
        assert answered.status_code == 200, answered.text
        assert (refused.status_code, refused.json()["code"]) == (422, "idempotency_key_reused")
        assert first().headers["idempotent-replayed"] == "true"


@pytest.fixture
def action(lodge: RunningApi) -> str:
    lodge.engine.scripts.put("acme", "once", "export default () => 1")
    lodge.engine.actions.run_in("acme", "once", 3_600_000)
    return lodge.engine.actions.run_in("acme", "once", 3_600_000).id


def short_forms(whole: str) -> tuple[str, ...]:
    """Return parts of an id by which an action can be found."""
    return whole[-8:], whole[-4:], whole[-8:].upper(), whole[:23]


@pytest.fixture
def client(lodge: RunningApi) -> Iterator[Client]:
    with Client(lodge.url, lodge.token("admin")) as made:
        yield made


def test_actions_are_found_by_a_part_of_their_id(client: Client, action: str) -> None:
    verbs: tuple[Callable[..., object], ...] = (
        client.actions.get, client.actions.attempts, client.actions.logs,
        client.actions.deliveries, client.actions.compared,
    )  # fmt: skip
    for verb in verbs:
        whole = verb("acme", action)
        assert all(verb("acme", part) == whole for part in short_forms(action))
    assert client.actions.cancel("acme", action[-8:]).id == action
    assert client.actions.replay("acme", action[-8:]).replay_of == action
    assert [each.id for each in client.live("acme", action[-8:])] == [action]


def test_ambiguous_foreign_and_unknown_parts_are_refused(client: Client, lodge: RunningApi, action: str) -> None:
    with pytest.raises(InputError) as ambiguous:
        client.actions.get("acme", action[:4])
    assert ambiguous.value.code == "action_ambiguous"
    assert action in ambiguous.value.why
    lodge.engine.tenants.create("other")
    for tenant, part in (
        ("other", action[-8:]),
        ("acme", "0" * 12),
        ("acme", action[-3:]),
        ("acme", "%"),
        ("acme", "a_a_"),
    ):
        with pytest.raises(NotFound) as unknown:
            client.actions.get(tenant, part)
        assert unknown.value.code == "action_unknown"


def test_schedules_are_found_by_a_part_of_their_id_but_names_win(
    client: Client, lodge: RunningApi, action: str
) -> None:
    made = client.schedules.create("acme", "daily", script="once", rules="0 9 * * *")
    assert client.schedules.get("acme", made.id[-8:]).name == "daily"
    assert client.actions.run_now("acme", made.id[-8:]).schedule == "daily"
    client.schedules.create("acme", made.id[-8:], script="once", rules="0 9 * * *")
    assert client.schedules.get("acme", made.id[-8:]).name == made.id[-8:]
    with pytest.raises(NotFound):
        client.schedules.get("acme", made.id[-7:])


NOW = "2026-01-01T00:00:00Z"


def test_a_rule_from_elsewhere_is_explained_and_saved_as_it_is_meant(lodge: RunningApi) -> None:
    for place, case in enumerate(CASES):
        body = {"rules": [case.text], "tz": case.tz}
        shown = lodge.ask("POST", "/preview", body)
        saved = lodge.ask("POST", "/tenants/acme/schedules", body | {"name": f"s{place}", "script": "job"})
        if case.fix:
            assert {shown.status_code, saved.status_code} == {422}, case
            assert case.fix in shown.json()["fix"], case
            assert case.fix in saved.json()["fix"], case
        elif case.never:
            found = shown.json()
            assert (found["slots"], found["searched_to"], case.never in found["never"]) == ([], None, True), case
            assert (saved.status_code, saved.json()["code"]) == (422, "rule_never_fires"), case
            assert case.never in str(saved.json()), case
        else:
            assert case.says in shown.json()["text"], case
            assert saved.status_code == 201, saved.text
            assert case.says in saved.json()["text"], case
            assert not case.first or shown.json()["slots"][0] == saved.json()["next_at"] == case.first, case


def test_what_if_begins_after_now(lodge: RunningApi) -> None:
    lodge.engine.schedules.create("acme", "hourly", script="job", rules="0 * * * *", tz=BERLIN)
    found = lodge.ask("POST", "/tenants/acme/schedules/hourly/what-if", {"rules": ["30 * * * *"]}).json()
    assert found["dropped"][0] == "2026-01-01T01:00:00Z", "the slot of this very instant is no more changed"
    assert found["added"][0] == "2026-01-01T00:30:00Z"


def test_an_instant_that_utc_lacks_is_refused(lodge: RunningApi) -> None:
    for bound in (
        {"start": "0001-01-01T00:00:00+14:00"},
        {"end": "9999-12-31T23:59:59-12:00"},
        {"after": "0001-01-01T00:00:00+01:00"},
    ):
        answer = lodge.ask("POST", "/preview", {"rules": ["0 9 * * *"], **bound})
        assert (answer.status_code, answer.json()["code"]) == (422, "time_invalid"), answer.text
