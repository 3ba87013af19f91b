"""HTML from templates: the environment, and filters for instants, durations, JSON and small charts."""

import gzip
import hashlib
import json
import re
from datetime import UTC, datetime
from functools import cache, partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FunctionLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from lodger.engine.core.clock import from_us
from lodger.engine.core.plain_text import code_frame
from lodger.engine.core.serialization import to_jsonable
from lodger.engine.service import effect_diff
from lodger.engine.service.humanize import WAITS, words_of
from lodger.engine.store.records import Change
from lodger.engine.store.scripts import differences
from lodger.engine.web import charts, month_view, texts
from lodger.engine.web.charts import duration_text as duration
from lodger.engine.web.listing import term
from lodger.engine.web.texts import LANGUAGE, LANGUAGES, _
from lodger.stdlib import declarations

FOLDER = files("lodger.engine.web")
#: Folders of templates, the dashboard's own and those of wings.
TEMPLATES = [FOLDER / "templates"]
#: Static files with the texts of scripts, each with its language.
CATALOGUES = {f"texts-{language}.js": language for language in LANGUAGES[1:]}
#: Titles of fields whose names are short.
TITLES = {
    "tz": "Time zone", "dst": "Daylight saving time", "params": "Input", "jitter_s": "Jitter, seconds", "action_id": "Action",
    "expires_s": "Expires after, seconds", "tenant_id": "Tenant", "n": "Number", "late_s": "Late after, seconds",
    "overran_s": "Overran after, seconds", "silent_s": "Silent after, seconds", "grace_s": "Later than, seconds",
    "given": "Grants", "taken": "Grants", "of": "Its id in the archive", "put": "Save", "people": "Save people",
}  # fmt: skip


def instant(value: datetime | str | None, zone: str = "") -> str:
    """Return an instant as UTC date and time to the second; a dash for None.

    The page's script writes it in a zone, by default the reader's.
    """
    return _time(value, "of", zone)


def relative(value: datetime | str | None) -> str:
    """Return an instant as UTC date and time, which the page's script says as "in 3 hours"; a dash for None."""
    return _time(value, "relative", "1")


def _time(value: datetime | str | None, name: str, about: str, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """Return the element of an instant, with what the page's script needs to know to write it."""
    if value is None:
        return "–"
    at = (datetime.fromisoformat(value) if isinstance(value, str) else value).astimezone(UTC)
    more = Markup(' data-{}="{}"').format(name, about) if about else ""
    return Markup('<time datetime="{0}" data-at="{0}"{1} title="{2} UTC">{3}</time>').format(
        at.isoformat(), more, f"{at:%Y-%m-%d %H:%M:%S}", at.strftime(form)
    )


def clock(value: datetime | int) -> str:
    """Return the time of day of an instant, also in microseconds since 1970, as UTC to the millisecond, as :func:`instant` does."""
    at = from_us(value) if isinstance(value, int) else value
    rest = f".{at.microsecond // 1000:03}"
    return _time(at, "rest", rest, f"%H:%M:%S{rest}")


def size(number: float) -> str:
    """Return a number of bytes in its largest binary unit."""
    for factor, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if number >= factor:
            return f"{number / factor:.3g} {unit}"
    return f"{number:.0f} B"


def took(action: Any) -> float | None:
    """Return the duration of an action or attempt in milliseconds; None unless it has ended."""
    if action.started_at is None or action.finished_at is None:
        return None
    return float((action.finished_at - action.started_at).total_seconds() * 1000)


def lateness(action: Any) -> float | None:
    """Return start minus due time in milliseconds; None unless it has started."""
    return None if action.started_at is None else max(0.0, (action.started_at - action.due_at).total_seconds() * 1000)


def explain_wait(overdue: Any) -> str:
    """Return why an action is overdue, with the detail of its reason."""
    if overdue.why == "no_node" and not overdue.detail:
        return _("no node is alive")
    words = _(WAITS.get(overdue.why, overdue.why))
    return f"{words}: {overdue.detail}" if overdue.detail else words


def verb(operation: str) -> str:
    """Return the name of an operation as the word on its button."""
    return _(title(operation.partition(".")[2]))


def title(name: str) -> str:
    """Return the name of a verb or a field as English words."""
    return TITLES.get(name) or name.replace("_", " ").capitalize()


def breakable(name: str) -> Markup:
    """Return a name that a line breaks between its words, not inside of one."""
    return Markup("<wbr>").join(re.split("(?<=[-_./])(?=.)", _in_one_direction(name)))


def pretty(value: object) -> str:
    """Return a value as indented JSON."""
    return json.dumps(to_jsonable(value), indent=2, ensure_ascii=False)


#: Texts of values that are left out of a record that is new or gone.
_NOTHING = {"null", "[]", "{}", ""}


def field_changes(before: Any, after: Any) -> tuple[Change, ...]:
    """Return the fields that differ, nested ones by their names joined by dots, with their values as text, None for an absent one;
    those with a value if there was no record before or after."""
    old, new = _leaves(before), _leaves(after)
    if before is None or after is None:
        old, new = ({path: text for path, text in each.items() if text not in _NOTHING} for each in (old, new))
    return differences.of_fields(old, new)


def _leaves(value: Any, path: str = "") -> dict[str, str]:
    """Return the leaves of a JSON value by path. A list is one leaf."""
    if value is None and not path:
        return {}
    if isinstance(value, dict) and value:
        found: dict[str, str] = {}
        for name, each in value.items():
            found |= _leaves(each, f"{path}.{name}" if path else str(name))
        return found
    return {path: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}


def _in_one_direction(value: Any) -> Any:
    """Return a value of a template with characters that would turn the text around it shown by their code."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return re.sub("[\u202a-\u202e\u2066-\u2069]", lambda found: f"\\u{ord(found[0]):04x}", value)
    return value


@pass_context
def address(context: Context, call: str, **more: str | None) -> str:
    """Return the address that carries out a change and answers with a page, or a part of one.

    Args:
        call: method and path, with the names of fields in braces.
        more: ``then``, ``confirm``, ``body`` and ``nest``, as :func:`lodger.engine.web.forms.call` reads them.
    """
    return f"{context['root']}/call?{urlencode({'to': call} | {name: each for name, each in more.items() if each is not None})}"


@pass_context
def asks(context: Context, call: str, **more: str | None) -> Markup:
    """Return the attributes of a button that asks for a change, which a browser sends itself where no script runs."""
    return Markup('type="submit" form="call" formaction="{}" data-call="{}" data-confirm="{}"').format(
        address(context, call, **more), call, more.get("confirm") or ""
    )


@pass_context
def sends(context: Context, call: str, upload: bool = False, **more: str | None) -> Markup:
    """Return the attributes of a form for a change; the file of an upload is the request's body."""
    return Markup('method="post" action="{}" data-{}="{}" data-confirm="{}"').format(
        address(context, call, **more), "upload" if upload else "call", call, more.get("confirm") or ""
    )


def environment() -> Environment:
    """Return the template environment of the page's language."""
    return _environment(LANGUAGE.get())


@cache
def _environment(language: str) -> Environment:
    """Return a template environment: texts are in a language, everything is escaped, an undefined name is an error."""
    known = texts.catalogue(language)

    def load_template(name: str) -> str:
        """Return the text of a template in the reader's language."""
        (found,) = (folder / name for folder in TEMPLATES if (folder / name).is_file())
        text = found.read_text(encoding="utf-8")
        return texts.translated(text, lambda message: known.get(message, message)) if known else text

    made = Environment(
        loader=FunctionLoader(load_template),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_in_one_direction,
    )
    made.filters |= {
        "instant": instant, "duration": duration, "took": took, "lateness": lateness, "pretty": pretty,
        "relative": relative, "word": lambda code: _(words_of(code)),
        "verb": verb, "named": lambda name: _(title(name)),
        "noun": lambda noun: _("URLs") if noun == "urls" else _(noun).capitalize(), "breakable": breakable,
        "clock": clock, "explain_wait": explain_wait, "effect_changes": effect_diff.changes,
    }  # fmt: skip
    made.tests["markup"] = lambda value: isinstance(value, Markup)
    for each in (
        field_changes, size, asset, present, term, address, asks, sends, month_view.slots, month_view.coming, month_view.months,
        month_view.weekdays,
    ):  # fmt: skip
        made.globals[each.__name__] = each
    made.globals |= {"frame": partial(code_frame, before=4), "duration": duration, "language": language, "_": _}
    made.globals["charts"] = charts
    made.globals["count"] = "{:,.0f}".format
    return made


@cache
def digest(name: str) -> str:
    """Return the digest of a static file, which its URL has: another content has another URL."""
    return hashlib.sha256(static(name)).hexdigest()[:16]


def asset(name: str) -> str:
    """Return the URL of a static file, below the application's root."""
    return f"static/{name}?{digest(name)}"


@cache
def zipped(name: str) -> bytes:
    """Return the compressed content of a static file."""
    return gzip.compress(static(name), mtime=0)


@cache
def static(name: str) -> bytes:
    """Return the content of a static file, or the declarations of the script API for the editor."""
    if name == declarations.FILE:
        return declarations.text().encode()
    if name in CATALOGUES:
        return f"window.texts = {json.dumps(texts.catalogue(CATALOGUES[name]))};".encode()
    (found,) = _places(name)
    return found.read_bytes()


def present(name: str) -> bool:
    """Whether there is such a static file; a tree from which no package was built has no bundles."""
    return name in {*CATALOGUES, declarations.FILE} or bool(_places(name))


def _places(name: str) -> list[Traversable]:
    """Return the paths of a static file: in the sources, and among what the build made."""
    return [folder / name for folder in (FOLDER / "static", FOLDER / "built") if (folder / name).is_file()]
