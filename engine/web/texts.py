"""Texts of pages in the reader's language. A catalogue in ``locale/`` has the texts of templates, of scripts and of this package.

Templates need no marks: each run of text between two tags is one message, and so is the text of an attribute that people read. What
an expression gives stands in it as ``{0}``, ``{1}``, …. Only a text within an expression is marked, with ``_('…')``, as in Python.
"""

import re
from collections.abc import Callable
from contextvars import ContextVar
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "locale"
#: The language in which texts are written, and those into which they are translated.
LANGUAGES = ("en", *sorted(path.stem for path in FOLDER.glob("*.po")))
#: The language of the page that is being rendered.
LANGUAGE: ContextVar[str] = ContextVar("language", default="en")

_EXPRESSION = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_JINJA = r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}"
#: A tag with the expressions in it, or another token that ends a run of text.
_BREAK = re.compile(rf"\{{%.*?%\}}|\{{#.*?#\}}|</?[a-zA-Z!](?:{_JINJA}|[^>{{]|\{{(?![{{%#]))*>", re.DOTALL)
_READ = re.compile(
    rf'( (?:title|aria-label|aria-description|placeholder|label|data-label)=")((?:{_JINJA}|[^"{{]|\{{(?![{{%#]))*)"',
    re.DOTALL,
)
#: Elements with code in place of words, and options whose text is their value.
_CODE = re.compile(r"<(code|pre|kbd|option(?![^>]* value=))\b")
Look = Callable[[str], str]


@cache
def catalogue(language: str) -> dict[str, str]:
    """Return the translations into a language by their English text."""
    if language == "en":
        return {}
    import polib

    return {each.msgid: each.msgstr for each in polib.pofile(str(FOLDER / f"{language}.po")) if each.translated()}


def _(text: str, *values: object) -> str:
    """Return a text in the language of the page, with values in place of ``{0}``, ``{1}``, …."""
    return filled(catalogue(LANGUAGE.get()).get(text, text), *map(str, values))


def filled(text: str, *values: str) -> str:
    """Return a text with values in place of ``{0}``, ``{1}``, …."""
    return re.sub(r"\{(\d+)\}", lambda found: values[int(found[1])], text) if values else text


def preferred(accepted: str) -> str:
    """Return the language that an ``Accept-Language`` header prefers of those that there are; English without one."""
    wanted: list[tuple[float, str]] = []
    for part in accepted.split(",")[:50]:
        tag, _sep, quality = part.partition(";q=")
        try:
            wanted.append((-float(quality or 1), tag.strip().partition("-")[0].lower()))
        except ValueError:
            continue
    return next((tag for rank, tag in sorted(wanted, key=lambda each: each[0]) if rank and tag in LANGUAGES), "en")


def translated(source: str, look: Look) -> str:
    """Return a template with each message in place of which ``look`` returns another text."""
    made, at, code = [], 0, ""
    for found in _BREAK.finditer(source):
        token = found[0]
        made += [_run(source[at : found.start()], look, code), _READ.sub(lambda each: _attribute(each, look), token)]
        at = found.end()
        if not code and (opened := _CODE.match(token)):
            code = f"</{opened[1]}>"
        elif token == code:
            code = ""
    return "".join([*made, _run(source[at:], look, code)])


def _attribute(found: re.Match[str], look: Look) -> str:
    """Return an attribute of a template with its value translated."""
    return f'{found[1]}{translated(found[2], look)}"'


def _run(run: str, look: Look, code: str) -> str:
    """Return a run of text and expressions with its message translated; unchanged if it has no words."""
    words = _EXPRESSION.sub("", run)
    if code or not re.search("[A-Za-z]{2}", words) or re.match(r'\s*data-[a-z-]+(="|$)', words):
        return run
    expressions: list[str] = _EXPRESSION.findall(run)
    number = iter(range(len(expressions)))
    message = " ".join(_EXPRESSION.sub(lambda _found: f"{{{next(number)}}}", run).split())
    before, after = run[: len(run) - len(run.lstrip())], run[len(run.rstrip()) :]
    return before + filled(look(message), *expressions) + after
