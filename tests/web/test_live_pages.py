"""Open pages in a real browser say when they are old, follow what happens beside a focus, and do once what is clicked twice."""

import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.running_api import RunningApi, running_api
from tests.api.workers import worked
from tests.databases.fixtures import name, relay, server
from tests.databases.relay import Relay
from tests.web.browsing import WAIT_MS, Browser, Page, opened

from lodger.engine.store.drivers import patience
from lodger.engine.web import dashboard_link
from lodger.engine.web.dashboard import Dashboard

__all__ = ["name", "relay", "server"]
expect = pytest.importorskip(
    "playwright.sync_api", reason="NOT TESTED in a browser: playwright is not installed"
).expect
expect.set_options(timeout=WAIT_MS)
pytestmark = pytest.mark.timeout(120)
STALE = re.compile(r"This page shows the state of \d\d:\d\d:\d\d;")


@pytest.fixture(scope="module")
def lodge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningApi]:
    """A running API for the tests of this module."""
    with running_api(f"sqlite:///{tmp_path_factory.mktemp('live') / 'ledger.db'}") as made:
        made.furnish()
        made.token("admin")
        Dashboard(made.api).add()
        yield made


@pytest.fixture(scope="module")
def page(lodge: RunningApi, browser: Browser) -> Iterator[Page]:
    """A page that is signed in as an administrator."""
    with opened(browser, "Failed to load resource", viewport={"width": 1280, "height": 800}) as made:
        made.on("dialog", lambda dialog: dialog.accept())
        made.goto(lodge.url + str(dashboard_link.link(lodge.engine)))
        yield made


def test_a_page_says_that_it_is_old_while_database_or_server_do_not_answer(
    relay: Relay, name: str, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "PATIENCE_S", 2.0)
    with (
        running_api(relay.url(name, connect_timeout="2")) as lodge,
        opened(browser, "Failed to load resource") as page,
    ):
        lodge.furnish()
        lodge.token("admin")
        Dashboard(lodge.api).add()
        page.goto(lodge.url + str(dashboard_link.link(lodge.engine)))
        page.add_init_script(
            "const all = AbortSignal.timeout; AbortSignal.timeout = (ms) => all.call(AbortSignal, ms / 10)"
        )
        page.goto(lodge.url + "/t/acme/actions")
        expect(page.locator("main")).to_contain_text("None.")
        relay.cut()
        expect(page.locator("#stale")).to_contain_text(STALE)
        expect(page.locator("main")).to_contain_text("None.")
        away = page.request.get(lodge.url + "/t/acme", headers={"accept": "text/html"})
        assert (away.status, away.headers["content-type"]) == (503, "text/html; charset=utf-8")
        assert away.headers["x-request-id"] in away.text()
        relay.heal()
        expect(page.locator("#stale")).to_be_hidden()
        lodge.engine.actions.run_now("acme", "s")
        expect(page.locator("tbody tr")).to_have_count(1)
        for status in (429, 502):
            page.route(
                "**/t/acme/actions", lambda route, _request, status=status: route.fulfill(status=status, body="no")
            )
            expect(page.locator("#stale")).to_contain_text(str(status))
            page.unroute("**/t/acme/actions")
            expect(page.locator("#stale")).to_be_hidden()
        page.route("**/t/acme/actions", lambda _route: None)  # which nothing answers
        expect(page.locator("#stale")).to_contain_text("The server does not answer")
        page.unroute("**/t/acme/actions")
        expect(page.locator("#stale")).to_be_hidden()
        page.context.set_offline(True)
        expect(page.locator("#stale")).to_contain_text("The server does not answer")
        page.context.set_offline(False)
        expect(page.locator("#stale")).to_be_hidden()


def test_a_double_click_runs_once_and_leads_to_the_run(lodge: RunningApi, page: Page) -> None:
    page.goto(f"{lodge.url}/t/acme/schedules/s")
    page.get_by_role("button", name="Run now").dblclick()
    page.wait_for_url("**/actions/*")
    (asked,) = lodge.engine.actions.list("acme", "s")
    assert page.url.endswith(asked.id)
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("h1")).to_contain_text("cancelled")
    page.get_by_role("button", name="Replay", exact=True).dblclick()
    page.wait_for_url(re.compile(rf"/actions/(?!{asked.id})"))
    assert [each.origin for each in lodge.engine.actions.list("acme", "s")] == ["replay", "run_now"]


def test_a_page_follows_beside_the_focus_and_leaves_what_is_typed(lodge: RunningApi, page: Page) -> None:
    lodge.engine.schedules.create("acme", "typed", script="job", rules="every 60s")
    page.goto(f"{lodge.url}/t/acme/schedules/typed")
    page.locator("#dry-run > summary").focus()
    page.locator("#pause > summary").click()
    page.fill("#pause [name=note]", "half a sente")
    lodge.engine.schedules.pause("acme", "typed", note="by another")
    expect(page.locator("h1")).to_contain_text("paused")
    assert page.input_value("#pause [name=note]") == "half a sente"
    page.locator("#dry-run > summary").focus()
    lodge.engine.schedules.resume("acme", "typed")
    expect(page.locator("h1")).to_contain_text("armed")
    assert page.evaluate("document.activeElement.textContent") == "Dry run"
    page.goto(f"{lodge.url}/t/acme/actions?schedule=typed")
    page.locator("[name=state]").select_option("failed")
    lodge.engine.actions.run_now("acme", "typed")
    expect(page.locator("tbody tr")).to_have_count(1)
    assert page.input_value("[name=state]") == "failed"


def test_errors_are_pages_with_the_id_that_the_log_has(
    lodge: RunningApi, page: Page, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, status in (("/nowhere", 404), ("/t/absent", 404), ("/actions?since=x", 422)):
        answer = page.goto(lodge.url + path)
        assert answer is not None
        assert (answer.status, page.locator("h1").count()) == (status, 1)
        assert answer.headers["x-request-id"] in page.locator("main").inner_text()
    logging.getLogger("lodger").addHandler(caplog.handler)
    try:
        monkeypatch.setattr("lodger.engine.web.pages.schedules.SPARK_RUNS", "not a number")
        page.goto(f"{lodge.url}/t/acme/schedules")
        shown = page.locator("main code").nth(1).inner_text()
    finally:
        logging.getLogger("lodger").removeHandler(caplog.handler)
    (line,) = {each.getMessage() for each in caplog.records if shown in each.getMessage()}
    assert "GET /t/acme/schedules failed with 500" in line


def test_times_are_shown_and_typed_in_the_schedules_zone_then_in_the_chosen_one(
    lodge: RunningApi, browser: Browser
) -> None:
    lodge.engine.schedules.create("acme", "early", script="job", rules="0 2 * * 1,3,5", tz="Asia/Kolkata")
    with opened(browser, timezone_id="America/New_York", viewport={"width": 1280, "height": 800}) as page:
        page.goto(lodge.url + str(dashboard_link.link(lodge.engine)))
        page.goto(f"{lodge.url}/t/acme/schedules/early")
        slots, footer = page.locator(".slots"), page.locator("footer")
        expect(slots).to_contain_text("2026-01-02 02:00:00")
        expect(footer).to_contain_text("Times are in Asia/Kolkata")
        days = page.locator(".months td.slots-2").all_text_contents()
        assert days[:3] == ["2: 1 slot", "5: 1 slot", "7: 1 slot"]
        page.locator("#pause > summary").click()
        page.locator("#pause [name=until]").fill("2026-02-01T09:00")
        page.locator("#pause").get_by_role("button", name="Pause").click()
        expect(page.locator("h1")).to_contain_text("paused")
        until = lodge.engine.schedules.get("acme", "early").wake_at
        assert until is not None
        assert until.isoformat() == "2026-02-01T03:30:00+00:00"
        lodge.engine.schedules.resume("acme", "early")
        for choice, shown in (("browser", "2026-01-01 15:30:00"), ("UTC", "2026-01-01 20:30:00")):
            page.get_by_label("Times in").select_option(choice)
            expect(slots).to_contain_text(shown)
        assert slots.locator("time").first.get_attribute("title") == "2026-01-01 20:30:00 UTC"
        page.get_by_label("Times in").select_option("browser")
        expect(slots).to_contain_text("2026-01-01 15:30:00")  # the choice reloads the page
        page.goto(f"{lodge.url}/t/acme/actions")
        assert page.locator("[name=since]").get_attribute("max") == "9999-12-31T23:59", "a year has four digits"
        page.locator("[name=since]").fill("2026-01-01T00:00")
        page.get_by_role("button", name="Filter").click()
        page.wait_for_url("**since=2026-01-01T05%3A00%3A00.000Z**")
        expect(page.locator("[name=since]")).to_have_value("2026-01-01T00:00")


def test_a_page_that_is_slow_to_come_is_drawn_without_its_words_until_the_reader_stays(
    lodge: RunningApi, page: Page
) -> None:
    page.goto(f"{lodge.url}/t/acme/schedules")
    held: list[Any] = []
    page.route("**/t/acme/scripts", lambda route: held.append(route))
    drawn = """new Promise((drawn) => {
      document.querySelector('main').addEventListener('animationend', ({ target }) => {
        if (target.matches('main')) drawn(getComputedStyle(document.querySelector('tbody td')).webkitTextFillColor);
      });
      document.querySelector('nav a[href$=scripts]').click();
    })"""
    cell, unseen = page.locator("tbody td").first, "rgba(0, 0, 0, 0)"
    assert page.evaluate(drawn) == unseen
    for each in held:
        each.abort("aborted")
    page.unroute("**/t/acme/scripts")
    page.keyboard.press("Shift")
    expect(cell).not_to_have_css("-webkit-text-fill-color", unseen)
    assert page.url.endswith("/t/acme/schedules")


def test_a_form_says_that_another_has_changed_what_it_edits(lodge: RunningApi, page: Page) -> None:
    engine, told = lodge.engine, page.locator("#notice")
    engine.tenants.create("shared")
    engine.scripts.put("shared", "job", "export default () => 1")
    engine.schedules.create("shared", "s", script="job", rules="every 60s")
    page.goto(f"{lodge.url}/t/shared/operations/schedules.edit?schedule=s")
    page.get_by_label("Jitter").fill("5")
    engine.schedules.edit("shared", "s", jitter_s=9)
    page.get_by_role("button", name="Edit").click()
    expect(told).to_contain_text("has changed since it was read")
    assert engine.schedules.get("shared", "s").conduct["jitter_s"] == 9
    page.reload()
    page.get_by_label("Jitter").fill("5")
    page.get_by_role("button", name="Edit").click()
    page.wait_for_url("**/t/shared/schedules/s")
    assert engine.schedules.get("shared", "s").conduct["jitter_s"] == 5
    page.goto(f"{lodge.url}/t/shared/settings")
    page.get_by_text("The whole tenant").click()
    page.locator("input[name=runs_per_day]").fill("50")
    engine.tenants.edit("shared", limits={"concurrent_runs": 3})
    page.get_by_role("button", name="Save limits").click()
    expect(told).to_contain_text("has changed since it was read")
    page.get_by_label("Addresses").fill("bob@shop.example")
    engine.grants.people("shared", ["ann@shop.example"])
    page.get_by_role("button", name="Save people").click()
    expect(told).to_contain_text("has changed since it was read")
    found = engine.tenants.get("shared")
    assert (found.limits, list(found.people)) == ({"concurrent_runs": 3}, ["ann@shop.example"])


def test_a_run_that_is_retried_is_followed_to_its_end_and_replayed_with_the_mended_script(
    lodge: RunningApi, page: Page
) -> None:
    engine, head = lodge.engine, page.locator("h1")
    engine.tenants.create("mends")
    engine.scripts.put("mends", "job", "export default () => null.x")
    engine.schedules.create("mends", "s", script="job", rules="0 9 1 1 *")
    asked = engine.actions.run_now("mends", "s")
    worked(lodge, fails=True)
    page.goto(f"{lodge.url}/t/mends/actions/{asked.id}")
    expect(head).to_contain_text("error in the script")
    page.context.set_offline(True)
    page.get_by_role("button", name="Retry").click()
    expect(page.locator("#notice")).to_have_text("The server does not answer")
    page.context.set_offline(False)
    page.get_by_role("button", name="Retry").click()
    expect(head).to_contain_text("ready")
    expect(head).not_to_contain_text("error in the script")
    worked(lodge, fails=True)
    expect(head).to_contain_text("error in the script")
    engine.scripts.put("mends", "job", "export default () => 1")
    page.get_by_role("button", name="Replay with the newest version").click()
    page.wait_for_url(re.compile(rf"/actions/(?!{asked.id})"))
    worked(lodge)
    expect(head).to_contain_text("done")
    expect(page.locator("main")).to_contain_text("job, version 2")


def test_who_is_signed_out_keeps_what_is_typed_and_goes_on_after_signing_in_beside_it(
    lodge: RunningApi, page: Page
) -> None:
    lodge.engine.schedules.create("acme", "kept", script="job", rules="every 60s")
    page.goto(f"{lodge.url}{dashboard_link.link(lodge.engine)}&next=/t/acme/schedules/kept")
    page.wait_for_url("**/schedules/kept")
    page.locator("#pause > summary").click()
    page.fill("#pause [name=note]", "a long reason")
    cookies = page.context.cookies()
    page.context.clear_cookies()
    expect(page.locator("#stale")).to_contain_text("You are signed out")
    page.locator("#pause").get_by_role("button", name="Pause").click()
    expect(page.locator("#notice")).to_contain_text("You are signed out")
    page.context.add_cookies(cookies)
    expect(page.locator("#stale")).to_be_hidden()
    page.locator("#pause").get_by_role("button", name="Pause").click()
    expect(page.locator("h1")).to_contain_text("paused")
    assert lodge.engine.schedules.get("acme", "kept").note == "a long reason"
    page.goto(f"{lodge.url}/t/acme/new-script")
    page.wait_for_selector("[data-ready]")
    page.fill("[name=name]", "kept")
    page.locator("[data-editor] .cm-content").click()
    page.keyboard.type("// one ")
    page.context.clear_cookies()
    page.keyboard.type("two")
    expect(page.locator("#notice")).to_contain_text("You are signed out")
    page.context.add_cookies(cookies)
    page.goto(f"{lodge.url}/t/acme/schedules/kept")
    page.context.clear_cookies()
    page.wait_for_url("**/sign-in?next=/t/acme/schedules/kept")
