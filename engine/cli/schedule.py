"""``lodger schedule``: when a script runs."""

from typing import Annotated, Any

import typer

from lodger.engine.cli.answer import AsJson, Database, say, table, write_json, zulu
from lodger.engine.cli.failure import Usage
from lodger.engine.cli.given import value
from lodger.engine.cli.ledger import opened

app = typer.Typer(name="schedule", help="When a script runs.", no_args_is_help=True)

Tenant = Annotated[str, typer.Argument(help="The tenant's id.")]
Which = Annotated[str, typer.Argument(metavar="SCHEDULE", help="The schedule's name or id.")]
Rules = Annotated[list[str] | None, typer.Option("--rule", help="A rule; several make a union.")]
Zone = Annotated[str | None, typer.Option(help="IANA time zone; UTC when left out.")]
Missed = Annotated[str, typer.Option(help="Slots missed while no engine ran: latest, skip, all, within:2h.")]
Overlap = Annotated[
    str, typer.Option(help="A slot while the run before it goes on: skip, queue_one, queue_all, cancel_running, allow.")
]


@app.command()
def create(
    tenant: Tenant,
    name: Annotated[str, typer.Argument(help="Its name.")],
    script: Annotated[str, typer.Option(help="The script's name.")],
    rule: Rules = None,
    tz: Zone = None,
    missed: Missed = "latest",
    overlap: Overlap = "skip",
    params: Annotated[str | None, typer.Option(help="The script's input as JSON.")] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Bind a script to a rule."""
    if not rule:
        raise Usage("rule_missing", "a schedule needs a rule", fix="--rule 'FREQ=DAILY;BYHOUR=9;BYMINUTE=0'")
    with opened(db) as engine:
        made = engine.schedules.create(
            tenant,
            name,
            script=script,
            rules=rule,
            tz=tz,
            missed=missed,
            overlap=overlap,
            params=value("--params", params),
        )
    _told(made, as_json=as_json)


@app.command("list")
def show_all(tenant: Tenant, db: Database = None, as_json: AsJson = False) -> None:
    """List a tenant's schedules with their next slots."""
    with opened(db) as engine:
        found = engine.schedules.list(tenant)
    if as_json:
        write_json({"schedules": found})
    else:
        rows = (
            (each.name, each.text, each.state, zulu(each.next_at) if each.next_at else "", each.id) for each in found
        )
        table(("schedule", "in words", "state", "next slot", "id"), rows)


@app.command()
def preview(
    rule: Annotated[list[str], typer.Argument(help="One rule or several.")],
    tz: Zone = None,
    n: Annotated[int, typer.Option("-n", min=1, max=1000, help="How many slots.")] = 5,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show what a schedule of these rules would do, before it is stored."""
    with opened(db) as engine:
        shown = engine.schedules.preview(rule, tz=tz, n=n)
    if as_json:
        write_json(shown)
    else:
        say(shown.text)
        for slot in shown.slots:
            say(f"  {zulu(slot)}{'  moved by DST' if slot in shown.shifted else ''}")


@app.command()
def pause(tenant: Tenant, schedule: Which, db: Database = None, as_json: AsJson = False) -> None:
    """Stop a schedule from naming slots, at once."""
    with opened(db) as engine:
        _told(engine.schedules.pause(tenant, schedule), as_json=as_json)


@app.command()
def resume(tenant: Tenant, schedule: Which, db: Database = None, as_json: AsJson = False) -> None:
    """Let a paused schedule go on."""
    with opened(db) as engine:
        _told(engine.schedules.resume(tenant, schedule), as_json=as_json)


@app.command()
def delete(tenant: Tenant, schedule: Which, db: Database = None, as_json: AsJson = False) -> None:
    """Delete a schedule; its history stays."""
    with opened(db) as engine:
        _told(engine.schedules.delete(tenant, schedule), as_json=as_json)


def _told(schedule: Any, *, as_json: bool) -> None:  # noqa: ANN401 - the facade's schedule
    if as_json:
        write_json(schedule)
        return
    say(f"{schedule.name}: {schedule.text}")
    say(f"  next slot {zulu(schedule.next_at)}" if schedule.next_at else f"  no next slot: {schedule.state}")
