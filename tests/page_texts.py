"""The messages of the dashboard's pages, and their catalogues: ``python -m tests.page_texts`` brings these up to date.

New messages come without a translation, for somebody to write; messages that no page has any more go.
"""

import ast
import dataclasses
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import get_args

import polib

from lodger.engine import features
from lodger.engine.core.access.roles import Role
from lodger.engine.policy.budget_table import ALLOWANCES, BUDGETS, STORAGE_HELP
from lodger.engine.policy.plan import MissedKind, Overlap
from lodger.engine.service import humanize
from lodger.engine.store.actions.actions import ORIGINS, OUTCOMES, STATES
from lodger.engine.web import dashboard, listing, rendering, texts
from lodger.engine.web.pages import actions, operations, tenants
from lodger.sandbox.limits import LIMITS

ROOT = Path(__file__).resolve().parent.parent / "engine"
#: Codes that pages show in words, beside those of the tables.
CODES = [
    "on", "off", "jump", "drift", "armed",
    "paused", "suspended", "ended", "active", "running", "waiting", "alive", "silent", "held", "stopped",
    "lost", "script", "handler", "function", "query", "ping", "pending", "sent", "failed", "refused", "authorized",
    "new", "changed", "removed", "added", "agrees", "differs", "undecided", "missed", "following", "promoted",
    "dropped", "slot", "gap", "request", "overlap", "expired", "caught_up", "skipped", "cancelled", "superseded",
    "schedule_deleted", "tenant_suspended", "over_budget",
]  # fmt: skip
NOUNS = ["actions", *listing.WORDS.values(), "schedules", "scripts", "tenants"]
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
PERIODS = ["day", "tenant", "attempts", "CPU time", STORAGE_HELP]


def messages() -> dict[str, str]:
    """Return where each message stands first, by its text."""
    features.load("pages")
    found: dict[str, str] = {}

    def add(text: str, path: str) -> str:
        found.setdefault(text, path)
        return text

    for path in sorted(ROOT.rglob("templates/*.html")):
        name, source = path.relative_to(ROOT.parent).as_posix(), path.read_text()
        texts.translated(source, lambda text, name=name: add(text, name))  # type: ignore[misc]  # a lambda with a default
        for text in re.findall(r"\b_\('([^']*)'", source):
            add(text, name)
    for path in sorted([*(ROOT / "web").rglob("*.py"), *(ROOT / "features").rglob("pages.py")]):
        for node in ast.walk(ast.parse(path.read_text())):
            named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "_"
            if named and isinstance(node.args[0], ast.Constant):
                add(str(node.args[0].value), path.relative_to(ROOT.parent).as_posix())
    for path in sorted((ROOT / "web" / "static").glob("*.js")):
        for text in of_script(path.read_text()):
            add(text, path.relative_to(ROOT.parent).as_posix())
    codes = [
        *CODES,
        *STATES,
        *OUTCOMES,
        *ORIGINS,
        *Role,
        *MissedKind,
        *Overlap,
        *humanize.WORDS,
        *humanize.WAITS,
    ]
    helps = [each.help for each in [*LIMITS, *BUDGETS, *ALLOWANCES]]
    titles = [title for _to, title in [*dashboard.LINKS, *tenants.LINKS]] + [
        name.capitalize() for name in actions.CHOICES
    ]
    forms = [each for each in features.TABLE.routes if each.kind != "bytes"]
    named = [
        rendering.title(one.name) for each in forms for one in each.parameters if one.name not in {"cursor", each.raw}
    ]
    named += [each.declared.confirm for each in forms if each.declared.confirm]
    answers = {kind for each in forms if each.method == "GET" for kind in (each.answer, *get_args(each.answer))}
    named += sorted(
        {rendering.title(one.name) for each in answers if is_dataclass(each) for one in dataclasses.fields(each)}
    )
    for text in [
        *(rendering.title(each.name.partition(".")[2]) for each in forms),
        *(each.noun for each in forms),
        *named,
        *map(humanize.words_of, map(str, codes)),
        *(humanize.words_of(word) for each in forms for one in each.parameters for word in operations.kind_of(one)[1]),
        *humanize.WAITS.values(),
        *titles,
        *NOUNS,
        *(each.removesuffix("s") for each in NOUNS),
        *MONTHS,
        *tenants.LIMIT_GROUPS,
        *PERIODS,
        *helps,
    ]:
        add(text, "codes")
    return found


def of_script(source: str) -> Iterator[str]:
    """Yield the messages of a script: its template texts that ``t`` stands before, with ``{0}``, ``{1}``, … for what is filled in."""
    for begun in re.finditer(r"\bt`", source):
        text, at, depth, number = "", begun.end(), 0, 0
        while depth or source[at] != "`":
            if depth:
                depth += (source[at] == "{") - (source[at] == "}")
            elif source.startswith("${", at):
                text, at, depth, number = f"{text}{{{number}}}", at + 1, 1, number + 1
            else:
                text += source[at]
            at += 1
        yield text


def update(path: Path) -> None:
    """Bring a catalogue up to date."""
    kept = {each.msgid: each.msgstr for each in polib.pofile(str(path))} if path.exists() else {}
    made = polib.POFile(wrapwidth=120)
    made.metadata = {
        "Language": path.stem,
        "Content-Type": "text/plain; charset=UTF-8",
        "Content-Transfer-Encoding": "8bit",
    }
    for text, place in messages().items():
        made.append(polib.POEntry(msgid=text, msgstr=kept.get(text, ""), comment=place))
    made.save(str(path))


if __name__ == "__main__":
    for catalogue in texts.FOLDER.glob("*.po"):
        update(catalogue)
