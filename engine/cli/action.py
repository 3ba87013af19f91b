"""``lodger action``: what ran, what is due, and why something did not run."""

import json
from typing import Annotated

import typer

from lodger.engine.cli.answer import AsJson, Database, say, table, write_json, zulu
from lodger.engine.cli.ledger import opened

app = typer.Typer(name="action", help="What ran, what is due, and why something did not run.", no_args_is_help=True)

Tenant = Annotated[str, typer.Argument(help="The tenant's id.")]
Which = Annotated[str, typer.Argument(metavar="ACTION", help="The action's id.")]


@app.command("list")
def show_all(
    tenant: Tenant,
    limit: Annotated[int, typer.Option("-n", min=1, max=1000, help="How many, latest first.")] = 20,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """List a tenant's actions, latest first."""
    with opened(db) as engine:
        found = engine.actions.list(tenant, limit=limit)
    if as_json:
        write_json({"actions": found})
        return
    rows = (
        (each.schedule or each.script, zulu(each.due_at), each.state, each.outcome or each.reason or "", each.id)
        for each in found
    )
    table(("schedule", "due", "state", "how it ended", "id"), rows)


@app.command()
def show(tenant: Tenant, action: Which, db: Database = None, as_json: AsJson = False) -> None:
    """Show one action with its attempts."""
    with opened(db) as engine:
        found, tries = engine.actions.get(action, tenant), engine.actions.attempts(action, tenant)
        sent = engine.actions.deliveries(action, tenant)
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
def logs(tenant: Tenant, action: Which, db: Database = None, as_json: AsJson = False) -> None:
    """Show what an action's attempts wrote."""
    with opened(db) as engine:
        lines = engine.actions.logs(action, tenant)
    if as_json:
        write_json({"logs": lines})
    else:
        for line in lines:
            say(f"{line.level:5} {line.text}")


@app.command("run-now")
def run_now(
    tenant: Tenant,
    schedule: Annotated[str, typer.Argument(help="The schedule's name or id.")],
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Ask for one run of a schedule at once, beside its slots; a node carries it out."""
    with opened(db) as engine:
        made = engine.actions.run_now(schedule, tenant)
    if as_json:
        write_json(made)
    else:
        say(f"action {made.id} is {made.state}")


@app.command()
def cancel(tenant: Tenant, action: Which, db: Database = None, as_json: AsJson = False) -> None:
    """Cancel an action that has not ended; a running one is killed."""
    with opened(db) as engine:
        made = engine.actions.cancel(action, tenant)
    if as_json:
        write_json(made)
    else:
        say(f"action {action} is {made.state}")
