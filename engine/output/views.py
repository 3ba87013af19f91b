"""Formats of all results for people: a table for a list, lines for one record."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, get_type_hints

from lodger.engine.core.plain_text import one_line
from lodger.engine.core.serialization import to_jsonable
from lodger.engine.output.result_output import console, say, shown_instant, table
from lodger.engine.service.humanize import humanize_duration
from lodger.engine.store.records import Action

if TYPE_CHECKING:
    from lodger.engine.service.operations.route import Operation

Cell = Callable[[Any], object]


def next_slot(each: Any) -> str:
    """Return a schedule's next slot, in its zone; empty without one."""
    return shown_instant(each.next_at, each.tz) if each.next_at else ""


#: Characters of an id that tables show; commands accept them for the whole id.
SHORT = 8


def short(identity: str | None) -> str:
    """Return the end of an id, which differs between actions made at the same time."""
    return (identity or "")[-SHORT:]


def ended(each: Any) -> str:
    """Return an action's state, with its outcome if that says more, or its reason."""
    more = each.reason if each.outcome in (None, each.state) else each.outcome
    return each.state if more in (None, "ok") else f"{each.state}: {more}"


def took(each: Any) -> str:
    """Return an action's duration; empty while it has not ended."""
    if each.started_at is None or each.finished_at is None:
        return ""
    return humanize_duration(max(0.0, (each.finished_at - each.started_at).total_seconds()))


def slots(each: Any) -> str:
    """Return an action's slot, the first and last of a gap, or when a request was due."""
    return f"{first_slot(each)} to {shown_instant(each.slot_to)}" if each.slot_to else first_slot(each)


def first_slot(each: Any) -> str:
    """Return an action's slot, the first of a gap, or when a request was due, in whole seconds."""
    return shown_instant((each.slot or each.due_at).replace(microsecond=0))


def error(found: Any) -> str:
    """Return a script's error as text, with its place."""
    place = f" ({found.file}:{found.line})" if found.line else ""
    return f"{found.name}: {found.message}{place}"


def step_number(each: Any) -> int:
    """Return the number of a record's step as people count, from 1."""
    return int(each.step) + 1


def actions(found: Sequence[Any]) -> None:
    """Show actions, a line each; beneath it the end of a gap and the error, cut to the terminal's width."""
    from rich.cells import cell_len, set_cell_size

    columns = ("id", "slot", "took", "schedule", "state")
    rows = [
        (short(each.id), first_slot(each), took(each), each.schedule or each.script or "", ended(each))
        for each in found
    ]
    widths = [max(cell_len(one_line(row[at])) for row in (columns, *rows)) for at in range(len(columns) - 1)]
    width = console().width
    for row, each in zip((columns, *rows), (None, *found), strict=True):
        cells = [one_line(cell) for cell in row]
        say("  ".join([*(set_cell_size(cell, size) for cell, size in zip(cells, widths, strict=False)), cells[-1]]))
        if each is None:
            continue
        below = [f"to {shown_instant(each.slot_to)}"] if each.slot_to else []
        below += [error(each.error)] if each.error else []
        for text in below:
            line = " " * (widths[0] + 2) + one_line(text)
            say(line if cell_len(line) <= width else set_cell_size(line, width - 1) + "…")


#: Columns of a table, by the kind of its rows.
COLUMNS: dict[str, tuple[tuple[str, str | Cell], ...]] = {
    "Tenant": (
        ("tenant", "id"), ("name", "name"), ("state", "state"),
        ("grants", lambda each: "default" if each.grants is None else " ".join(each.grants)),
    ),
    "Script": (("script", "name"), ("version", "version"), ("stored", "created_at")),
    "ScriptVersion": (
        ("version", "version"), ("stored", "created_at"), ("by", "created_by"), ("reason", "why"),
        ("digest", lambda each: each.digest[:12]),
    ),
    "Schedule": (
        ("schedule", "name"), ("description", "text"), ("state", "state"), ("next slot", next_slot),
        ("note", "note"),
    ),
    "ScheduleRevision": (
        ("revision", "revision"), ("created", "created_at"), ("by", "created_by"), ("description", "text"), ("reason", "why"),
    ),
    "Attempt": (
        ("step", step_number), ("attempt", "n"), ("started", "started_at"), ("outcome", lambda each: each.outcome or "running"),
        ("took", took), ("CPU ms", lambda each: f"{each.usage.cpu_ms:.1f}"),
    ),
    "Token": (
        ("token", "prefix"), ("name", "name"), ("role", "role"), ("tenant", "tenant_id"), ("expires", "expires_at"),
        ("revoked", "revoked_at"), ("used", "used_at"),
    ),
    "AuditEntry": (
        ("at", "at"), ("actor", "actor"), ("channel", "via"), ("operation", "verb"),
        ("target", lambda each: each.named or each.target),
        ("tenant", "tenant_id"), ("reason", "why"),
    ),
    "RunningNow": (
        ("schedule", lambda each: each.schedule or each.script), ("tenant", "tenant_id"), ("node", "node"),
        ("elapsed", lambda each: f"{each.elapsed_ms / 1000:.1f} s"), ("", lambda each: "slow" if each.slow else ""),
        ("id", lambda each: short(each.action_id)),
    ),
    "Overdue": (
        ("id", lambda each: short(each.action_id)), ("schedule", "schedule"), ("tenant", "tenant_id"), ("due", "due_at"),
        ("waiting", lambda each: humanize_duration(each.waits_ms / 1000)),
        ("reason", lambda each: f"{each.why}: {each.detail}" if each.detail else each.why),
    ),
    "Compared": (
        ("step", step_number), ("attempt", "attempt"), ("took", lambda each: humanize_duration(each.took_ms / 1000)),
        ("× median", lambda each: "" if each.times is None else f"{each.times:.1f}"),
        ("", lambda each: "slow" if each.slow else ""),
    ),
    "Secret": (
        ("secret", "name"), ("hosts", lambda each: ", ".join(each.hosts)), ("key", "key_id"), ("stored", "updated_at"),
    ),
    "CollectionInfo": (
        ("collection", "name"), ("documents", "documents"), ("indexes", lambda each: ", ".join(each.indexes)),
    ),
    "NodeRow": (
        ("node", "name"), ("state", "state"), ("runs", lambda each: f"{each.running} of {each.slots}"),
        ("saturation", lambda each: "" if each.saturation is None else f"{each.saturation:.0%}"), ("labels", "labels"),
        ("last seen", "seen_at"), ("version", "version"),
    ),
    "BudgetRow": (
        ("budget", "budget"), ("per", "per"), ("used", "used"),
        ("limit", lambda each: "none" if each.limit is None else each.limit), ("description", "help"),
    ),
    "Change": (("field", "field"), ("before", lambda each: compact(each.before)), ("after", lambda each: compact(each.after))),
}  # fmt: skip


def show(operation: "Operation", result: Any) -> None:
    """Show the result of an operation: by its own view, else a change in short, else as a whole."""
    view = VIEWS.get(operation.name)
    if view is None and operation.verb != "get":
        view = SHORT_VIEWS.get(type(result).__name__)
    if view is not None:
        view(result)
    elif get_type_hints(operation.function)["return"] is type(None):
        say("done")
    elif result is None:
        say("none")
    elif isinstance(result, list | tuple) and all(isinstance(each, str) for each in result):
        for each in result or ("none",):
            say(each)
    elif isinstance(result, list | tuple):
        rows(result)
    elif is_dataclass(result):
        one(result)
    else:
        say(str(result))


def rows(found: Sequence[Any]) -> None:
    """Show a list as a table, with a note if there are more entries."""
    if not found:
        say("none")
        return
    if isinstance(found[0], Action):
        actions(found)
    else:
        _table(found)
    if getattr(found, "next", None):
        say(f"more entries: --cursor {found.next}")  # type: ignore[attr-defined]  # of a page


def _table(found: Sequence[Any]) -> None:
    """Print results as a table, a column for each field."""
    columns = COLUMNS.get(type(found[0]).__name__) or tuple((field.name, field.name) for field in fields(found[0]))
    table(
        [heading for heading, _of in columns],
        ([of(each) if callable(of) else _plain(getattr(each, of)) for _heading, of in columns] for each in found),
    )


def _plain(value: Any) -> Any:
    """Return a field's value as a table cell has it."""
    return cell(value) if isinstance(value, datetime | tuple | list) else value


def one(thing: Any) -> None:
    """Show one record, a line for each non-empty field."""
    parts = [(field.name, getattr(thing, field.name)) for field in fields(thing)]
    width = max(len(name) for name, _value in parts) + 2
    for name, value in parts:
        if value in (None, (), [], {}, ""):
            continue
        text = cell(value).split("\n")
        say(f"{name:{width}}{text[0]}")
        for line in text[1:]:
            say(" " * width + line)


def cell(value: Any) -> str:
    """Return a value as the text of a table's cell."""
    if isinstance(value, datetime):
        return shown_instant(value)
    if isinstance(value, str):
        return value
    if isinstance(value, tuple | list) and all(isinstance(each, str) for each in value):
        return " ".join(value)
    return compact(value)


def compact(value: Any) -> str:
    """Return a value as JSON on one line."""
    return json.dumps(to_jsonable(value), ensure_ascii=False)


def schedule(made: Any) -> None:
    """Show a schedule that was created or changed: its rules as a sentence, and its next slot."""
    say(f"{made.name}: {made.text}")
    say(f"  next slot {next_slot(made)}" if made.next_at else f"  no next slot: {made.state}")
    if made.note:
        say(f"  note: {made.note}")


def action(made: Any) -> None:
    """Show the state of an action that was requested."""
    say(f"action {made.id} is {made.state}, due {shown_instant(made.due_at)}")


def version(made: Any) -> None:
    """Show which version of a script was stored."""
    module = f", WebAssembly, {made.wasm_bytes} bytes" if made.wasm_bytes is not None else ""
    beside = f", in the shadow of version {made.version - 1}" if made.state == "shadow" else ""
    say(f"script {made.name} of {made.tenant_id}: version {made.version}{module}{beside}")
    if made.unchecked:
        say(f"  not checked: {made.unchecked}")


def compared_runs(found: Sequence[Any]) -> None:
    """Show compared runs: slot, both outcomes, CPU time, the verdict in colours; below them each difference in words."""
    from rich.text import Text

    styles = {"agrees": "green", "differs": "red"}
    if found:
        table(
            ("id", "slot", "live", "new", "CPU ms", "verdict"),
            (
                (
                    short(each.action_id), shown_instant(each.slot.replace(microsecond=0)) if each.slot else "", each.live, each.shadow,
                    f"{each.live_cpu_ms:.1f} / {each.shadow_cpu_ms:.1f}" if each.live else "",
                    Text(each.verdict, styles.get(each.verdict, "yellow")),
                )
                for each in found
            ),
        )  # fmt: skip
    for each in found:
        if each.difference:
            say(f"{short(each.action_id)}: {each.difference}")


def tenant(made: Any) -> None:
    """Show the state of a tenant after a change."""
    say(f"tenant {made.id} is {made.state}")


def usage(found: Any) -> None:
    """Show a tenant's usage by day, without unused columns, and the use of its budgets."""
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


def script_diff(diff: Any) -> None:
    """Show the difference between two versions, as a unified diff with colours on a terminal."""
    if not diff.files:
        say(f"versions {diff.older} and {diff.newer} are equal")
    for each in diff.files:
        coloured(
            [
                f"--- {each.file} (version {diff.older})",
                f"+++ {each.file} (version {diff.newer})",
                *each.text.split("\n"),
            ]
        )


def schedule_diff(diff: Any) -> None:
    """Show the difference between two revisions."""
    if not diff.changes:
        say(f"revisions {diff.older} and {diff.newer} are equal")
    else:
        rows(diff.changes)


def coloured(lines: Iterable[str]) -> None:
    """Show lines of a diff, in colours on a terminal."""
    from rich.text import Text

    styles = {"+": "green", "-": "red", "@": "cyan"}
    for line in lines:
        console().print(Text(one_line(line), styles.get(line[:1], "")), soft_wrap=True)


def checked(found: Any) -> None:
    """Show whether a source compiles, and if not, where its error is."""
    if found.ok:
        say("the script compiles")
    for problem in found.problems:
        place = f"{problem.file}:{problem.line}: " if problem.line else ""
        say(f"{place}{problem.name}: {problem.message}")


def preview(shown: Any) -> None:
    """Show the sentence of rules, with their next slots."""
    say(shown.text)
    for slot in shown.slots:
        say(f"  {shown_instant(slot)}{'  moved by DST' if slot in shown.shifted else ''}")
    if shown.never:
        say(f"  no slot: {shown.never}")
    elif shown.searched_to:
        further = "further " if shown.slots else ""
        why = f": {shown.excluded}" if shown.excluded else ""
        say(f"  no {further}slot was found before {shown_instant(shown.searched_to)}{why}")
    elif not shown.slots and shown.ends:
        say("  no slot is left")


def what_if(difference: Any) -> None:
    """Show the slots that an edit would change."""
    say(f"now:  {difference.before}", f"then: {difference.after}")
    changes = [(slot, "dropped") for slot in difference.dropped] + [(slot, "added") for slot in difference.added]
    for slot, what in sorted(changes):
        say(f"  {'-' if what == 'dropped' else '+'} {shown_instant(slot)}")
    said = f"{len(difference.dropped)} dropped, {len(difference.added)} added" if changes else "no slot changes"
    say(f"{said}; compared up to {shown_instant(difference.complete_to)}")


def token(made: Any) -> None:
    """Show a new token's text, which is never shown again."""
    say(f"token {made.token.name}, role {made.token.role} (shown only once):", "", f"    {made.text}", "")


def sign_in_link(made: Any) -> None:
    """Show a sign-in link, which is never shown again."""
    say(made.path, f"{made.role} {made.name} of {made.tenant_id}, once, until {shown_instant(made.expires_at)}")


def rotated(done: Any) -> None:
    """Show the result of a rotation of keys."""
    say(f"{done.renewed} secrets encrypted with key {done.key_id}")
    if done.dropped:
        say("deleted keys: " + ", ".join(done.dropped))


def _tenant_gone(_result: None) -> None:
    """Show that a tenant was deleted."""
    say("the tenant and all its data are deleted; the audit log keeps a record of the deletion")


def activity(found: Any) -> None:
    """Show the numbers of running and due actions, and the parts of the last hours in which an action ended."""
    span = humanize_duration(len(found.parts) * found.part_s)
    say(
        f"running {found.running}, due {found.due}, overdue {found.overdue}; in the last {span} done {found.done}, failed {found.failed}"
    )
    if found.outcomes:
        say("failures: " + ", ".join(f"{name} {number}" for name, number in found.outcomes.items()))
    table(
        ("from", "done", "failed", "late p50", "late p99"),
        (
            (f"{each.start:%m-%d %H:%M}", each.done, each.failed, late(each.late_p50_ms), late(each.late_p99_ms))
            for each in found.parts
            if each.done or each.failed
        ),
    )


def late(milliseconds: float | None) -> str:
    """Return a lateness as text; empty for None."""
    return "" if milliseconds is None else humanize_duration(milliseconds / 1000)


def _metrics(found: Any) -> None:
    """Print metrics as a table."""
    table(
        ("metric", "labels", "value"),
        (
            (
                sample.name,
                " ".join(f"{name}={value}" for name, value in dict(sample.labels).items()),
                f"{sample.value:g}",
            )
            for each in found
            for sample in each.samples
        ),
    )


#: Views of single operations.
VIEWS: dict[str, Callable[[Any], None]] = {
    "tenants.delete": _tenant_gone,
    "metrics.read": _metrics,
}
#: What came of a change, by the kind of its result.
SHORT_VIEWS: dict[str, Callable[[Any], None]] = {
    "Tenant": tenant, "ScriptVersion": version, "Schedule": schedule, "Action": action, "CreatedToken": token, "SignInLink": sign_in_link,
    "Rotated": rotated, "Account": usage, "ScriptDiff": script_diff, "ScheduleDiff": schedule_diff,
    "Checked": checked, "Preview": preview, "WhatIf": what_if, "Activity": activity,
}  # fmt: skip
