"""Lists in a real browser: found by a key, filtered, sorted, paged, exported, and changed as a whole; and changes by buttons of pages."""

import csv
import io
import json
import re
from collections.abc import Iterator
from html import unescape

import pytest
from sqlalchemy import event
from tests.api.running_api import RunningApi, running_api
from tests.api.workers import worked
from tests.store.bench import Bench, node_id
from tests.web.browsing import WAIT_MS, Browser, Page, opened

from lodger.engine.effects import outcome_commit
from lodger.engine.effects.finished import Finished
from lodger.engine.store.lifecycle import claims, leases, running_lines
from lodger.engine.web import dashboard_link
from lodger.engine.web.dashboard import Dashboard
from lodger.sandbox.job import LogLine, Usage
from lodger.sandbox.outcome import Outcome

expect = pytest.importorskip(
    "playwright.sync_api", reason="NOT TESTED in a browser: playwright is not installed"
).expect
expect.set_options(timeout=WAIT_MS)
pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def lodge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningApi]:
    """A running API with 120 tenants, and one tenant with failures."""
    with running_api(f"sqlite:///{tmp_path_factory.mktemp('lists') / 'ledger.db'}") as made:
        made.furnish()
        made.token("admin")
        for number in range(120):
            made.engine.tenants.create(f"tenant-{number:04}", "=SUM(A1)")
        for number in range(7):
            made.engine.run_in("acme", "job", 0, {"customer": number})
        worked(made, fails=True)
        Dashboard(made.api).add()
        yield made


@pytest.fixture(scope="module")
def page(lodge: RunningApi, browser: Browser) -> Iterator[Page]:
    """A page that is signed in as an administrator."""
    with opened(browser, viewport={"width": 1280, "height": 800}) as made:
        made.on("dialog", lambda dialog: dialog.accept())
        made.goto(lodge.url + str(dashboard_link.link(lodge.engine)))
        yield made


def test_a_tenant_a_page_and_a_run_are_found_by_the_keyboard(lodge: RunningApi, page: Page) -> None:
    page.keyboard.press("/")
    page.keyboard.type("tenant-0077")
    expect(page.locator("#find li")).to_have_count(1)
    page.keyboard.press("Enter")
    page.wait_for_url("**/t/tenant-0077")
    page.keyboard.press("Control+k")
    page.keyboard.type("audit")
    expect(page.locator("#find li a").first).to_contain_text("Audit log")
    expect(page.locator("#find a[href$='/operations/audit.list']")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/t/tenant-0077/audit")
    asked = lodge.engine.actions.list("acme")[0]
    page.goto(lodge.url + "/")
    page.keyboard.press("/")
    for words, link in (("job", "/t/acme/scripts/job"), ("drop ind", "/operations/collections.drop_index")):
        page.locator("#find input").fill(words)
        expect(page.locator(f"#find a[href$='{link}']")).to_have_count(1)
    page.locator("#find input").fill("no such thing")
    expect(page.locator("#find li")).to_have_text("Nothing is found")
    page.route("**/find?**", lambda route: route.fulfill(status=429, body="slowly"))
    page.locator("#find input").fill("acme")
    expect(page.locator("#find li")).to_have_text("The server answered 429")
    page.unroute("**/find?**")
    page.keyboard.press("Escape")
    expect(page.locator("#find")).to_be_hidden()
    page.keyboard.press("/")
    page.keyboard.insert_text(asked.id)
    expect(page.locator("#find li a")).to_have_count(1)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/t/acme/actions/{asked.id}")


def test_the_audit_log_is_counted_and_read_from_either_end(page: Page, lodge: RunningApi) -> None:
    total = lodge.engine.audit.count().count
    assert total == len(lodge.engine.audit.list(limit=1000)) > 120
    page.goto(lodge.url + "/audit")
    expect(page.locator(".found").first).to_contain_text(f"{total} changes, 1 to 50 shown")
    newest = page.locator("tbody tr").first.inner_text()
    page.click("a[rel=next]")
    expect(page.locator(".found").first).to_contain_text("51 to 100 shown")
    page.click("a[rel=prev]")
    expect(page.locator("tbody tr").first).to_have_text(newest, use_inner_text=True)
    page.goto(lodge.url + "/audit?verb=tenants.create")
    expect(page.locator(".found").first).to_contain_text("121 changes")
    page.select_option("[name=oldest]", "1")
    page.click("button:text('Filter')")
    expect(page.locator("tbody tr").first).to_contain_text("acme")
    page.click("a[rel=next]")
    expect(page.locator("tbody tr").first).to_contain_text("tenant-0049")


def test_every_list_is_a_file(lodge: RunningApi) -> None:
    with lodge.browser("admin") as browser:
        for path, column in (
            ("/scripts", "version"), ("/audit?verb=tenants.create", "verb"), ("/t/acme/audit", "actor"),
            ("/operations/tokens.list", "role"), ("/t/acme/operations/tokens.list", "role"),
            ("/t/acme/operations/scripts.versions?name=job", "modules"), ("/operations/nodes.list", "slots"),
        ):  # fmt: skip
            shown = re.findall('<a href="([^"]+)" download', browser.get(path).text)
            csv_file, json_file = (
                browser.get(unescape(each)) for each in shown[:2] or (f"{path}?format=csv", f"{path}?format=json")
            )
            entries = json_file.json()
            assert csv_file.headers["content-type"] == "text/csv; charset=utf-8", path
            assert all(column in each for each in entries), path
            assert len(list(csv.reader(io.StringIO(csv_file.text)))) == len(entries) + 1, path
            assert len(entries) > 50 or "audit" not in path or "acme" in path, "beyond the first page"
        for wrong in ("schedules.edit?", "secrets.list?", "nothing.list?"):
            assert browser.get(f"/operations/{wrong}format=csv").status_code == 404


def test_a_list_has_a_total_pages_an_order_and_files(page: Page, lodge: RunningApi) -> None:
    page.goto(lodge.url + "/tenants")
    expect(page.locator(".found").first).to_contain_text("121 tenants, 1 to 50 shown")
    for first in (51, 101):
        page.get_by_role("link", name="Next").first.click()
        expect(page.locator(".found").first).to_contain_text(f"{first} to ")
    page.get_by_role("link", name="Previous").first.click()
    expect(page.locator(".found").first).to_contain_text("51 to 100")
    page.get_by_label("Filter").fill("tenant-00 sort:-id")
    page.keyboard.press("Enter")
    expect(page.locator(".found").first).to_contain_text("100 tenants")
    expect(page.locator("tbody tr").first).to_contain_text("tenant-0099")
    page.goto(lodge.url + "/tenants?filter=sort:-failures")
    expect(page.locator("tbody tr").first).to_contain_text("acme")
    expect(page.locator("tbody tr").first.get_by_role("link", name="7", exact=True)).to_have_count(1)
    page.get_by_role("link", name="Next").first.click()
    expect(page.locator(".found").first).to_contain_text("51 to 100")
    page.goto(lodge.url + "/tenants?filter=tenant-00+sort:-id")
    page.get_by_role("link", name="Created").click()
    expect(page.get_by_label("Filter")).to_have_value("tenant-00 sort:created")
    with page.expect_download() as got:
        page.get_by_role("link", name="CSV").first.click()
    rows = list(csv.DictReader(io.StringIO(got.value.path().read_text())))
    assert (len(rows), rows[0]["name"]) == (100, "'=SUM(A1)")
    with page.expect_download() as got:
        page.get_by_role("link", name="JSON").first.click()
    assert [each["name"] for each in json.loads(got.value.path().read_text())] == ["=SUM(A1)"] * 100
    asked: list[str] = []

    @event.listens_for(lodge.engine.context.database.engine, "before_cursor_execute")
    def note(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
        asked.append(statement)

    page.goto(lodge.url + "/t/acme/scripts")
    expect(page.locator(".found").first).to_contain_text("1 script ")
    assert not [each for each in asked if "count(" in each.lower() and "lodger_scripts" in each], "all are on the page"
    answer = page.goto(lodge.url + "/tenants?filter=nmae:x")
    assert answer is not None
    assert answer.status == 422
    expect(page.locator("h1")).to_contain_text("no field 'nmae'")


def test_what_failed_is_retried_from_the_overview_in_two_clicks(lodge: RunningApi, page: Page) -> None:
    page.goto(lodge.url + "/")
    page.get_by_role("link", name="of them failed").click()
    expect(page.locator(".found").first).to_contain_text("7 actions")
    page.get_by_label("Reason").fill("mended")
    page.get_by_role("button", name="Retry all 7").click()
    expect(page.locator("#notice")).to_contain_text("7 of 7 done")
    expect(page.locator("#notice")).to_have_css("animation-name", "none")  # a progress does not fade
    assert len(lodge.engine.actions.list("acme", state="ready")) == 7
    (entry,) = lodge.engine.audit.list(verb="actions.bulk")
    assert entry.why == "mended"


def test_what_the_api_can_do_is_done_on_a_form(lodge: RunningApi, page: Page) -> None:
    page.goto(lodge.url + "/t/acme/schedules/s")
    page.get_by_role("link", name="Edit").click()
    expect(page.get_by_label("Priority")).to_have_value("normal")
    page.get_by_label("Missed").fill("within:10m")
    page.get_by_label("Input").fill('{"region": ')
    page.get_by_role("button", name="Edit").click()
    expect(page.locator("[data-problem-of=params]")).to_contain_text("params is not JSON")
    page.get_by_label("Input").fill('{"region": "north"}')
    page.get_by_label("Retry").fill("5")
    page.get_by_label("Labels").fill("gpu")
    page.get_by_role("button", name="Edit").click()
    page.wait_for_url("**/t/acme/schedules/s")
    found = lodge.engine.schedules.get("acme", "s")
    assert (found.params, found.missed, found.retry["attempts"]) == ({"region": "north"}, "within:600s", 5)
    assert (found.conduct["labels"], found.conduct["priority"]) == (["gpu"], "normal")
    assert found.revision == 2, "one change"
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Input").fill("")
    page.get_by_role("button", name="Edit").click()
    page.wait_for_url("**/t/acme/schedules/s")
    assert lodge.engine.schedules.get("acme", "s").params is None, "an emptied field"
    page.get_by_role("link", name="Run with an input").click()
    page.get_by_label("Input").fill("[1, 2]")
    page.get_by_role("button", name="Run now").click()
    page.wait_for_url("**/t/acme/actions/*")
    assert lodge.engine.actions.get("acme", page.url.rpartition("/")[2]).params == [1, 2]
    for stored in ("5", "hello", ["a", "b"], {"region": "north"}):  # what is shown is read as the same value
        lodge.engine.schedules.edit("acme", "s", params=stored)
        page.goto(lodge.url + "/t/acme/operations/schedules.edit?schedule=s")
        expect(page.get_by_label("Input")).to_have_value(json.dumps(stored))
    page.get_by_label(re.compile("^Name")).fill("renamed")
    page.get_by_role("button", name="Edit").click()
    page.wait_for_url("**/schedules/renamed")
    page.goto(lodge.url + "/t/acme/operations/scripts.suspend?name=..")
    page.get_by_role("button", name="Suspend").click()
    expect(page.locator("[data-problem-of=name]")).to_contain_text("name cannot be '..'")
    assert lodge.engine.tenants.get("acme").state == "active", "a link leads to no other operation"
    page.goto(lodge.url + "/t/acme/operations")
    page.get_by_role("region", name="Alerts").get_by_role("link", name="Save").click()
    page.get_by_label("Name", exact=True).fill("loud")
    page.locator("[name=kinds]").fill("failed late")
    page.locator("[name=mail]").fill("ann@shop.example")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("[data-problem-of=mail]")).to_contain_text("cannot be mailed to 'ann@shop.example'")
    lodge.engine.grants.people("acme", ["ann@shop.example"])
    page.get_by_role("button", name="Save").click()
    expect(page.locator("[data-shown]")).to_contain_text('"loud"')
    page.goto(lodge.url + "/t/acme/settings")
    page.get_by_role("link", name="Alerts", exact=True).click()
    page.get_by_role("table").get_by_role("button", name="Delete").click()
    expect(page.locator("#notice")).to_contain_text("Done")
    assert lodge.engine.alerts.list("acme") == []


#: Texts of links in a table that are broken inside of a word.
_TORN = """[...document.querySelectorAll("td a")].flatMap((link) => [...link.childNodes]).filter((each) => {
  const range = document.createRange();
  range.selectNodeContents(each);
  return each.nodeType === Node.TEXT_NODE && new Set([...range.getClientRects()].map((box) => box.top)).size > 1;
}).map((each) => each.data)"""


def test_names_break_between_their_words(page: Page, lodge: RunningApi) -> None:
    engine, long = lodge.engine, "unanswered_tickets-of_the_week.and.of_the_month"
    engine.tenants.create("the-house-with-the-long-name")
    engine.scripts.put("the-house-with-the-long-name", long, "export default () => 1")
    engine.schedules.create("the-house-with-the-long-name", long, script=long, rules="0 9 * * 1")
    engine.actions.run_now("the-house-with-the-long-name", long)
    for path in ("/schedules", "/scripts", "/actions", "/tenants?filter=the-house"):
        page.goto(lodge.url + path)
        expect(page.locator("table")).to_contain_text("the-house-with-the-long-name")
        assert page.evaluate(_TORN) == [], path


def orders(page: str) -> dict[str, str]:
    """Return the links of a table's headings, by their words."""
    return {words: unescape(link) for link, words in re.findall('<th [^>]*><a href="([^"]+)"[^>]*>([^<]+)', page)}


def test_tenants_are_sorted_by_each_column(lodge: RunningApi) -> None:
    lodge.engine.tenants.suspend("tenant-0119")
    with lodge.browser("admin") as browser:
        page = browser.get("/tenants").text
        assert len(orders(page)) == page.count("<th scope") == 9
        for link in orders(page).values():
            assert "filter=sort" in link
            assert browser.get(link).text.count('<a href="/t/tenant-') >= 49, link
        (first, *_) = re.findall('<a href="/t/([^"/]+)"', browser.get("/tenants?filter=sort:-state").text)
        assert first == "tenant-0119"


def test_lists_without_pages_are_sorted_by_each_column_and_so_are_their_files(lodge: RunningApi) -> None:
    engine, bench = lodge.engine, Bench(lodge.engine, lodge.clock)
    engine.tenants.create("timed")
    engine.scripts.put("timed", "job", "export default () => 1")
    for name, wall_ms in (("slow", 900.0), ("fast", 20.0), ("usual", 300.0)):
        bench.lease(name)
        lodge.clock.advance(1)
        engine.schedules.create("timed", name, script="job", rules="0 9 1 1 *")
        engine.actions.run_now("timed", name)
        worked(lodge, finished=Finished(Outcome.OK, "1", usage=Usage(wall_ms=wall_ms)))
    with lodge.browser("admin") as browser:
        for path, name, rising in (
            ("/t/timed/durations", "Latest five", ["fast", "usual", "slow"]),
            ("/t/timed/durations", "Schedule", ["fast", "slow", "usual"]),
            ("/operations/nodes.list", "Name", ["fast", "slow", "usual"]),
            ("/operations/nodes.list", "Started at", ["slow", "fast", "usual"]),
            ("/t/timed/operations/schedules.durations", "Schedule", ["fast", "slow", "usual"]),
        ):
            page = browser.get(path).text
            for wanted in (rising, rising[::-1]):
                page = browser.get(orders(page)[name]).text
                shown = re.findall(">(fast|slow|usual)<", page.partition("<tbody>")[2])
                assert list(dict.fromkeys(shown)) == wanted, (path, name)
                file = browser.get(unescape(re.findall('<a href="([^"]+)" download>JSON', page)[0])).text
                assert re.findall('"(?:name|schedule)": "(fast|slow|usual)"', file) == wanted, (path, name, "the file")
        for link in orders(browser.get("/operations/nodes.list").text).values():
            assert browser.get(link).status_code == 200, link


def test_a_list_is_sorted_on_a_phone(page: Page, lodge: RunningApi) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(lodge.url + "/tenants")
    page.get_by_role("link", name="Id", exact=True).click()
    page.get_by_role("link", name="Id", exact=True).click()
    page.wait_for_url("**filter=sort%3A-id*")
    found = page.locator("tbody td:first-child > a:not(.aside)").all_inner_texts()
    assert found == sorted(found, reverse=True)
    assert len(found) == 50
    page.set_viewport_size({"width": 1280, "height": 800})


def test_a_tenant_is_made_limited_granted_and_stopped_by_its_page(lodge: RunningApi, page: Page) -> None:
    engine = lodge.engine
    page.goto(lodge.url + "/tenants")
    page.get_by_role("link", name="New tenant").click()
    page.get_by_label("Tenant", exact=True).fill("fresh")
    page.get_by_role("button", name="Create").click()
    page.wait_for_url("**/t/fresh/settings")
    page.get_by_text("The whole tenant").click()
    page.locator("input[name=runs_per_day]").fill("50")
    page.get_by_role("button", name="Save limits").click()
    expect(page.get_by_role("row", name=re.compile("^Attempts day"))).to_contain_text("50")
    assert engine.tenants.get("fresh").limits == {"runs_per_day": 50}
    page.get_by_label("Grants").fill("fetch:api.example.com mail")
    page.get_by_role("button", name="Give").click()
    expect(page.get_by_role("button", name="Take fetch:api.example.com")).to_be_visible()
    page.get_by_role("button", name="Take mail").first.click()
    expect(page.get_by_role("button", name="Take mail")).to_have_count(0)
    tokens = page.locator("form[data-call='POST /tenants/fresh/tokens']")
    page.locator("#tokens summary").click()
    tokens.get_by_label("Name").fill("bob")
    tokens.get_by_label("Role").select_option("viewer")
    tokens.get_by_role("button").click()
    expect(page.locator("#notice code")).to_be_focused()
    shown = page.locator("#notice code").inner_text()
    assert (
        lodge.http.get(lodge.url + "/api/v1/me", headers={"authorization": f"Bearer {shown}"}).json()["tenant_id"]
        == "fresh"
    )
    page.locator("#tokens").get_by_role("button", name="Revoke").click()
    expect(page.locator("#tokens")).to_contain_text("Revoked at")
    page.get_by_role("button", name="Suspend").click()
    expect(page.locator("h1")).to_contain_text("suspended")
    expect(page.locator("dl.changes").first).to_contain_text("active suspended")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("h1")).to_contain_text("active")
    assert {"tenants.create", "tenants.edit", "grants.give", "grants.take", "tokens.create", "tokens.revoke"} <= {
        each.verb for each in engine.audit.list("fresh")
    }


def test_a_script_is_stopped_by_its_page_and_its_actions_say_so(lodge: RunningApi, page: Page) -> None:
    lodge.furnish("stopped")
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
