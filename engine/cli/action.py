"""``lodger action``: what ran, what is due, and why something did not run."""

import json
import sys
from typing import Annotated

import typer

from lodger.engine.cli import views
from lodger.engine.cli.answer import AsJson, Database, say, write_json, zulu
from lodger.engine.cli.ledger import opened
from lodger.engine.cli.of_verb import Command, add
from lodger.engine.cli.words import ActionId, TenantId

app = typer.Typer(name="action", help="What ran, what is due, and why something did not run.", no_args_is_help=True)


@app.command()
def show(tenant: TenantId, action: ActionId, db: Database = None, as_json: AsJson = False) -> None:
    """Show one action with its attempts."""
    with opened(db) as engine:
        found, tries = engine.actions.get(tenant, action), engine.actions.attempts(tenant, action)
        sent = engine.actions.deliveries(tenant, action)
    if as_json:
        write_json({"action": found, "attempts": tries, "deliveries": sent})
        return
    say(f"{found.id}: {found.state} {found.outcome or found.reason or ''}")
    say(f"  due {zulu(found.due_at)}")
    if found.result is not None:
        say(f"  result {json.dumps(found.result, ensure_ascii=False)}")
    if found.error is not None:
        place = f" ({found.error.file}:{found.error.line})" if found.error.line else ""
        say(f"  {found.error.name}: {found.error.message}{place}")
    for each in tries:
        say(f"  attempt {each.n}: {each.outcome or 'running'}, CPU {each.usage.cpu_ms:.1f} ms")
    for one in sent:
        why = f": {one.error}" if one.error else ""
        say(f"  {one.kind} to {', '.join(one.to)} ({one.about}): {one.state} after {one.attempts}{why}")


@app.command()
def follow(
    tenant: TenantId,
    action: Annotated[str | None, typer.Argument(help="One action, with its log, until it is over.")] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show what happens as it happens, until Ctrl-C: a tenant's actions, or one action with its log."""
    from lodger.sandbox.job import LogLine

    with opened(db) as engine:
        for each in engine.live(tenant, action):
            line = isinstance(each, LogLine)
            if as_json:
                write_json({"log" if line else "action": each})
            elif isinstance(each, LogLine):
                say(f"  {each.level}: {each.text}")
            else:
                how = each.outcome or each.reason or ""
                say(f"{zulu(each.due_at)}  {each.schedule or each.script}  {each.state} {how}  {each.id}")
            sys.stdout.flush()


add(
    app,
    Command("list", "actions.list", ("tenant_id",), wrap="actions"),
    Command("logs", "actions.logs", ("tenant_id", "action_id"), wrap="logs", view=views.log_lines),
    Command("deliveries", "actions.deliveries", ("tenant_id", "action_id"), wrap="deliveries"),
    Command("compared", "actions.compared", ("tenant_id", "action_id"), wrap="attempts"),
    Command("running", "actions.running", ("tenant_id",), wrap="running"),
    Command("overdue", "actions.overdue", ("tenant_id",), wrap="overdue"),
    Command("run-now", "actions.run_now", ("tenant_id", "schedule"), view=views.action),
    Command("run-at", "actions.run_at", view=views.action),
    Command("run-in", "actions.run_in", view=views.action),
    Command("cancel", "actions.cancel", ("tenant_id", "action_id"), view=views.action),
    Command("retry", "actions.retry", ("tenant_id", "action_id"), view=views.action),
    Command("replay", "actions.replay", ("tenant_id", "action_id"), view=views.action),
    Command("backfill", "actions.backfill", ("tenant_id", "schedule")),
)
