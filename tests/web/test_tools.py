"""The tools of schedules and scripts in a real browser: the rule builder by keyboard, backfill, pause, dry runs, and the editor."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Column, Integer, MetaData, String, Table
from tests.api.running_api import RunningApi, running_api
from tests.api.workers import worked
from tests.escape.commands import HELLO
from tests.web.browsing import Browser, Page, opened, tab_to

from lodger.engine.effects.finished import Finished
from lodger.engine.web import dashboard_link
from lodger.engine.web.dashboard import Dashboard
from lodger.sandbox.job import LogLine, ScriptError, Usage
from lodger.sandbox.outcome import Outcome

pytestmark = pytest.mark.timeout(240)
#: The field of a module's text.
CODE = "[data-editor] details[open] .cm-content"
SOURCE = (
    'import { two } from "./two.js";\nexport default ({ action, now }) => [two * action.input.times, String(now)];\n'
)


@pytest.fixture(scope="module")
def lodge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningApi]:
    """A running API for all tests of this module, each with a schedule or script of its own."""
    folder: Path = tmp_path_factory.mktemp("tools")
    with running_api(f"sqlite:///{folder / 'ledger.db'}") as made:
        made.furnish()
        made.token("admin")
        Dashboard(made.api).add()
        yield made


@pytest.fixture(scope="module")
def page(lodge: RunningApi, browser: Browser) -> Iterator[Page]:
    """A page that is signed in as an administrator."""
    with opened(browser) as made:
        made.on("dialog", lambda dialog: dialog.accept("two.js"))
        made.goto(lodge.url + str(dashboard_link.link(lodge.engine)))
        yield made


@pytest.fixture
def expect() -> Any:
    """Playwright's assertions."""
    found = pytest.importorskip("playwright.sync_api").expect
    found.set_options(timeout=10_000)
    return found


def test_a_rule_is_changed_from_its_present_step_with_the_difference_shown(
    lodge: RunningApi, page: Page, expect: Any
) -> None:
    lodge.engine.schedules.create("acme", "weekdays", script="job", rules="0 9 * * 1-5", tz="Europe/Berlin")
    page.goto(f"{lodge.url}/t/acme/schedules/weekdays")
    page.click("#change > summary")
    form, preview = page.locator("#change"), page.locator("#change .preview")
    expect(form.locator("[value=days]")).to_be_checked()
    expect(preview).to_contain_text("No slot changes")
    form.locator("[aria-label=Saturday]").check()
    expect(preview).to_contain_text("slots added: 2026-01-03 09:00:00")
    form.locator("[value=text]").check()
    form.locator("[name='rule.text']").fill("30 2 28-30 3 *")
    expect(preview.locator("li").nth(1)).to_contain_text("2026-03-29 03:00:00")
    expect(preview.locator("li").nth(1)).to_contain_text("shifted by daylight saving")
    form.locator(".exclusions > summary").click()
    form.locator("[name='rule.exclusions']").fill("30 March 2026")
    expect(preview).to_contain_text("but never the whole day")
    form.locator("[name='rule.tz']").fill("Mars/Olympus")
    expect(form.locator("[data-problem-of='rule.tz']")).to_contain_text("Mars/Olympus")
    form.locator("[name='rule.tz']").fill("Europe/Berlin")
    expect(preview).to_contain_text("but never")
    form.locator("[name=why]").fill("spring only")
    form.locator("text=Save").click()
    expect(page.locator("main > p.lead")).to_contain_text("but never the whole day")
    stored = lodge.engine.schedules.get("acme", "weekdays")
    assert [each.text for each in stored.rules.exclusions] == ["30 March 2026"]
    assert lodge.engine.schedules.revisions("acme", "weekdays")[0].why == "spring only"
    page.click("[aria-label='Roll back to revision 1']")
    expect(page.locator("main > p.lead")).to_contain_text("on Monday through Friday (Europe/Berlin)")


def test_earlier_slots_are_counted_then_backfilled_and_a_pause_has_a_note(
    lodge: RunningApi, page: Page, expect: Any
) -> None:
    lodge.engine.schedules.create("acme", "hourly", script="job", rules="every 1h", missed="skip")
    page.goto(f"{lodge.url}/t/acme/schedules/hourly")
    notice = page.locator("#notice")
    expect(notice).to_have_css("animation-name", "none")  # which begins with its words: it was over before they came
    page.click("#backfill > summary")
    start = page.locator("#backfill .primary")
    expect(start).to_have_count(0)
    page.fill("#backfill [name=start]", "2025-12-31T12:00")
    expect(page.locator("#backfill output")).to_contain_text("slots would run, from 2025-12-31 12:00:00")
    words = start.inner_text()
    start.click()
    expect(notice).to_contain_text("actions created")
    expect(notice).to_have_css("animation-name", "leave")
    made = [each for each in lodge.engine.actions.list("acme", "hourly", limit=None) if each.origin == "backfill"]
    assert words == f"Start the backfill of {len(made)} slots"
    assert len(made) == 12
    page.click("#pause > summary")
    page.fill("#pause [name=note]", "maintenance")
    page.fill("#pause [name=until]", "2027-01-01T00:00")
    page.locator("#pause").get_by_role("button", name="Pause").click()
    expect(page.locator("h1")).to_contain_text("paused")
    expect(page.locator(".note")).to_contain_text("maintenance")
    paused = lodge.engine.schedules.get("acme", "hourly")
    assert (paused.note, paused.wake_at) == ("maintenance", datetime(2027, 1, 1, tzinfo=UTC))


def test_a_schedule_is_run_dry_with_its_input_at_a_pretended_time(lodge: RunningApi, page: Page, expect: Any) -> None:
    lodge.engine.scripts.put("acme", "twice", {"main.js": SOURCE, "two.js": "export const two = 2;"})
    lodge.engine.scripts.put("acme", "twice", "export default () => 'not this version'")
    lodge.engine.schedules.create(
        "acme", "twice", script=[{"script": "job"}, {"script": "twice", "version": 1}], rules="0 9 * * *",
        params={"times": 21},
    )  # fmt: skip
    page.goto(f"{lodge.url}/t/acme/schedules/twice")
    page.click("#dry-run > summary")
    page.fill("#dry-run [name=now]", "2027-02-03T04:05:06")
    page.click("text=Dry run of step 2: twice")
    expect(page.locator(".result")).to_contain_text("42")
    expect(page.locator(".result")).to_contain_text("2027-02-03T04:05:06Z")
    page.fill("#dry-run [name=params]", "{times")
    page.click("text=Dry run of step 2: twice")
    expect(page.locator("#dry-run [role=alert]")).to_contain_text("params is not JSON")


def in_a_new_script(lodge: RunningApi, page: Page) -> Any:
    """Begin a script's function in the editor; return the list of completions."""
    page.goto(f"{lodge.url}/t/acme/new-script")
    page.wait_for_selector("[data-ready]")
    page.locator(CODE).fill("")
    page.keyboard.type("export default async (ctx) => {")
    page.keyboard.press("Enter")
    return page.locator(".cm-tooltip-autocomplete")


def test_the_builder_knows_the_tenants_limit_begins_with_a_preset_and_shows_months(
    lodge: RunningApi, page: Page, expect: Any
) -> None:
    lodge.engine.tenants.create("limited")
    lodge.engine.tenants.edit("limited", limits={"min_interval_s": 300})
    page.goto(f"{lodge.url}/t/limited/new-schedule")
    form, preview = page.locator(".builder"), page.locator(".preview")
    form.locator("[name='rule.every']").fill("299")
    form.locator("[name='rule.unit']").select_option("s")
    expect(form.locator("[data-problem-of='rule.every']")).to_contain_text("299 s apart")
    form.locator("[name='rule.every']").fill("300")
    expect(preview).to_contain_text("Every 5 minutes")
    expect(form.locator("[data-problem-of='rule.every']")).to_be_hidden()
    for none in ("0", ""):
        form.locator("[name='rule.every']").fill(none)
        expect(form.locator("[data-problem-of='rule.every']")).to_contain_text("An interval must be more than zero")
    form.locator("[data-preset]").select_option(label="every weekday at 9:00")
    expect(form.locator("[value=days]")).to_be_checked()
    expect(preview).to_contain_text("on Monday through Friday")
    form.locator("[value=text]").check()
    # The night of the clock is the day before in Honolulu, where the month is drawn.
    form.locator("[name='rule.text']").fill("at 2026-01-20T05:00Z\n\nat 2026-01-20T06:00Z")
    form.locator("[name='rule.tz']").fill("Pacific/Honolulu")
    expect(preview.locator(".months .slots-2")).to_have_count(1)
    expect(preview.locator(".months .slots-2")).to_have_text("19: 2 slots")
    form.locator("[name='rule.text']").fill("0 0 30 2 *")
    expect(preview).to_contain_text("These rules never run")
    form.locator("[name='rule.text']").fill("Mondays at 9")
    form.locator(".exclusions > summary").click()
    form.locator("[name='rule.exclusions']").fill("every Monday")
    expect(preview).to_contain_text("No slot was found before")


def test_the_editor_completes_explains_and_can_be_left_by_keyboard(lodge: RunningApi, page: Page, expect: Any) -> None:
    listed, keyboard = in_a_new_script(lodge, page), page.keyboard
    keyboard.type("ctx.k")
    expect(listed.locator("[aria-selected]")).to_contain_text("kv")
    keyboard.press("Tab")
    keyboard.type(".s")
    expect(listed.locator("[aria-selected]")).to_contain_text("set")
    expect(page.locator(".cm-completionInfo")).to_contain_text("Stores a value under a key.")
    keyboard.press("ArrowDown")
    expect(listed.locator("[aria-selected]")).to_contain_text("swap")
    keyboard.press("ArrowUp")
    keyboard.press("Enter")
    keyboard.type('("key", now.add({ days: 1 }).')
    expect(listed).to_contain_text("toZonedDateTimeISO")
    keyboard.press("Escape")
    expect(listed).to_have_count(0)
    keyboard.press("Tab")
    expect(page.locator(".cm-focused")).to_have_count(0)
    keyboard.press("Shift+Tab")
    keyboard.type("toString());")
    keyboard.press("Enter")
    keyboard.press("Tab")
    assert page.evaluate("Object.fromEntries(sources())['main.js']").split("\n") == [
        "export default async (ctx) => {", '  ctx.kv.set("key", now.add({ days: 1 }).toString());', "    ", "}",
    ]  # fmt: skip
    keyboard.press("Control+Home")
    keyboard.press("ArrowDown")
    for _ in range(10):
        keyboard.press("ArrowRight")
    expect(page.locator("[data-signature]")).to_contain_text("set(key: string, value: any")
    page.locator(".cm-line span", has_text="set").first.hover()
    expect(page.locator(".cm-tip")).to_contain_text("Stores a value under a key.")
    keyboard.press("Control+f")
    keyboard.type("days")
    expect(page.locator(".cm-searchMatch")).to_have_text("days")
    keyboard.press("Escape")
    keyboard.press("Escape")
    keyboard.press("Tab")
    expect(page.locator(".cm-focused")).to_have_count(0)


def test_the_editor_knows_the_tables_and_functions_of_the_platform(lodge: RunningApi, page: Page, expect: Any) -> None:
    lodge.engine.function("crm.score", params={"id": {"type": "integer", "required": True}})(lambda _call: 1)
    lodge.engine.function("crm.hidden")(lambda _call: 1)
    orders = Table("orders", MetaData(), Column("id", Integer, primary_key=True), Column("tenant_id", String(200)))
    lodge.engine.expose(orders, tenant_column="tenant_id")
    lodge.engine.grants.give("acme", "functions:crm.score", "sets:read")
    listed, keyboard = in_a_new_script(lodge, page), page.keyboard
    keyboard.type("const a = db.ord")
    expect(listed.locator("[aria-selected]")).to_contain_text("orders")
    keyboard.press("Escape")
    keyboard.type("ers; const b = ctx.cr")
    expect(listed.locator("[aria-selected]")).to_contain_text("crm")
    keyboard.press("Tab")
    keyboard.type(".")
    expect(page.locator(".cm-completionInfo")).to_contain_text("score(id: number): Promise<any>")
    expect(listed).not_to_contain_text("hidden")
    keyboard.type("scor(7); const c = crm.score(7);")
    keyboard.press("Escape")
    expect(page.locator(".cm-lintRange")).to_have_text(["scor"])


@pytest.mark.parametrize("missing", ["**/types.js*", "**/lodger.d.ts*"])
def test_the_editor_says_that_it_knows_no_types_and_goes_on(
    lodge: RunningApi, browser: Browser, expect: Any, missing: str
) -> None:
    with opened(browser, "Failed to load resource") as page:
        page.goto(lodge.url + str(dashboard_link.link(lodge.engine)))
        page.route(missing, lambda route: route.fulfill(status=503))
        page.goto(f"{lodge.url}/t/acme/new-script")
        expect(page.locator(".status small")).to_contain_text("The types could not be loaded")
        page.locator(CODE).fill("export default ({ kv }) => nope;")
        page.keyboard.press("Control+Space")
        expect(page.locator(".cm-lintRange")).to_have_text(["nope"])
        expect(page.locator("[data-ready]")).to_have_count(1)


def test_the_editor_colours_and_underlines_what_nothing_declares_and_reads_types_and_json(
    lodge: RunningApi, page: Page, expect: Any
) -> None:
    page.goto(f"{lodge.url}/t/acme/new-script")
    page.wait_for_selector("[data-ready]")
    field = page.locator(CODE)
    field.fill("// Named.\nexport default async function main(ctx) { ctx.kv.gett('x'); }")
    expect(page.locator(".cm-lintRange-warning")).to_have_text(["gett"])
    field.fill("export default ({ kv }) => { const shop = 1; kv.gett('x'); return total + shop; };")
    expect(page.locator(".cm-lintRange-warning")).to_have_text(["gett", "total"])
    words = page.locator(f"{CODE} .cm-line span")
    colours = words.evaluate_all("all => all.map((each) => getComputedStyle(each).color)")
    assert len(set(colours)) > 3, "words of the language, strings, numbers and names differ"
    page.evaluate("prompt = () => 'typed.ts'")
    page.click("text=Add a module")
    field.fill("interface Order { total: number }\nexport const add = (one: Order): number => one.total;")
    expect(page.locator(".status output")).to_contain_text("total is not defined")
    expect(page.locator("details[open] .cm-lintRange")).to_have_count(0)
    params = page.locator("form.dry-run .cm-content")
    params.fill('{"days": }')
    expect(page.locator("form.dry-run .cm-lintRange-error")).to_have_text("}")
    page.click("form.dry-run button")
    expect(page.locator("form.dry-run [role=alert]")).to_contain_text("params is not JSON")


def test_without_its_bundle_the_editor_is_a_text_area(lodge: RunningApi, browser: Browser, expect: Any) -> None:
    with opened(browser, "net::ERR_FAILED") as page:
        page.route("**/static/codemirror.js*", lambda route: route.abort())
        page.goto(lodge.url + str(dashboard_link.link(lodge.engine)))
        page.goto(f"{lodge.url}/t/acme/new-script")
        page.fill("[name=name]", "plain")
        page.fill("[data-module]", "export default () => 21 *;")
        expect(page.locator(".status output")).to_contain_text("line 1:")
        page.fill("[data-module]", "export default () => 21 * 2;")
        expect(page.locator(".status output")).to_have_text("It compiles.")
        page.click("form.dry-run button")
        expect(page.locator(".result")).to_contain_text("42")
        page.click("button:has-text('Create')")
        page.wait_for_url("**/t/acme/scripts/plain")
        expect(page.locator("[data-module]")).to_have_value("export default () => 21 * 2;")
    assert lodge.engine.scripts.get("acme", "plain").modules == {"main.js": "export default () => 21 * 2;"}


def test_a_script_of_several_modules_is_written_checked_run_and_compared(
    lodge: RunningApi, page: Page, expect: Any
) -> None:
    page.goto(f"{lodge.url}/t/acme/new-script")
    page.wait_for_selector("[data-ready]")
    page.fill("[name=name]", "modules")
    page.click("text=Add a module")
    page.fill(CODE, "export const two = ;")
    expect(page.locator(".status output")).to_contain_text("two.js, line 1:")
    expect(page.locator(".bad-line")).to_have_count(1)
    page.fill(CODE, 'import three from "./three.js";')
    expect(page.locator(".bad-line")).to_have_text("./three.js")
    page.fill(CODE, "export const two = 2;")
    page.click(".module summary:has-text('main.js')")
    page.fill(CODE, SOURCE)
    expect(page.locator(".status output")).to_have_text("It compiles.")
    page.fill("form.dry-run .cm-content", '{"times": 4}')
    page.fill("form.dry-run [name=now]", "2026-05-01T00:00:00")
    page.click("form.dry-run button")
    expect(page.locator(".result")).to_contain_text("2026-05-01T00:00:00Z")
    page.click("text=Typed params")
    page.fill("form:not(.dry-run) details:not(.module) .cm-content", '{"times": {"type": "integer"}}')
    page.click("button:has-text('Create')")
    page.wait_for_url("**/t/acme/scripts/modules")
    stored = lodge.engine.scripts.get("acme", "modules")
    assert (sorted(stored.modules), list(stored.fields or {})) == (["main.js", "two.js"], ["times"])
    for number in (2, 3):
        page.wait_for_selector("[data-ready]")
        page.fill(CODE, f"{SOURCE}// {number}\n")
        page.click("text=Store a new version")
        expect(page.locator("h1")).to_contain_text(f"version {number}")
    assert list(lodge.engine.scripts.get("acme", "modules").fields or {}) == ["times"], "kept by the form"
    page.emulate_media(media="print")
    printed = page.locator(".module .cm-content").all()
    assert [each.is_visible() for each in printed] == [True, True], "all modules are printed"
    page.emulate_media(media="screen")
    page.select_option("[name=older]", "1")
    page.select_option("[name=newer]", "3")
    page.click("text=Compare")
    page.select_option("[name=older]", "2")
    page.click("text=Compare")
    dropped, added = page.locator(".diff .drop"), page.locator(".diff .add")
    expect(dropped).to_have_text("-// 2\n")
    expect(added).to_have_text("+// 3\n")
    assert dropped.bounding_box()["y"] == added.bounding_box()["y"], "side by side"
    page.set_viewport_size({"width": 390, "height": 844})
    assert dropped.bounding_box()["y"] < added.bounding_box()["y"]
    page.set_viewport_size({"width": 1280, "height": 800})
    page.click("[aria-label='Roll back to version 1']")
    expect(page.locator("h1")).to_contain_text("version 4")
    assert lodge.engine.scripts.get("acme", "modules").modules["main.js"] == SOURCE


def test_a_module_and_an_archive_are_uploaded(lodge: RunningApi, page: Page, expect: Any) -> None:
    page.goto(f"{lodge.url}/t/acme/new-script")
    page.click("text=Upload a WebAssembly module")
    page.fill("[name=script]", "compiled")
    upload = {"name": "hello.wasm", "mimeType": "", "buffer": b"no module"}
    page.set_input_files("[name=file]", upload)
    page.get_by_role("button", name="Upload").click()
    expect(page.locator("#notice.warn")).not_to_be_empty()
    page.set_input_files("[name=file]", upload | {"buffer": HELLO})
    page.get_by_role("button", name="Upload").click()
    page.wait_for_url("**/t/acme/scripts/compiled")
    assert lodge.engine.scripts.get("acme", "compiled").wasm_bytes == len(HELLO)
    lodge.engine.tenants.create("moved", "Moved")
    lodge.engine.tenants.suspend("moved")
    archive = lodge.engine.tenants.export("moved")
    lodge.engine.tenants.delete("moved")
    page.goto(f"{lodge.url}/tenants")
    page.click("text=Restore a tenant from its archive")
    page.fill("[name=tenant_id]", "moved")
    page.set_input_files("[name=file]", {"name": "moved.gz", "mimeType": "application/gzip", "buffer": archive})
    page.get_by_role("button", name="Restore").click()
    page.wait_for_url("**/t/moved/settings")
    assert (lodge.engine.tenants.get("moved").name, lodge.engine.tenants.get("moved").state) == ("Moved", "suspended")
    with opened(page.context.browser, java_script_enabled=False, storage_state=page.context.storage_state()) as plain:
        for content in (b"no module", HELLO):
            plain.goto(f"{lodge.url}/t/acme/new-script")
            plain.click("text=Upload a WebAssembly module")
            plain.fill("[name=script]", "plainly")
            expect(plain.locator("[name=file]")).to_be_hidden()
            plain.get_by_role("button", name="Upload").click()
            plain.set_input_files("[name=file]", upload | {"buffer": content})
            plain.get_by_role("button", name="Save").click()
            expect(plain.locator("main")).to_contain_text("WebAssembly" if content != HELLO else "plainly")
    assert lodge.engine.scripts.module("acme", "plainly") == HELLO


def test_a_failed_run_shows_its_course_its_causes_and_its_log_and_leads_to_the_line(
    lodge: RunningApi, page: Page, expect: Any
) -> None:
    source = "\n".join(["export default () => {", *["  // a line"] * 40, "  null.x;", "};"])
    lodge.engine.scripts.put("acme", "fails", source)
    lodge.engine.schedules.create("acme", "fails", script="fails", rules="0 9 * * *", params={"n": 1}, overlap="allow")
    asked = [lodge.engine.actions.run_now("acme", "fails") for _ in range(3)]
    cause = {"cause": {"name": "RangeError", "message": "too far", "stack": "at deep.js:1", "details": {"code": "E7"}}}
    error = ScriptError(
        "TypeError", "no x", file="main.js", line=42, details=cause | {"errors": [{"name": "E", "message": "plain"}]}
    )
    logs = (LogLine("log", "begins", lodge.clock.us), LogLine("error", "breaks", lodge.clock.us + 400_000))
    ended = Finished(Outcome.SCRIPT_ERROR, error=error, logs=logs, usage=Usage(wall_ms=800.0, host_calls=3))
    worked(lodge, finished=ended)
    page.goto(f"{lodge.url}/t/acme/actions/{asked[1].id}")
    drawn = page.locator(".timeline")
    expect(drawn).to_have_text(re.compile("started .*800 ms, 3 host calls.*recorded", re.DOTALL))
    expect(drawn.locator(".mark")).to_have_count(2)
    expect(page.locator(".causes")).to_contain_text("cause: RangeError: too far")
    expect(page.locator(".causes .causes, .causes ul")).to_contain_text("code: E7")
    expect(page.locator(".causes")).to_contain_text("errors: E: plain")
    page.select_option("[name=level]", "error")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("pre.log > span")).to_have_count(1)
    page.select_option("[name=level]", "")
    page.fill("[name=text]", "BEGINS")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("pre.log > span")).to_contain_text("begins")
    expect(page.locator("form.filters output")).to_have_text("1 of 2 lines")
    with page.expect_download() as got:
        page.get_by_role("link", name="Download").click()
    kept = got.value.path().read_text()
    assert [each.partition(" ")[2] for each in kept.splitlines()] == ["log begins", "error breaks"], kept
    page.click("[rel=prev]")
    page.wait_for_url(f"**/{asked[0].id}")
    page.click("[rel=next]")
    page.wait_for_url(f"**/{asked[1].id}")
    page.click("#here > summary")
    expect(page.locator("#here [name=params]")).to_have_value(re.compile('"n": 1'))
    page.click("#here form button")
    expect(page.locator("#here .result")).to_contain_text("main.js, line 42")
    expect(page.locator("#here .result .state")).to_have_text("error in the script")
    page.click("text=Open in the editor")
    expect(page.locator(".bad-line")).to_have_count(1)
    assert page.evaluate("document.querySelector('.code-host').shadowRoot.querySelector('.cm-scroller').scrollTop") > 0


def test_a_script_is_made_run_mended_and_run_again_by_the_keyboard_alone(
    lodge: RunningApi, page: Page, expect: Any
) -> None:
    keys = page.keyboard

    def press(name: str, leads_to: str, *, then_skip: bool = False) -> None:
        """Follow a link or press a button, and go on behind the navigation of the page that follows."""
        tab_to(page, name)
        keys.press("Enter")
        page.wait_for_url(f"**/{leads_to}")
        if then_skip:
            tab_to(page, "Skip to content")
            keys.press("Enter")

    def write(source: str) -> None:
        tab_to(page, "Source")
        keys.press("Control+A")
        keys.insert_text(source)
        keys.press("Escape")

    page.goto(f"{lodge.url}/t/acme")
    press("Scripts", "scripts", then_skip=True)
    press("New script", "new-script", then_skip=True)
    tab_to(page, "Name")
    keys.type("by-hand")
    write("export default () => null.x;")
    press("Create", "scripts/by-hand")
    press("Schedules", "schedules", then_skip=True)
    press("New schedule", "new-schedule", then_skip=True)
    for field in ("Name", "Script"):
        tab_to(page, field)
        keys.type("by-hand")
    press("Create", "schedules/by-hand", then_skip=True)
    press("Run now", "actions/*", then_skip=True)
    error = ScriptError("TypeError", "cannot read property 'x' of null", file="main.js", line=1)
    worked(lodge, finished=Finished(Outcome.SCRIPT_ERROR, error=error))
    expect(page.locator("h1")).to_contain_text("error in the script")
    expect(page.locator("p.error")).to_contain_text("cannot read property 'x' of null main.js, line 1")
    press("Open in the editor", "scripts/by-hand?*")
    expect(page.locator(".bad-line")).to_have_count(1)
    write("export default () => 42;")
    press("Store a new version", "scripts/by-hand")
    expect(page.locator("h1")).to_contain_text("version 2")
    press("Schedules", "schedules", then_skip=True)
    press("by-hand", "schedules/by-hand", then_skip=True)
    press("Run now", "actions/*")
    worked(lodge, finished=Finished(Outcome.OK, "42"))
    expect(page.locator("h1")).to_contain_text("done")
    assert lodge.engine.scripts.get("acme", "by-hand").modules["main.js"] == "export default () => 42;"
