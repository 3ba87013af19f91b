"""Every page of the dashboard: for each role, with hostile text, on a phone, in the dark, and by the rules of accessibility."""

import re
from collections.abc import Iterator
from html import unescape
from itertools import cycle
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from tests.api.running_api import RunningApi
from tests.web.browsing import Browser, Page, opened
from tests.web.every_page import NAME, hostile_api, paths

from lodger.engine.core.access.roles import Role
from lodger.engine.features import TABLE
from lodger.engine.service.operations.route import Route
from lodger.engine.web import dashboard_link
from lodger.engine.web.dashboard import POLICY

#: Pages of the platform alone.
OF_PLATFORM = {"/tenants"}
#: Tags of axe's rules: WCAG 2.2, levels A and AA.
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
OF_COLOURS_AND_WIDTH = ["color-contrast", "target-size", "scrollable-region-focusable"]
PHONE, TABLET, WIDE = ({"width": width, "height": 740} for width in (360, 820, 1280))
#: An A4 page without its margins.
PRINTED = {"width": 718, "height": 1047}
WITHOUT_TABLES = {"/sign-in", "", "/t/acme/schedules/none"}
#: A tag with its attributes, whose values may hold any text; and a tag without values that the policy refuses.
TAG, VALUE = re.compile('<[a-z][^"<>]*(?:"[^"]*"[^"<>]*)*>'), re.compile('"[^"]*"')
REFUSED = re.compile(r"<script(?! src=)|<style|\s(?:on[a-z]+|style)=")
#: Opens all that a page has closed or hidden.
OPENED = """document.querySelectorAll("details").forEach((each) => { each.open = true; });
document.querySelectorAll("section.panel").forEach((each) => { each.hidden = false; });"""

#: Leaves four rows of each table: the contrast of further ones is measured for as long.
FEW_ROWS = 'document.querySelectorAll("main tbody tr:nth-child(n + 5)").forEach((each) => each.remove())'


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningApi]:
    with hostile_api(tmp_path_factory.mktemp("hostile")) as made:
        yield made


@pytest.mark.parametrize(
    ("role", "tenant"),
    [
        *(("admin", None), ("operator", None), ("auditor", None), ("editor", "other"), (None, None)),
        *((role, "acme") for role in ("tenant_admin", "editor", "runner", "viewer")),
    ],
)
def test_each_role_sees_its_own_tenant_and_viewers_no_controls(
    hostile: RunningApi, role: str | None, tenant: str | None
) -> None:
    with hostile.browser(role, tenant) as browser:
        for path in paths(hostile):
            answer = browser.get(path)
            assert "``" not in answer.text, "a docstring's markup is no text"
            if role is None:
                wanted = "" if path == "/" else f"?next={quote(path, safe='/')}"
                assert (answer.status_code, answer.headers["location"]) == (303, f"/sign-in{wanted}"), path
            elif tenant is not None and path in OF_PLATFORM:
                assert answer.status_code == 403, path
            elif tenant == "other" and path.startswith("/t/"):
                assert answer.status_code == 404, path
            else:
                assert answer.status_code == 200, path
            if tenant == "acme":
                assert "/t/other" not in answer.text, path
            if role in {"viewer", "auditor"}:
                assert not re.search("data-call|data-upload|<textarea|type=.password", answer.text), path
            if role is not None and answer.status_code == 200:
                assert answer.headers["content-security-policy"] == POLICY
                assert not [each for each in TAG.findall(answer.text) if REFUSED.search(VALUE.sub("", each))], path
                calls = re.findall('data-(?:call|upload)="', answer.text)
                assert len(calls) == answer.text.count('ction="/call?to='), f"{path}: a form needs a script"
                for call in CALL.findall(answer.text):
                    needed = [route.role for route in TABLE.routes if matches(route, unescape(call))]
                    assert needed, f"{path}: no operation is {call}"
                    assert all(map(Role(role).covers, needed)), f"{path}: {role} is shown {call}"


#: What controls of a page ask for: ``POST /tenants/acme/…``.
CALL = re.compile('data-(?:call|upload)="((?:POST|PUT|PATCH|DELETE) [^"]*)"')


def matches(route: Route, call: str) -> bool:
    """Whether a control asks for a route; names in braces are filled in from the form."""
    pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(f"{route.method} {route.path}"))
    return re.fullmatch(pattern, call) is not None


def _as_admin(hostile: RunningApi, page: Page) -> None:
    page.goto(hostile.url + str(dashboard_link.link(hostile.engine)))


#: What no page asks for: another type, a number out of range, a byte that no text may hold, another script.
ODD = ("x", "-1", "9" * 20, "\0", "\U0001f600", "..")


def test_a_page_asked_for_what_cannot_be_says_so(hostile: RunningApi) -> None:
    operations: dict[str, set[str]] = {}
    for route in hostile.engine.table.routes:
        operations.setdefault(route.name, set()).update(each.name for each in route.parameters)
    odds, bases, asked = cycle(ODD), cycle(("", "/t/acme", "/t/acme")), list[str]()
    forms = cycle(({}, {"format": "csv"}))
    for name, fields in operations.items():
        odd = next(odds)
        ids = {each: odd for each in fields if each.endswith("id") and each != "tenant_id"}
        queries = (ids, dict.fromkeys(fields, odd) | next(forms))
        asked += [f"{next(bases)}/operations/{name}?{urlencode(query)}" for query in queries]
    names = ["version", "older", "range", "filter", "cursor", "trail", "state", "outcome", "since", "script", "format"]
    for path in ("/", "/tenants", "/actions", "/t/acme/schedules", "/t/acme/scripts/first"):
        asked += [f"{path}?{urlencode({each: next(odds)})}" for each in names]
    with hostile.browser("admin") as browser:
        answers = {path: browser.get(path).status_code for path in dict.fromkeys(asked)}
    assert {path: status for path, status in answers.items() if status not in {200, 400, 404, 422}} == {}


def unlike_pages(hostile: RunningApi) -> list[str]:
    """Return the paths of the pages that differ in their elements: a page of all tenants looks like that of one."""
    every = paths(hostile)
    return [each for each in every if f"/t/acme{each}" not in every]


def test_without_a_script_no_button_is_shown_that_does_nothing(hostile: RunningApi, browser: Browser) -> None:
    with opened(browser) as page:
        _as_admin(hostile, page)
        session = page.context.storage_state()
    with opened(browser, java_script_enabled=False, storage_state=session) as plain:
        for path in unlike_pages(hostile):
            plain.goto(hostile.url + path)
            dead = plain.locator("button[type=button]:not([formaction])").filter(visible=True)
            assert dead.all_inner_texts() == [], path


#: Links, buttons and the like outside of running text that are smaller than 24 pixels.
SMALL = """[...document.querySelectorAll("header a, main a, button, summary")]
  .filter((each) => each.checkVisibility() && !each.closest("svg, .skip, .cm-editor, .hidden"))
  .filter((each) => getComputedStyle(each).display !== "inline")
  .map((each) => [each.textContent.trim(), each.getBoundingClientRect()])
  .filter(([, box]) => box.height && (Math.round(box.height) < 24 || Math.round(box.width) < 24))
  .map(([text, box]) => [text.slice(0, 30), box.width, box.height])"""


def test_every_page_is_accessible_fits_its_window_prints_and_runs_no_hostile_text(
    hostile: RunningApi, browser: Browser
) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright",
        reason="NOT TESTED in a browser: axe is not installed (pip install axe-playwright-python)",
    )
    script, shown = axe.Axe().axe_script, 0
    with opened(browser) as page:
        page.on("dialog", lambda dialog: pytest.fail(f"a dialog: {dialog.message}"))
        for path in ("/sign-in", "", "/t/acme/schedules/none", *unlike_pages(hostile)):
            page.set_viewport_size(WIDE)
            page.emulate_media(media="screen", color_scheme="light")
            if path:
                page.goto(hostile.url + path)
            else:
                _as_admin(hostile, page)
            shown += _runs_no_hostile_text(page, path)
            page.evaluate(OPENED)
            for size in (PHONE, TABLET, WIDE):
                page.set_viewport_size(size)
                assert page.evaluate(SMALL) == [], (path, size)
                assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], path
            if path not in WITHOUT_TABLES:
                _prints_its_tables(page, path)
            page.evaluate(FEW_ROWS)
            page.evaluate(script)
            _is_accessible(page, path)
    assert shown > 8, "most pages show a name"


def _runs_no_hostile_text(page: Page, path: str) -> bool:
    """Return whether a page shows hostile text."""
    assert page.evaluate("typeof pwned") == "undefined", path
    assert page.locator("main img:not(.cm-widgetBuffer), main svg[onload], main script").count() == 0, path
    assert page.locator("a[href^='javascript']").count() == 0, path
    text = page.locator("main").inner_text()
    assert not re.search(r"\b12467\b", text), path
    return NAME in text


def _is_accessible(page: Page, path: str) -> None:
    """Check a page by every rule, and again what colours and a small window can change."""
    assert page.locator("h1").count() == 1, path
    every, changed = {"type": "tag", "values": WCAG}, {"type": "rule", "values": OF_COLOURS_AND_WIDTH}
    for size, scheme, rules in ((WIDE, "light", every), (PHONE, "dark", changed)):
        page.set_viewport_size(size)
        page.emulate_media(media="screen", color_scheme=scheme)
        _check(page, path, rules)
    back = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)")
    assert sum(back) < 128, f"{path}: {back}"


def _prints_its_tables(page: Page, path: str) -> None:
    """Check a page on paper: its tables are shown in light colours, and no controls."""
    page.set_viewport_size(PRINTED)
    page.emulate_media(media="print", color_scheme="dark")
    controls = "body > header, main form:not(:has(.editor), .whole, [data-nest]), main button, footer"
    assert page.locator(controls).filter(visible=True).count() == 0, path
    assert page.evaluate("document.documentElement.scrollWidth") <= PRINTED["width"], path
    for shown in (".cm-content", "form.whole :is(input:not([type=hidden]), textarea)"):
        if page.locator(shown).count():
            assert page.locator(shown).first.is_visible(), (path, shown)
    cells = "[...document.querySelectorAll('main td')].every((each) => getComputedStyle(each).display === 'table-cell')"
    assert page.evaluate(cells), path
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light", path


def _check(page: Page, path: str, rules: dict[str, Any]) -> None:
    found = page.evaluate("(options) => axe.run(options)", {"runOnly": rules, "resultTypes": ["violations"]})
    assert page.title(), path
    broken = [
        (each["id"], node["html"][:120], node["failureSummary"])
        for each in found["violations"]
        for node in each["nodes"]
    ]
    assert broken == [], path
