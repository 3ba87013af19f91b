"""``lodger action``: what ran, what is due, and why something did not run."""

from dataclasses import asdict
from typing import Annotated

import typer

from lodger.engine.cli.ledger import opened
from lodger.engine.output import views
from lodger.engine.output.result_output import ActionId, Database, Group, TenantId, say, shown_instant, write_result
from lodger.engine.service.humanize import humanize_duration

app = Group(no_args_is_help=True)


@app.command()
def show(tenant: TenantId, action: ActionId, db: Database = None) -> None:
    """Show one action: its schedule, times and outcome, with its attempts and deliveries."""
    with opened(db) as engine:
        found, tries = engine.actions.get(tenant, action), engine.actions.attempts(tenant, action)
        sent = engine.actions.deliveries(tenant, action)
    write_result({"action": found, "attempts": tries, "deliveries": sent})
    say(f"{found.id}: {views.ended(found)}")
    lines = {
        "schedule": found.schedule,
        "script": found.script and f"{found.script}, version {found.script_version}",
        "origin": ", ".join(
            each
            for each in (found.origin, found.reason, found.requested_by and f"requested by {found.requested_by}")
            if each
        ),
        "slot": views.slots(found) if found.slot else None,
        "due": shown_instant(found.due_at),
        "started": found.started_at and shown_instant(found.started_at),
        "ended": found.finished_at and shown_instant(found.finished_at),
        "took": views.took(found),
        "late by": None if found.lateness_ms is None else humanize_duration(found.lateness_ms / 1000),
        "result": None if found.result is None else views.compact(found.result),
    }
    for name, text in lines.items():
        if text:
            say(f"  {name:9} {text}")
    if found.error is not None:
        say(f"  {views.error(found.error)}")
    for each in tries:
        how = f"{each.outcome or 'running'}, {views.took(each) or 'not ended'}, CPU {each.usage.cpu_ms:.1f} ms"
        say(f"  step {each.step + 1}, attempt {each.n}: started {shown_instant(each.started_at)}, {how}")
    for one in sent:
        why = f": {one.error}" if one.error else ""
        say(f"  {one.kind} to {', '.join(one.to)} ({one.about}): {one.state} after {one.attempts}{why}")


@app.command()
def logs(tenant: TenantId, action: ActionId, db: Database = None) -> None:
    """Show the log of the action's finished attempts, by step and attempt."""
    with opened(db) as engine:
        tries = engine.actions.attempts(tenant, action)
    write_result(
        {"logs": [{"step": each.step, "attempt": each.n, **asdict(line)} for each in tries for line in each.logs]}
    )
    for each in tries:
        if len(tries) > 1:
            say(f"step {each.step + 1}, attempt {each.n}:")
        for line in each.logs:
            say(f"{line.level:5} {line.text}")


@app.command()
def follow(
    tenant: TenantId,
    action: Annotated[str | None, typer.Argument(help="Follow only this action, with its log, until it ends.")] = None,
    db: Database = None,
) -> None:
    """Show live what happens, until Ctrl-C: a tenant's actions, or one action with its log."""
    from lodger.sandbox.job import LogLine

    with opened(db) as engine:
        for each in engine.live(tenant, action):
            write_result({"log" if isinstance(each, LogLine) else "action": each})
            if isinstance(each, LogLine):
                say(f"  {each.level}: {each.text}")
            else:
                took = f" in {views.took(each)}" if views.took(each) else ""
                say(
                    f"{shown_instant(each.due_at)}  {each.schedule or each.script}  {views.ended(each)}{took}  {views.short(each.id)}"
                )
