"""Forms without JavaScript: every form and button is sent by the browser itself, asks first, and runs once."""

import re
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from urllib.parse import unquote_plus, urlencode

import httpx2
import pytest
from tests.api.running_api import RunningApi

FORM = "application/x-www-form-urlencoded"


class Forms(HTMLParser):
    """Forms and buttons of a page: attributes and fields, as a browser without scripts sends them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.forms: list[tuple[dict[str, str], dict[str, str]]] = []
        self._area: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in reversed(attrs)}
        if tag == "form":
            self.forms.append((found, {}))
        elif tag == "button" and "formaction" in found:
            self.forms.append((found | {"action": found["formaction"], "method": "post"}, {}))
        elif tag in {"input", "textarea"} and "name" in found and self.forms and found.get("type") != "checkbox":
            self.forms[-1][1][found["name"]] = found.get("value", "")
            self._area = found["name"] if tag == "textarea" else None

    def handle_data(self, data: str) -> None:
        if self._area:  # a browser leaves out a line break at the beginning
            text = self.forms[-1][1]
            text[self._area] += data if text[self._area] else data.removeprefix("\n")

    def handle_endtag(self, tag: str) -> None:
        self._area = None if tag == "textarea" else self._area


class Browser:
    """A browser without JavaScript."""

    def __init__(self, client: httpx2.Client) -> None:
        self.client = client

    def open(self, path: str) -> httpx2.Response:
        answer = self.client.get(path, follow_redirects=True)
        assert answer.status_code == 200, path
        return answer

    def sends(self, page: httpx2.Response, part: str, **fields: str) -> httpx2.Response:
        """Send the form or press the button whose request contains a text, with some fields filled in."""
        forms = [(each, given) for each, given in Forms(page.text).forms if each.get("method") == "post"]
        found = next(each for each in forms if part in unquote_plus(each[0].get("action", "")))
        attributes, given = found
        origin = str(self.client.base_url).rstrip("/")
        return self.client.post(
            attributes.get("action") or str(page.url), content=urlencode(given | fields),
            headers={"content-type": FORM, "referer": str(page.url), "origin": origin},
        )  # fmt: skip

    def agrees(self, asked: httpx2.Response) -> httpx2.Response:
        """Send a form and the confirmation that follows it."""
        assert asked.status_code == 200, asked.text
        assert "_csrf" in asked.text, re.findall("<h1>.*?</p>", asked.text, re.DOTALL)
        (fields,) = (given for _each, given in Forms(asked.text).forms if "_csrf" in given)
        return self.client.post(str(asked.url), content=urlencode(fields), headers={"content-type": FORM})


@pytest.fixture
def browser(lodge: RunningApi) -> Iterator[Browser]:
    with lodge.browser() as client:
        yield _signed_in(Browser(client), lodge)


def _signed_in(browser: Browser, lodge: RunningApi) -> Browser:
    refused = browser.sends(browser.open("/sign-in"), "", token="wrong")
    assert (refused.status_code, "cookie" in str(refused.headers)) == (401, False)
    answer = browser.sends(browser.open("/sign-in?next=/t/acme"), "", token=lodge.token("admin"))
    assert (answer.status_code, answer.headers["location"]) == (303, "/t/acme")
    return browser


def test_changes_are_made_without_a_script(browser: Browser, lodge: RunningApi) -> None:
    engine = lodge.engine
    asked = browser.sends(browser.open("/t/acme/schedules/s"), "/run-now")
    assert engine.actions.list("acme") == [], "it only asks"
    first, second = browser.agrees(asked), browser.agrees(asked)
    (action,) = engine.actions.list("acme")
    assert {first.headers["location"], second.headers["location"]} == {f"/t/acme/actions/{action.id}"}
    assert browser.open(first.headers["location"])
    # A script, with line breaks as browsers send them.
    page = browser.open("/t/acme/new-script")
    made = browser.agrees(
        browser.sends(page, "/scripts/{name}", name="two words", **{"module:main.js": "export default () =>\r\n 7\r\n"})
    )
    assert made.is_redirect, re.findall("<h1>.*?</p>", made.text, re.DOTALL)
    assert made.headers["location"] == "/t/acme/scripts/two%20words"
    assert engine.scripts.get("acme", "two words").modules == {"main.js": "export default () =>\n 7\n"}
    two = {"module:main.js": "export { n as default } from './n.js';", "module:n.js": "export const n = () => 8;"}
    browser.agrees(browser.sends(browser.open("/t/acme/scripts/two%20words"), "PUT", **two))
    stored = engine.scripts.get("acme", "two words")
    assert (stored.version, list(stored.modules)) == (2, ["main.js", "n.js"])
    many = {f"module:m{number}.js": f"export const n = {number};" for number in range(498)}
    answer = browser.agrees(browser.sends(browser.open("/t/acme/scripts/two%20words"), "PUT", **two | many))
    assert answer.is_redirect, re.findall("<h1>.*?</p>", answer.text, re.DOTALL)
    assert len(engine.scripts.get("acme", "two words").modules) == 500
    # Only changed fields of an edit are sent, numbers as numbers.
    engine.schedules.edit("acme", "s", missed="all")
    page = browser.open("/t/acme/operations/schedules.edit?schedule=s")
    answer = browser.agrees(browser.sends(page, "PATCH", jitter_s="5", why="spread"))
    assert (answer.status_code, answer.headers["location"]) == (303, "/t/acme/schedules/s")
    found = engine.schedules.get("acme", "s")
    assert (found.conduct["jitter_s"], found.missed) == (5, "all")
    # What is no JSON is refused, not stored as text.
    refused = browser.agrees(browser.sends(page, "PATCH", params='{"region": '))
    assert (refused.status_code, "params is not JSON" in refused.text) == (422, True)
    assert engine.schedules.get("acme", "s").params is None
    # Limits are one object; grants are a list of words, people one that may be empty.
    engine.grants.people("acme", ["ann@shop.example"])
    browser.agrees(browser.sends(browser.open("/t/acme/settings"), "PUT /tenants/acme/people", addresses=""))
    assert not engine.tenants.get("acme").people
    page = browser.open("/t/acme/settings")
    browser.agrees(browser.sends(page, "PATCH /tenants/acme", runs_per_day="9"))
    browser.agrees(browser.sends(page, "/grants/give", given="fetch:a.example, mail"))
    tenant = engine.tenants.get("acme")
    assert (tenant.limits, {"fetch:a.example", "mail"} <= set(tenant.grants)) == ({"runs_per_day": 9}, True)
    page = browser.open("/t/acme/operations/scripts.dry_run?name=job")
    assert 'title="ok"' in browser.agrees(browser.sends(page, "dry-run", source="export default () =>\n 5")).text
    # A document of a collection is found by the pages of its collection, and edited.
    engine.documents.put("acme", "carts", "a b", {"city": "Bonn"})
    page = browser.open("/t/acme/operations/collections.list")
    page = browser.open(re.search('"([^"]*documents.list[^"]*)"', page.text)[1])
    page = browser.open(unescape(re.search('"([^"]*documents.put[^"]*)"', page.text)[1]))
    assert browser.agrees(browser.sends(page, "PUT", values='{"city": "Kiel", "at": 1}')).status_code == 200
    assert engine.documents.get("acme", "carts", "a b").values == {"city": "Kiel", "at": 1}
    second = browser.agrees(browser.sends(page, "PUT", values='{"city": "Ulm"}'))
    assert (second.status_code, "precondition_failed" in second.text) == (412, True), "the second save is told"
    assert engine.documents.get("acme", "carts", "a b").values == {"city": "Kiel", "at": 1}
    page = browser.open("/t/acme/settings")
    # A question has the words of the page; a secret of an answer is shown once.
    asked = browser.sends(page, "/tenants/acme/suspend")
    assert "Stop tenant acme?" in asked.text
    assert browser.agrees(asked).headers.get("location") == "/t/acme/settings", browser.agrees(asked).text
    assert engine.tenants.get("acme").state == "suspended"
    shown = browser.agrees(browser.sends(page, "/tenants/acme/tokens", name="ci", role="viewer"))
    assert re.search("lodger_[A-Za-z0-9_-]{20}", shown.text)
    page = browser.open("/t/acme/settings")
    # What the API refuses is a page with its reason.
    refused = browser.agrees(browser.sends(page, "PATCH /tenants/acme", runs_per_day="-1"))
    assert (refused.status_code, "limit_out_of_range" in refused.text) == (422, True)


def test_other_sites_change_nothing(browser: Browser, lodge: RunningApi) -> None:
    call = "/call?" + urlencode({"to": "POST /tenants/acme/schedules/s/run-now", "then": "//evil.example/"})
    form = {"content-type": FORM}
    cases = (
        ({"_csrf": "wrong"}, {}, 403),
        ({}, {"origin": "https://evil.example"}, 403),
        ({}, {"sec-fetch-site": "cross-site"}, 403),
        ({}, {"authorization": f"Bearer {lodge.token('admin')}"}, 403),
    )
    for fields, headers, status in cases:
        answer = browser.client.post(call, content=urlencode(fields), headers=form | headers)
        assert answer.status_code == status, (fields, headers)
    assert browser.client.post("/sign-out", headers={"origin": "https://evil.example"}).status_code == 403
    for to in ("GET /tenants/acme", "POST /nowhere", "", "POST", "DELETE /tenants/{name}", "POST /tenants/acme/../x"):
        answer = browser.client.post("/call?" + urlencode({"to": to}), content=b"name=..", headers=form)
        assert answer.status_code in {404, 422}, to
    assert lodge.engine.actions.list("acme") == []
    assert unescape(browser.client.post("/call", content=b"\xff=1", headers=form).text)
    asked = browser.client.post(call, content=b"", headers=form | {"referer": "https://evil.example/t/acme"})
    assert "evil.example" not in re.sub('then=[^"]*', "", asked.text)
    assert browser.client.post(call, content=b"", headers=form | {"referer": "http://["}).status_code == 200
    assert browser.agrees(asked).headers["location"] == "/"
    assert 'content="0; url=/sign-in"' in browser.client.post("/sign-out").text
    assert browser.client.get("/").headers["location"] == "/sign-in"
    with lodge.browser() as visitor:
        answer = visitor.post(call, content=b"", headers=form)
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")


def test_a_rule_is_built_without_a_script(browser: Browser, lodge: RunningApi) -> None:
    days = {"rule.step": "days", "rule.monthdays": "1, last", "rule.time": "09:30"}
    new = browser.open("/t/acme/new-schedule")
    browser.agrees(browser.sends(new, "POST /tenants/acme/schedules", name="built", script="job", **days))
    (rule,) = lodge.engine.schedules.get("acme", "built").rules.rules
    assert rule.text == "30 9 1,L * *"


def test_an_empty_list_is_an_empty_field_that_stays_empty(browser: Browser, lodge: RunningApi) -> None:
    page = browser.open("/t/acme/operations/schedules.edit?schedule=s")
    (given,) = (found for each, found in Forms(page.text).forms if "PATCH" in unquote_plus(each.get("action", "")))
    assert (given["labels"], given["exclusions"], given["params"]) == ("", "", "")
    browser.agrees(browser.sends(page, "PATCH", why="nothing else"))
    assert lodge.engine.schedules.get("acme", "s").conduct["labels"] == []


#: What people and programs type where another thing is wanted.
TYPED = (
    "x", "", "-1", "9" * 40, "1e999", "\0", "..", "a/b", '{"a":', '{"a": 1, "a": 2}', "null", "é" * 9000, "2026-13-45T99:99",
    "'; --", "a\r\nb\r\n", "\u202eabc", "<b>", "%2e%2e",
)  # fmt: skip


def test_whatever_is_typed_the_answer_is_a_page_that_keeps_it_and_marks_its_field(
    browser: Browser, lodge: RunningApi
) -> None:
    names = dict.fromkeys(each.name for each in lodge.engine.table.routes)
    pages = ["/t/acme/settings", "/t/acme/schedules/s", "/t/acme/new-schedule", "/t/acme/new-script"]
    pages += [f"/t/acme/operations/{name}" for name in names]
    kept, marked, number = 0, 0, 0
    for page in map(browser.client.get, pages):
        for form, given in Forms(page.text).forms:
            call = unquote_plus(form.get("action", "")).partition("to=")[2]
            typed = [name for name in given if name[0] != "_" and name not in {"rule.known", "file"}]
            if not typed or not call or call.startswith("DELETE"):
                continue
            number += 1
            text = TYPED[number % len(TYPED)]
            asked = browser.sends(page, call, **dict.fromkeys(typed, text))
            answer = browser.agrees(asked) if "_csrf" in asked.text else asked
            assert answer.status_code in {200, 303, 400, 404, 409, 413, 422}, (call, text)
            if answer.status_code < 400:
                continue
            left: dict[str, str] = {}
            for _form, fields in Forms(answer.text).forms:
                left |= fields
            assert [name for name in typed if left[name].replace("\r", "") != text.replace("\r", "")] == [], (
                call,
                text,
            )
            kept, marked = kept + 1, marked + answer.text.count('aria-invalid="true"')
    assert kept > 40
    assert marked > 0.8 * kept
