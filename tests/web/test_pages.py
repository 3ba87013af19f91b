"""The dashboard's pages over HTTP: sign-in, roles, tenants, hostile text, and what many open pages cost."""

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx2
from sqlalchemy import event
from tests.api.running_api import NO_CERTIFICATES, RunningApi
from tests.api.workers import worked

from lodger.engine.store.records import Change
from lodger.engine.store.tenants import sessions
from lodger.engine.web import dashboard_link
from lodger.engine.web.dashboard import STATIC
from lodger.engine.web.rendering import field_changes
from lodger.sandbox.job import ScriptError
from lodger.stdlib import declarations
from lodger.stdlib.calls import CALLS

SignIn = Callable[..., httpx2.Client]
OF_PLATFORM = ("/", "/tenants", "/schedules", "/actions", "/durations", "/audit")


def test_a_browser_without_a_session_is_sent_to_the_sign_in_page(lodge: RunningApi) -> None:
    for path in (*OF_PLATFORM, "/t/acme"):
        answer = lodge.http.get(lodge.url + path, headers={"accept": "text/html"})
        assert answer.status_code == 303
        assert answer.headers["location"].partition("?next=")[::2] == ("/sign-in", path.removeprefix("/") and path)
        assert lodge.http.get(lodge.url + path).status_code == 401, "a program gets a problem document"
    assert '<input name="token"' in lodge.http.get(lodge.url + "/sign-in").text
    for name, media in STATIC.items():
        answer = lodge.http.get(f"{lodge.url}/static/{name}")
        assert (answer.status_code, answer.headers["content-type"]) == (200, media)
        again = lodge.http.get(f"{lodge.url}/static/{name}", headers={"if-none-match": answer.headers["etag"]})
        assert (again.status_code, again.content, answer.headers["content-encoding"]) == (304, b"", "gzip")
        # A proxy that packs the file itself makes the tag weak.
        weak = lodge.http.get(f"{lodge.url}/static/{name}", headers={"if-none-match": f"W/{answer.headers['etag']}"})
        assert (weak.status_code, weak.content) == (304, b"")
        named = lodge.http.get(f"{lodge.url}/static/{name}?{answer.headers['etag'].strip(chr(34))}")
        assert "immutable" in named.headers["cache-control"]


def test_a_link_signs_in_once(lodge: RunningApi) -> None:
    assert dashboard_link.link(lodge.engine) is None, "there is no administrator yet"
    lodge.token("admin")
    path = dashboard_link.link(lodge.engine)
    with lodge.browser() as browser:
        answer = browser.get(str(path), headers={"sec-fetch-site": "none"})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert "HttpOnly" in answer.headers["set-cookie"]
        assert "SameSite=strict" in answer.headers["set-cookie"]
        assert browser.get("/tenants").status_code == 200
    again = lodge.http.get(lodge.url + str(path))
    assert again.status_code == 401
    assert "set-cookie" not in again.headers
    late = dashboard_link.link(lodge.engine)
    lodge.clock.advance(sessions.CODE_LIFE_US / 1e6 + 1)
    assert lodge.http.get(lodge.url + str(late)).status_code == 401


def test_the_code_of_a_link_is_no_session(lodge: RunningApi) -> None:
    made = lodge.token("admin")
    codes = [str(dashboard_link.link(lodge.engine)).partition("code=")[2] for _ in range(3)]
    with httpx2.Client(base_url=lodge.url, trust_env=False, verify=NO_CERTIFICATES) as thief:
        for code in codes:
            for headers in ({"cookie": f"lodger={code}"}, {"authorization": f"Bearer {code}"}):
                assert thief.get("/api/v1/me", headers=headers).status_code == 401
                assert (
                    thief.post("/api/v1/tokens", json={"name": "x", "role": "admin"}, headers=headers).status_code
                    == 401
                )
    assert lodge.http.get(f"{lodge.url}/sign-in?code={codes[0]}").status_code == 200
    used, revoked = codes[:2]
    assert lodge.http.get(f"{lodge.url}/sign-in?code={used}").status_code == 401
    lodge.engine.tokens.revoke(made.partition("_")[0] + "_" + made.split("_")[1])
    assert lodge.http.get(f"{lodge.url}/sign-in?code={revoked}").status_code == 401, "its token is revoked"
    verbs = [row.verb for row in lodge.engine.audit.list(limit=None)]
    assert verbs.count("tokens.sign_in_code") == 3
    assert verbs.count("sessions.begin") == 1


def test_an_error_page_says_what_happened_and_how_to_fix_it(signed_in: SignIn) -> None:
    answer = signed_in("admin").get("/t/acme/schedules/absent")
    assert answer.status_code == 404
    assert "schedule_unknown" in answer.text
    assert "To fix it:" in answer.text


def test_an_action_shows_the_authors_line_in_every_kind_of_file(lodge: RunningApi, signed_in: SignIn) -> None:
    put, browser = lodge.engine.scripts.put, signed_in("viewer", "acme")
    mapped = {"version": 3, "sources": ["src/sum.ts", "b"], "sourcesContent": ["\n  <mapped>", 7], "mappings": "AAAA"}
    put("acme", "money", {"index.js": "\n  library", "lib/half.js": "\n  inLib"}, force=True)
    put("acme", "helper", {"main.js": "\n  other"}, force=True)
    job = {
        "main.js": "import 'lib:money@1'; import '../helper/main.js';\n" + "x" * 9000,
        "main.js.map": json.dumps(mapped | {"sourceRoot": ".."}),
    }
    put("acme", "job", job, force=True)
    for file, shown in {
        "lib:money@1/index.js": "library", "lib:money@1/lib/half.js": "inLib", "../helper/main.js": "other",
        "../src/sum.ts": "&lt;mapped&gt;", "../b": None, "lib:other@1/index.js": None, "main.js": "x" * 40,
    }.items():  # fmt: skip
        asked = lodge.engine.actions.run_now("acme", "s")
        worked(lodge, fails=True, error=ScriptError("E", "no", file=file, line=2))
        text = browser.get(f"/t/acme/actions/{asked.id}").text
        lines = re.findall(r"^  2 \| +(\S{1,40})", text, re.MULTILINE)
        assert lines == ([] if shown is None else [shown]), file
        assert "<b>E</b>: no" in text
        lodge.clock.advance(60)


def test_the_list_of_schedules_shows_last_runs_and_next_slots_in_a_fixed_number_of_statements(
    lodge: RunningApi, signed_in: SignIn
) -> None:
    for number in range(30):
        lodge.engine.schedules.create("acme", f"s{number}", script="job", rules="every 3h")
    lodge.engine.actions.run_now("acme", "s")
    worked(lodge, fails=True)
    browser = signed_in("viewer", "acme")
    asked: list[str] = []

    @event.listens_for(lodge.engine.context.database.engine, "before_cursor_execute")
    def note(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
        if "FROM lodger_actions" in statement:
            asked.append(statement)

    try:
        text = browser.get("/t/acme/schedules").text
    finally:
        event.remove(lodge.engine.context.database.engine, "before_cursor_execute", note)
    assert len(asked) == 2
    assert ">error in the script</a>" in text
    assert re.search(r'data-relative="1" title="2026-01-01 03:00:00 UTC">2026-01-01 03:00:00</time>', text)


def test_a_schedules_calendar_says_each_day_in_words(lodge: RunningApi, signed_in: SignIn) -> None:
    lodge.engine.actions.run_now("acme", "s")
    worked(lodge)
    lodge.engine.actions.run_now("acme", "s")
    worked(lodge, fails=True)
    text = signed_in("viewer", "acme").get("/t/acme/schedules/s").text
    assert '>1!<span class="hidden">: 1 done, 1 failed</span>' in text
    assert '>31<span class="hidden">: nothing ran</span>' in text
    assert '>2<span class="hidden">: 1440 slots</span>' in text


def test_the_editor_is_given_the_shipped_types_with_a_description_of_each_call(signed_in: SignIn) -> None:
    text = signed_in("editor", "acme").get("/static/lodger.d.ts").text
    assert text == declarations.text()
    for call in CALLS:
        noun, _dot, verb = call.partition(".")
        if noun in {"db", "kv", "mail", "events", "schedule", "secrets"}:
            assert re.search(rf"\*/\s*(?:declare function )?{verb}[<(]", text), call


def test_many_open_pages_are_rendered_once(lodge: RunningApi, signed_in: SignIn) -> None:
    """A page is reused for a second: what sixty open pages ask of the ledger beyond sessions is what one asks."""
    browser = signed_in("operator")
    asked: list[str] = []

    @event.listens_for(lodge.engine.context.database.engine, "before_cursor_execute")
    def note(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
        if (
            "FROM lodger_sessions" not in statement
            and "lodger_tokens" not in statement
            and "lodger_actions" in statement
        ):
            asked.append(statement)

    try:
        browser.get("/actions?state=done")
        alone = len(asked)
        assert alone > 0
        asked.clear()
        with ThreadPoolExecutor(20) as threads:
            answers = list(threads.map(lambda _: browser.get("/actions?state=failed"), range(60)))
    finally:
        event.remove(lodge.engine.context.database.engine, "before_cursor_execute", note)
    assert {each.status_code for each in answers} == {200}
    # As many rounds as the answers took seconds, and not one for each.
    assert len(asked) < 30 * alone


def test_the_audit_log_shows_each_changed_field_before_and_after(lodge: RunningApi, signed_in: SignIn) -> None:
    lodge.engine.tenants.edit("acme", limits={"runs_per_day": 5, "cpu_ms": 100})
    lodge.engine.tenants.edit("acme", limits={"runs_per_day": 7})
    (latest, *_) = lodge.engine.audit.list("acme", verb="tenants.edit")
    changed = (Change("limits.runs_per_day", "5", "7"), Change("limits.cpu_ms", "100", None))
    assert field_changes(latest.before, latest.after) == changed
    text = signed_in("viewer", "acme").get("/t/acme/audit").text
    assert "<dt>limits.runs_per_day</dt><dd><del>5</del> <ins>7</ins></dd>" in text
    assert field_changes(None, {"name": "n", "note": None, "labels": []}) == (Change("name", None, "n"),)


def test_every_operation_has_its_form_or_its_result(lodge: RunningApi, signed_in: SignIn) -> None:
    lodge.engine.locks.take("nightly", "host-1")
    admin, viewer = signed_in("admin"), signed_in("viewer", "acme")
    shown: set[str] = set()
    for base, client, least in (("/t/acme", admin, 60), ("", admin, 80), ("/t/acme", viewer, 30)):
        index = client.get(f"{base}/operations").text
        names = re.findall(r'href="[^"]*/operations/([\w.]+)"', index)
        assert len(names) >= least, base
        for name in sorted({*names} - shown if client is admin else names):
            shown.add(name)
            answer = client.get(f"{base}/operations/{name}")
            assert answer.status_code == 200, (base, name)
            assert "Your role may not" not in answer.text, (base, name)
            side_bar = answer.text.partition("<nav ")[2].partition("</nav>")[0]
            assert side_bar.count("aria-current") == 1, (base, name)
    unset = admin.get("/t/acme/operations/tenants.place").text
    assert ("this engine has one ledger" in unset, "To fix it: set LODGER_LEDGERS" in unset) == (True, True)
    found = admin.get("/operations/locks.list").text
    assert "nightly" in found
    assert "/operations/locks.free?name=nightly&amp;holder=" in found
    edit = admin.get("/t/acme/operations/schedules.edit?schedule=s").text
    assert 'data-call="PATCH /tenants/acme/schedules/{schedule}"' in edit
    assert re.search('name="schedule"[^>]* value="s"', edit)
    assert re.search(r'<textarea name="rules"[^>]*>every 60s</textarea>', edit)
    assert re.search('<select name="priority".*?<option value="normal" selected>normal</option>', edit, re.DOTALL)
    assert "Your role may not do this" in viewer.get("/t/acme/operations/schedules.edit").text
    assert "data-call" not in viewer.get("/t/acme/operations/schedules.edit").text
    refused = admin.get("/t/acme/operations/actions.overdue?limit=many")
    assert (refused.status_code, "request_invalid" in refused.text) == (400, True)
    assert [admin.get(f"{base}/operations/nothing.here").status_code for base in ("", "/t/acme", "/t/nobody")] == [
        404
    ] * 3
    assert admin.get("/t/nobody/operations").status_code == 404
    assert signed_in("viewer", "other").get("/t/acme/operations/schedules.list").status_code == 404
