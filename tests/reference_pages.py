"""The parts of the reference that are made from the table of operations and from the command line itself.

``python -m tests.reference_pages`` writes them into their pages; ``tests/test_docs.py`` holds the pages to them.
"""

import os
import re
from pathlib import Path
from typing import Any

import typer

from lodger.engine.cli import entry
from lodger.engine.cli.operations import summary
from lodger.engine.features import TABLE

ROOT = Path(__file__).resolve().parent.parent
MARK = "<!-- made by python -m tests.reference_pages -->"
_ENDED = re.compile(re.escape(MARK) + r"\n.*?(?=^## (?!lodger |Operations)|\Z)", re.DOTALL | re.MULTILINE)
#: Where more is said of a noun.
MORE = {
    "grant": "grants.md", "secret": "secrets.md", "webhook": "webhooks.md", "collection": "data.md", "schedule": "policies.md",
    "tenant": "moving-tenants.md", "alert": "alerts.md",
}  # fmt: skip
#: Options that every command has.
COMMON = {"db", "as_json", "help"}


def everything() -> Any:
    """Return the command line with all of its commands."""
    os.environ["_LODGER_COMPLETE"] = "tests"
    try:
        entry.add_commands([])
        return typer.main.get_command(entry.app)
    finally:
        del os.environ["_LODGER_COMPLETE"]


def usage(command: Any) -> str:
    """Return a command's arguments and options on one line."""
    words = []
    for each in command.params:
        if each.name in COMMON:
            continue
        if each.param_type_name == "argument":
            word = each.metavar or (each.name or "").upper()
            words.append(word if each.required else f"[{word}]")
        else:
            several = getattr(each, "multiple", False)
            value = "" if getattr(each, "is_flag", False) else f" {each.metavar or each.opts[0].strip('-').upper()}"
            words.append(f"[{each.opts[0]}{value}{' …' if several else ''}]")
    return " ".join(words)


def command_line() -> str:
    """Return the sections of the nouns."""
    commands = everything().commands
    lines = []
    for noun, what in entry.all_nouns().items():
        more = f" More: [{MORE[noun]}](../{MORE[noun]})." if noun in MORE else ""
        lines += [f"## lodger {noun}", "", what + more, ""]
        for name, command in sorted(commands[noun].commands.items()):
            said = " ".join((command.help or "").split("\n\n")[0].split())
            lines.append(f"- `lodger {noun} {name} {usage(command)}".rstrip() + f"`: {said}")
        lines.append("")
    return "\n".join(lines)


def http() -> str:
    """Return the table of routes."""
    lines = ["## Operations", "", "| route | role | in Python | what |", "|---|---|---|---|"]
    lines += [
        f"| `{each.method} {each.path}` | `{each.role.value}` | `{each.name}` | {summary(each.function)} |"
        for each in TABLE.routes
    ]
    lines += ["", "In Python only:", ""]
    lines += [
        f"- `{name}`: {summary(TABLE.operations[name].function)} Why: {why}." for name, why in TABLE.local_only.items()
    ]
    return "\n".join([*lines, ""])


PAGES = {ROOT / "docs/reference/command-line.md": command_line, ROOT / "docs/reference/http.md": http}


def written(page: Path) -> str:
    """Return a page as it is to be."""
    text = page.read_text()
    assert text.count(MARK) == 1, page
    return _ENDED.sub(lambda _found: f"{MARK}\n\n{PAGES[page]()}\n", text).rstrip("\n") + "\n"


if __name__ == "__main__":
    for each in PAGES:
        each.write_text(written(each))
