"""The dashboard in a real browser: signing in by the link, a rule and a source as they are typed, and changes by their buttons."""

import shutil
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
from tests.api.house import House

from lodger.engine.web import sign_in

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
    page.click("[data-opens=pause]")
    page.fill("#pause [name=note]", "maintenance")
    page.click("text=Pause now")
    expect(page.locator("h1")).to_contain_text("paused")
    assert lodge.engine.schedules.get("acme", "s").note == "maintenance"
    page.click("text=Resume")
    expect(page.locator("h1")).to_contain_text("armed")
    page.click("text=Run now")
    expect(page.locator("text=ready")).to_have_count(1)
    expect(page.locator("#notice")).to_have_text("Done.")
    assert [each.origin for each in lodge.engine.actions.list("acme", "s")] == ["run_now"]
    page.click("text=Change the rule")
    page.check("[value=text]")
    page.fill("[data-rule]", "0 9 * * 1-5")
    expect(page.locator("[data-preview-of]")).to_contain_text("At 09:00, on Monday through Friday (UTC)")
    page.click("text=Save")
    expect(page.locator("main > .lead")).to_contain_text("on Monday through Friday")
    entries = lodge.engine.audit.list("acme")
    assert {"schedules.pause", "schedules.resume", "schedules.edit"} <= {each.verb for each in entries}


def test_a_source_is_checked_run_dry_and_stored_by_its_page(lodge: House, page: "sync_api.Page") -> None:
    expect = sync_api.expect
    page.goto(f"{lodge.url}/t/acme/scripts/job")
    page.fill("[data-source]", "export default () => {\n  retrun 1\n}")
    expect(page.locator("[data-check-of]")).to_contain_text("line 2:")
    page.fill("[data-source]", 'export default () => {\n  console.log("seen"); return 7\n}')
    expect(page.locator("[data-check-of]")).to_have_text("It compiles.")
    page.click("button:has-text('Dry run')")
    expect(page.locator("[data-result]")).to_contain_text("seen")
    expect(page.locator("[data-result] .code").first).to_have_text("7")
    page.click("text=Store a new version")
    expect(page.locator("h1")).to_contain_text("version 2")
    assert lodge.engine.scripts.get("acme", "job").version == 2


def test_an_open_page_follows_what_happens(lodge: House, page: "sync_api.Page") -> None:
    page.goto(f"{lodge.url}/t/acme/actions")
    sync_api.expect(page.locator("main")).to_contain_text("None.")
    lodge.engine.actions.run_now("acme", "s")
    sync_api.expect(page.locator("tbody tr")).to_have_count(1)


def test_every_page_has_one_heading_names_for_its_fields_and_signs_out(lodge: House, page: "sync_api.Page") -> None:
    paths = (
        "/",
        "/tenants",
        "/audit",
        *(
            f"/t/acme{each}"
            for each in ("", "/schedules", "/schedules/s", "/new-schedule", "/scripts/job", "/new-script")
        ),
    )
    for path in paths:
        page.goto(lodge.url + path)
        assert page.locator("h1").count() == 1, path
        fields = page.locator("input, select, textarea").all()
        named = "field => field.labels.length || field.ariaLabel"
        assert all(field.evaluate(named) for field in fields), path
        assert all(page.locator("button").all_text_contents()), path
    page.click("text=Sign out")
    page.wait_for_url("**/sign-in")
    assert list(chain(page.context.cookies())) == []
