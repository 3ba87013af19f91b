"""The dashboard in a real browser: signing in by the link, a rule and a source as they are typed, and changes by their buttons."""

import shutil
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
from tests.api.house import House
from tests.store.bench import node_id

from lodger.engine.core.execution import Finished
from lodger.engine.effects import outcome_commit
from lodger.engine.store.lifecycle import claims, leases, running_lines
from lodger.engine.web import sign_in
from lodger.sandbox.job import LogLine
from lodger.sandbox.outcome import Outcome

sync_api = pytest.importorskip("playwright.sync_api", reason="NOT TESTED in a browser: playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="NOT TESTED in a browser: no Chromium (apt-get install chromium)"),
    pytest.mark.timeout(180),
]
QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture
def page(lodge: House, tmp_path: Path) -> Iterator["sync_api.Page"]:
    """A page that is signed in as an administrator; the browser's complaints fail the test."""
    lodge.token("admin")
    complaints: list[str] = []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        opened = browser.new_page()
        opened.set_default_timeout(60_000)
        opened.on("pageerror", lambda error: complaints.append(str(error)))
        opened.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        opened.on("dialog", lambda dialog: dialog.accept("maintenance"))
        opened.goto(lodge.url + str(sign_in.link(lodge.engine)))
        yield opened
        browser.close()
    # What the server refuses (a rule half typed) the browser notes, too.
    assert [each for each in complaints if "status of 4" not in each] == []


def test_a_schedule_is_paused_resumed_changed_and_run_by_its_page(lodge: House, page: "sync_api.Page") -> None:
    expect = sync_api.expect
    page.goto(f"{lodge.url}/t/acme/schedules/s")
    page.click("text=Pause")
    expect(page.locator("h1")).to_contain_text("paused")
    assert lodge.engine.schedules.get("acme", "s").note == "maintenance"
    page.click("text=Resume")
    expect(page.locator("h1")).to_contain_text("armed")
    page.click("text=Run now")
    expect(page.locator("text=ready")).to_have_count(1)
    expect(page.locator("#notice")).to_have_text("Done.")
    assert [each.origin for each in lodge.engine.actions.list("acme", "s")] == ["run_now"]
    page.fill("[data-preview]", "0 9 * * 1-")
    expect(page.locator("[data-preview-of]")).to_have_class("warn")
    page.fill("[data-preview]", "0 9 * * 1-5")
    expect(page.locator("[data-preview-of]")).to_contain_text("At 09:00, on Monday through Friday (UTC)")
    page.click("text=Save")
    expect(page.locator(".lead")).to_contain_text("on Monday through Friday")
    entries = lodge.engine.audit.list("acme")
    assert {"schedules.pause", "schedules.resume", "schedules.edit"} <= {each.verb for each in entries}


def test_a_source_is_checked_run_dry_and_stored_by_its_page(lodge: House, page: "sync_api.Page") -> None:
    expect = sync_api.expect
    page.goto(f"{lodge.url}/t/acme/scripts/job")
    page.fill("textarea", "export default () => {\n  retrun 1\n}")
    expect(page.locator("[data-check-of]")).to_contain_text("line 2:")
    page.fill("textarea", 'export default () => {\n  console.log("seen"); return 7\n}')
    expect(page.locator("[data-check-of]")).to_have_text("It compiles.")
    page.click("text=Dry run")
    expect(page.locator("[data-dry-run-of]")).to_contain_text("seen")
    expect(page.locator("[data-dry-run-of]")).to_contain_text("result 7")
    page.click("text=Store a new version")
    expect(page.locator("h1")).to_contain_text("version 2")
    assert lodge.engine.scripts.get("acme", "job").version == 2


def test_an_open_page_follows_what_happens(lodge: House, page: "sync_api.Page") -> None:
    page.goto(f"{lodge.url}/t/acme/actions")
    sync_api.expect(page.locator("main")).to_contain_text("None.")
    lodge.engine.actions.run_now("acme", "s")
    sync_api.expect(page.locator("tbody tr")).to_have_count(1)


def test_a_log_grows_and_the_action_ends_on_an_open_page(lodge: House, page: "sync_api.Page") -> None:
    expect = sync_api.expect
    asked = lodge.engine.actions.run_now("acme", "s")
    context, now_us = lodge.engine.context, lodge.clock.us
    with context.database.write() as connection:
        lease = leases.register(context, connection, node_id("n"), "n", now_us)
    with context.database.write() as connection:
        (claim,) = claims.claim(context, connection, lease, 1, now_us)
    page.goto(f"{lodge.url}/t/acme/actions/{asked.id}")
    expect(page.locator("h1")).to_contain_text("running")
    for number in range(40):
        lines = (LogLine("info", f"line {number}"),)
        with context.database.write() as connection:
            running_lines.write(connection, [running_lines.Batch("acme", asked.id, 0, 1, number, lines)], now_us)
    expect(page.locator(".log")).to_contain_text("line 39")
    at_end = "log => log.scrollTop + log.clientHeight >= log.scrollHeight - 4 && log.scrollHeight > log.clientHeight"
    assert page.locator(".log").evaluate(at_end), "it follows its end"
    with context.database.write() as connection:
        outcome_commit.commit(context, connection, lease, [(claim, Finished(Outcome.OK, "1"))], now_us)
    expect(page.locator("h1")).to_contain_text("done")
    expect(page.locator(".live")).to_have_count(0)


def test_every_page_has_one_heading_names_for_its_fields_and_signs_out(lodge: House, page: "sync_api.Page") -> None:
    paths = (
        "/",
        "/tenants",
        "/audit",
        *(f"/t/acme{each}" for each in ("", "/schedules", "/schedules/s", "/scripts/job")),
    )
    for path in paths:
        page.goto(lodge.url + path)
        assert page.locator("h1").count() == 1, path
        fields = page.locator("input, select, textarea").all()
        assert all(field.evaluate("field => field.labels.length") for field in fields), path
        assert all(page.locator("button").all_inner_texts()), path
    page.click("text=Sign out")
    page.wait_for_url("**/sign-in")
    assert list(chain(page.context.cookies())) == []
