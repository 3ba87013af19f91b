"""How answers look to people: a table for a list, lines for one thing. One place, for every verb."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any

from lodger.engine.cli.answer import say, table, zulu

Cell = Callable[[Any], object]


def _when(name: str) -> Cell:
    return lambda each: zulu(getattr(each, name)) if getattr(each, name) else ""


def _words(name: str) -> Cell:
    return lambda each: " ".join(getattr(each, name) or ())


def _ended(each: Any) -> object:  # noqa: ANN401 - an action or an attempt
    return each.outcome or getattr(each, "reason", None) or ""


#: Columns of a table, by the kind of its rows.
COLUMNS: dict[str, tuple[tuple[str, str | Cell], ...]] = {
    "Tenant": (
        ("tenant", "id"), ("name", "name"), ("state", "state"),
        ("grants", lambda each: "default" if each.grants is None else " ".join(each.grants)),
    ),
    "Script": (("script", "name"), ("version", "version"), ("stored", _when("created_at"))),
    "ScriptVersion": (
        ("version", "version"), ("stored", _when("created_at")), ("by", "created_by"), ("why", "why"),
        ("digest", lambda each: each.digest[:12]),
    ),
    "Schedule": (
        ("schedule", "name"), ("in words", "text"), ("state", "state"), ("next slot", _when("next_at")), ("id", "id"),
    ),
    "ScheduleRevision": (
        ("revision", "revision"), ("made", _when("created_at")), ("by", "created_by"), ("in words", "text"), ("why", "why"),
    ),
    "Action": (
        ("schedule", lambda each: each.schedule or each.script), ("due", _when("due_at")), ("state", "state"),
        ("how it ended", _ended), ("id", "id"),
    ),
    "Attempt": (
        ("step", "step"), ("attempt", "n"), ("started", _when("started_at")), ("how it ended", lambda each: each.outcome or "running"),
        ("CPU ms", lambda each: f"{each.usage.cpu_ms:.1f}"),
    ),
    "Token": (
        ("token", "prefix"), ("name", "name"), ("role", "role"), ("tenant", "tenant_id"), ("expires", _when("expires_at")),
        ("revoked", _when("revoked_at")), ("used", _when("used_at")),
    ),
    "AuditEntry": (
        ("when", _when("at")), ("who", "actor"), ("by", "via"), ("what", "verb"), ("of", lambda each: each.named or each.target),
        ("tenant", "tenant_id"), ("why", "why"),
    ),
    "RunningNow": (
        ("schedule", lambda each: each.schedule or each.script), ("tenant", "tenant_id"), ("node", "node"),
        ("runs for", lambda each: f"{each.elapsed_ms / 1000:.1f} s"), ("", lambda each: "slow" if each.slow else ""),
        ("id", "action_id"),
    ),
    "Overdue": (
        ("schedule", "schedule"), ("tenant", "tenant_id"), ("due", _when("due_at")),
        ("waits", lambda each: f"{each.waits_ms / 1000:.1f} s"), ("why", "why"),
    ),
    "NodeRow": (
        ("node", "name"), ("state", "state"), ("runs", lambda each: f"{each.running} of {each.slots}"), ("labels", _words("labels")),
        ("heard of", _when("seen_at")), ("version", "version"),
    ),
    "BudgetRow": (
        ("budget", "budget"), ("per", "per"), ("used", "used"),
        ("limit", lambda each: "any" if each.limit is None else each.limit), ("what", "help"),
    ),
    "Lock": (
        ("lock", "name"), ("held by", lambda each: each.holder or ""), ("until", _when("until")), ("slot", _when("slot")),
        ("epoch", "epoch"),
    ),
    "Change": (("field", "field"), ("before", lambda each: compact(each.before)), ("after", lambda each: compact(each.after))),
}  # fmt: skip


def show(answer: Any) -> None:  # noqa: ANN401 - any verb's answer
    """Show an answer by its kind."""
    if answer is None:
        say("done")
    elif isinstance(answer, list | tuple) and all(isinstance(each, str) for each in answer):
        for each in answer or ("none",):
            say(each)
    elif isinstance(answer, list | tuple):
        rows(answer)
    elif is_dataclass(answer):
        one(answer)
    else:
        say(str(answer))


def rows(found: Sequence[Any]) -> None:
    """Show a list as a table, and say how it goes on."""
    if not found:
        say("none")
        return
    columns = COLUMNS.get(type(found[0]).__name__) or tuple((field.name, field.name) for field in fields(found[0]))
    table(
        [heading for heading, _cell in columns],
        ([cell(each) if callable(cell) else getattr(each, cell) for _heading, cell in columns] for each in found),
    )
    if getattr(found, "next", None):
        say(f"there are more: --cursor {found.next}")  # type: ignore[attr-defined]  # of a page


def one(thing: Any) -> None:  # noqa: ANN401 - any record
    """Show one thing, a line for each of its parts that says anything."""
    parts = [(field.name, getattr(thing, field.name)) for field in fields(thing)]
    width = max(len(name) for name, _value in parts) + 2
    for name, value in parts:
        if value in (None, (), [], {}, ""):
            continue
        text = cell(value).split("\n")
        say(f"{name:{width}}{text[0]}")
        for line in text[1:]:
            say(" " * width + line)


def cell(value: Any) -> str:  # noqa: ANN401 - any value of a record
    """Give a value as text."""
    if isinstance(value, datetime):
        return zulu(value)
    if isinstance(value, str):
        return value
    if isinstance(value, tuple | list) and all(isinstance(each, str) for each in value):
        return " ".join(value)
    return compact(value)


def compact(value: Any) -> str:  # noqa: ANN401 - any value of a record
    """Give a value as JSON on one line."""
    from lodger.engine.core.serialization import shaped

    return json.dumps(shaped(value), ensure_ascii=False)


def schedule(made: Any) -> None:  # noqa: ANN401 - a schedule
    """Show a schedule as what it means: its sentence and its next slot."""
    say(f"{made.name}: {made.text}")
    say(f"  next slot {zulu(made.next_at)}" if made.next_at else f"  no next slot: {made.state}")


def action(made: Any) -> None:  # noqa: ANN401 - an action
    """Show what became of an action that was asked for."""
    say(f"action {made.id} is {made.state}, due {zulu(made.due_at)}")


def version(made: Any) -> None:  # noqa: ANN401 - a version of a script
    """Show which version was stored."""
    module = f", WebAssembly, {made.wasm_bytes} bytes" if made.wasm_bytes is not None else ""
    say(f"script {made.name} of {made.tenant_id}: version {made.version}{module}")
    if made.unchecked:
        say(f"  nobody has looked whether it can run: {made.unchecked}")


def tenant(made: Any) -> None:  # noqa: ANN401 - a tenant
    """Show that a tenant is there, and how."""
    say(f"tenant {made.id} is {made.state}")


def usage(found: Any) -> None:  # noqa: ANN401 - an Account
    """Show what a tenant used by day, without what it never used, and how far its budgets are used up."""
    names = sorted({name for each in found.days for name, amount in each.counts.items() if amount})
    table(
        ("day", "runs", "cpu_s", *names),
        (
            [str(each.day), each.runs, f"{each.cpu_s:.3f}", *(each.counts[name] for name in names)]
            for each in found.days
        ),
    )
    say("")
    rows(found.budgets)


def script_diff(diff: Any) -> None:  # noqa: ANN401 - a ScriptDiff
    """Show what differs between two versions, as a unified diff with colours on a terminal."""
    if not diff.files:
        say(f"versions {diff.older} and {diff.newer} are alike")
    for each in diff.files:
        coloured(
            [
                f"--- {each.file} (version {diff.older})",
                f"+++ {each.file} (version {diff.newer})",
                *each.text.split("\n"),
            ]
        )


def schedule_diff(diff: Any) -> None:  # noqa: ANN401 - a ScheduleDiff
    """Show what differs between two revisions."""
    if not diff.changes:
        say(f"revisions {diff.older} and {diff.newer} are alike")
    else:
        rows(diff.changes)


def coloured(lines: Iterable[str]) -> None:
    """Show lines of a diff, in colours on a terminal."""
    from rich.console import Console
    from rich.text import Text

    from lodger.engine.cli.answer import visible

    console = Console(highlight=False, soft_wrap=True)
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for line in lines:
        console.print(Text(visible(line), styles.get(line[:1], "")))


def checked(found: Any) -> None:  # noqa: ANN401 - a Checked
    """Show whether a source could run, and if not, where not."""
    if found.ok:
        say("it could run")
    for problem in found.problems:
        place = f"{problem.file}:{problem.line}: " if problem.line else ""
        say(f"{place}{problem.name}: {problem.message}")


def preview(shown: Any) -> None:  # noqa: ANN401 - a Preview
    """Show what rules mean, with their next slots."""
    say(shown.text)
    for slot in shown.slots:
        say(f"  {zulu(slot)}{'  moved by DST' if slot in shown.shifted else ''}")


def what_if(told: Any) -> None:  # noqa: ANN401 - a WhatIf
    """Show what an edit would change."""
    say(f"now:  {told.before}\nthen: {told.after}")
    changes = [(slot, "dropped") for slot in told.dropped] + [(slot, "added") for slot in told.added]
    for slot, what in sorted(changes):
        say(f"  {'-' if what == 'dropped' else '+'} {zulu(slot)}")
    said = f"{len(told.dropped)} dropped, {len(told.added)} added" if changes else "no slot changes"
    say(f"{said}; compared up to {zulu(told.complete_to)}")


def token(made: Any) -> None:  # noqa: ANN401 - a NewToken
    """Show a token this once."""
    say(f"token {made.token.name}, role {made.token.role}, shown this once:\n\n    {made.text}\n")


def log_lines(lines: Any) -> None:  # noqa: ANN401 - lines of a log
    """Show what a script wrote."""
    for line in lines:
        say(f"{line.level:5} {line.text}")
