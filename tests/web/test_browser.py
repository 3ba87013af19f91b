"""The dashboard in a real browser: signing in by the link, a rule and a source as they are typed, and changes by their buttons."""

import re
from collections.abc import Iterator

import pytest
from tests.api.running_api import RunningApi, running_api
from tests.store.bench import node_id
from tests.web.browsing import WAIT_MS, Browser, Page, opened

from lodger.engine.effects import outcome_commit
from lodger.engine.effects.finished import Finished
from lodger.engine.store.lifecycle import claims, leases, running_lines
from lodger.engine.web import sign_in
from lodger.engine.web.dashboard import Dashboard
from lodger.sandbox.job import LogLine
from lodger.sandbox.outcome import Outcome

expect = pytest.importorskip(
    "playwright.sync_api", reason="NOT TESTED in a browser: playwright is not installed"
).expect
expect.set_options(timeout=WAIT_MS)
pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def lodge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningApi]:
    """A running API for the tests of this module, each with a tenant of its own."""
    with running_api(f"sqlite:///{tmp_path_factory.mktemp('browser') / 'ledger.db'}") as made:
        for tenant in ("acme", "quiet", "typed", "stopped"):
            made.furnish(tenant)
        made.token("admin")
        Dashboard(made.api).add()
        yield made


@pytest.fixture
def page(lodge: RunningApi, browser: Browser) -> Iterator[Page]:
    """A page that is signed in as an administrator."""
    with opened(browser) as made:
        made.on("dialog", lambda dialog: dialog.accept("maintenance"))
        made.goto(lodge.url + str(sign_in.link(lodge.engine)))
        yield made


def test_a_schedule_is_paused_resumed_changed_and_run_by_its_page(lodge: RunningApi, page: Page) -> None:
    page.goto(f"{lodge.url}/t/acme/schedules/s")
    page.click("#pause > summary")
    page.fill("#pause [name=note]", "maintenance")
    page.click("text=Pause now")
    expect(page.locator("h1")).to_contain_text("paused")
    assert lodge.engine.schedules.get("acme", "s").note == "maintenance"
    page.click("text=Resume")
    expect(page.locator("h1")).to_contain_text("armed")
    expect(page.locator("#notice")).to_have_text("Done.")
    page.click("text=Change the rule")
    page.check("[value=text]")
    page.fill("[data-rule]", "0 9 * * 1-5")
    expect(page.locator(".preview")).to_contain_text("At 09:00, on Monday through Friday (UTC)")
    page.click("text=Save")
    expect(page.locator("main > .lead")).to_contain_text("on Monday through Friday")
    page.get_by_role("link", name="Edit", exact=True).click()
    page.get_by_label(re.compile("^Name")).fill("renamed")
    expect(page.get_by_label(re.compile("^Start, "))).to_be_visible()
    page.get_by_role("button", name="Edit").click()
    page.wait_for_url("**/schedules/renamed")
    entries = lodge.engine.audit.list("acme")
    assert {"schedules.pause", "schedules.resume", "schedules.edit"} <= {each.verb for each in entries}


def test_a_script_is_stopped_by_its_page_and_its_actions_say_so(lodge: RunningApi, page: Page) -> None:
    page.goto(f"{lodge.url}/t/stopped/scripts/job")
    page.get_by_role("button", name="Suspend").click()
    expect(page.locator("h1")).to_contain_text("suspended")
    lodge.engine.actions.run_now("stopped", "s")
    lodge.clock.advance(60)
    page.goto(f"{lodge.url}/t/stopped")
    expect(page.locator("main")).to_contain_text("script suspended")
    page.goto(f"{lodge.url}/t/stopped/scripts/job")
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Suspend")).to_be_visible()
    assert lodge.engine.scripts.get("stopped", "job").state == "active"


def test_a_tenant_is_made_limited_granted_and_stopped_by_its_page(lodge: RunningApi, page: Page) -> None:
    engine = lodge.engine
    page.goto(lodge.url + "/tenants")
    page.get_by_label("Id", exact=True).fill("fresh")
    page.get_by_role("button", name="Create").click()
    page.wait_for_url("**/t/fresh/settings")
    page.get_by_text("The whole tenant").click()
    page.locator("input[name=runs_per_day]").fill("50")
    page.get_by_role("button", name="Save limits").click()
    expect(page.get_by_role("row", name=re.compile("^Attempts day"))).to_contain_text("50")
    assert engine.tenants.get("fresh").limits == {"runs_per_day": 50}
    page.get_by_label("Grants, such as").fill("fetch:api.example.com mail")
    page.get_by_role("button", name="Give").click()
    expect(page.get_by_role("button", name="Take fetch:api.example.com")).to_be_visible()
    page.get_by_role("button", name="Take mail").first.click()
    expect(page.get_by_role("button", name="Take mail")).to_have_count(0)
    tokens = page.locator("form[data-call='POST /tenants/fresh/tokens']")
    tokens.get_by_label("Name").fill("bob")
    tokens.get_by_role("button").click()
    expect(page.locator("#notice code")).to_be_focused()
    shown = page.locator("#notice code").inner_text()
    assert (
        lodge.http.get(lodge.url + "/api/v1/me", headers={"authorization": f"Bearer {shown}"}).json()["tenant_id"]
        == "fresh"
    )
    page.get_by_role("button", name="Revoke token bob").click()
    expect(page.locator("main")).to_contain_text("revoked")
    page.get_by_role("button", name="Suspend").click()
    expect(page.locator("h1")).to_contain_text("suspended")
    expect(page.locator("dl.changes").first).to_contain_text("active suspended")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("h1")).to_contain_text("active")
    assert {"tenants.create", "tenants.edit", "grants.give", "grants.take", "tokens.create", "tokens.revoke"} <= {
        each.verb for each in engine.audit.list("fresh")
    }


def test_a_log_grows_and_the_action_ends_on_an_open_page(lodge: RunningApi, page: Page) -> None:
    lodge.furnish("logged")
    asked = lodge.engine.actions.run_now("logged", "s")
    context, now_us = lodge.engine.context, lodge.clock.us
    with context.database.write() as connection:
        lease = leases.register(context, connection, node_id("n"), "n", now_us)
    with context.database.write() as connection:
        taken = claims.claim(context, connection, lease, 50, now_us)()
    page.goto(f"{lodge.url}/t/logged/actions/{asked.id}")
    expect(page.locator("h1")).to_contain_text("running")
    for number in range(40):
        lines = (LogLine("info", f"line {number}"),)
        with context.database.write() as connection:
            running_lines.write(connection, [running_lines.Batch("logged", asked.id, 0, 1, number, lines)], now_us)
    expect(page.locator(".log")).to_contain_text("line 39")
    at_end = "log => log.scrollTop + log.clientHeight >= log.scrollHeight - 4 && log.scrollHeight > log.clientHeight"
    assert page.locator(".log").evaluate(at_end), "it follows its end"
    with context.database.write() as connection:
        outcome_commit.commit(context, connection, lease, [(each, Finished(Outcome.OK, "1")) for each in taken], now_us)
    expect(page.locator("h1")).to_contain_text("done")
    expect(page.locator(".live")).to_have_count(0)
