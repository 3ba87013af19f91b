"""Texts of pages: each comes from the catalogue of the reader's language, and catalogues are complete."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser

import polib
import pytest
from tests import page_texts
from tests.api.running_api import RunningApi
from tests.web.every_page import hostile_api, paths

from lodger.engine.policy.budget_table import ALLOWANCES, BUDGETS
from lodger.engine.policy.plan import MissedKind, Overlap
from lodger.engine.store.actions.actions import ORIGINS, OUTCOMES, STATES
from lodger.engine.web import texts
from lodger.sandbox.limits import LIMITS

#: Attributes that people read.
READ = {"title", "aria-label", "aria-description", "placeholder", "label", "data-label", "data-confirm"}


class Words(HTMLParser):
    """The texts of a page that people read, without code."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self._code: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.found |= {value for name, value in attrs if name in READ and value}
        if (
            tag in {"code", "pre", "kbd", "textarea", "time"}
            or given.get("class") == "changes"
            or (given.get("lang") == "en" and tag != "html")
            or (tag == "option" and "value" not in given)
        ):
            self._code.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._code and self._code[-1] == tag:
            self._code.pop()

    def handle_data(self, data: str) -> None:
        if not self._code and re.search("[A-Za-z]{2}", data):
            self.found.add(" ".join(data.split()))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningApi]:
    with hostile_api(tmp_path_factory.mktemp("hostile")) as made:
        yield made


#: What the tenants wrote, names of things outside, codes in tips, and examples of syntax.
DATA = {
    "Lodger", "acme", "other", "first", "second", "hook", "root", "python", "http", "admin", "admin None", "main.js",
    "Tokens", "paused", "standard", "example.com", "KEY", "order.*", "none", "0 9 * * 1-5",
    *STATES, *OUTCOMES, *ORIGINS, *MissedKind, *Overlap,
    *(each.name for each in [*LIMITS, *BUDGETS, *ALLOWANCES]), "runs",
}  # fmt: skip
WRITTEN = re.compile(
    r"pwned|lodger_|^\S*\d{2}:\d\d|UTC$|^[\d.± ]+(ms|s|min)$|^[\w.]+\.\w+$|^\w+_\w+$|\w:\w|^[\da-f-]{36}$|^{|@|://"
    r"|tenant_unknown|no tenant|counted from|^[\da-f]{8}$"
)


def test_every_page_is_in_the_readers_language(hostile: RunningApi) -> None:
    known = texts.catalogue("de")
    same = {text for text in known if known[text] == text} | {"Mo", "Fr", "Sa", "Last", "Jan 2026", "Nov 2025", *DATA}
    with hostile.browser("admin") as browser:
        untranslated = {}
        for path in [*paths(hostile), "/t/none", "/sign-in"]:
            asked = ("de-AT,en;q=0.5", "fr,en-GB;q=0.1")
            answers = [browser.get(path, headers={"accept-language": each}) for each in asked]
            assert ['<html lang="de"' in each.text for each in answers] == [True, False], path
            german, english = (Words(each.text).found for each in answers)
            left = {each for each in german & english if not WRITTEN.search(each)} - same
            if left:
                untranslated[path] = left
    assert not untranslated


def test_a_catalogue_has_every_message_with_its_values_and_no_markup() -> None:
    for path in texts.FOLDER.glob("*.po"):
        entries = {each.msgid: each.msgstr for each in polib.pofile(str(path))}
        assert set(entries) == set(page_texts.messages()), "bring it up to date with: python -m tests.page_texts"
        assert not [text for text, said in entries.items() if not said], "write the translation"
        for text, said in entries.items():
            assert sorted(re.findall(r"{\d+}", text)) == sorted(re.findall(r"{\d+}", said)), text
            assert not re.search(r'[<>"&]|{{|{%', said), said


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("", "en"), ("de", "de"), ("de-CH", "de"), ("DE", "de"), ("en,de", "en"), ("fr, de;q=0.3", "de"), ("de;q=0.1,en;q=0.2", "en"),
        ("de;q=0", "en"), ("fr", "en"), ("de;q=x", "en"), ("../../x", "en"), ("," * 9000, "en"), ("*", "en"),
    ],
)  # fmt: skip
def test_the_preferred_language_is_one_that_there_is(accepted: str, language: str) -> None:
    assert texts.preferred(accepted) == language


def test_a_run_of_text_is_one_message_whose_values_may_change_places() -> None:
    known = {"{0} of {1} rows": "{1} Zeilen, davon {0}", "Delete {0}?": "{0} löschen?", "Name": "N"}
    source = (
        "<p>{{ used }} of {{ size(all) }} rows</p> {# Name #}<code>Name</code><option>Name</option>"
        """<i{% if a > 1 %} class="Name"{% endif %} title="Delete {{ names['x > y'] }}?">Name</i>"""
        """{% block a %} data-a="1"{% endblock %}"""
    )
    made = texts.translated(source, lambda text: known.get(text, text))
    assert made == (
        "<p>{{ size(all) }} Zeilen, davon {{ used }}</p> {# Name #}<code>Name</code><option>Name</option>"
        """<i{% if a > 1 %} class="Name"{% endif %} title="{{ names['x > y'] }} löschen?">N</i>"""
        """{% block a %} data-a="1"{% endblock %}"""
    )


def test_a_run_may_have_many_values() -> None:
    source = "<p>rows " + " ".join(f"{{{{ v{number} }}}}" for number in range(12)) + "</p>"
    assert texts.translated(source, lambda text: text) == source


def test_scripts_get_the_texts_of_the_page(hostile: RunningApi) -> None:
    with hostile.browser("admin") as browser:
        page = browser.get("/tenants", headers={"accept-language": "de"})
        (script,) = re.findall(r'src="(/static/texts-de.js[^"]*)"', page.text)
        answer = browser.get(script)
        assert '"You are signed out": "Sie sind abgemeldet"' in answer.text
        assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
        assert page.headers["vary"] == "accept-language"
        assert "texts-" not in browser.get("/tenants").text
