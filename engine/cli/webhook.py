"""``lodger webhook``: where a tenant's events go."""

from typing import Annotated, Any

import typer

from lodger.engine.cli.answer import AsJson, Database, say, table, write_json
from lodger.engine.cli.ledger import opened
from lodger.engine.cli.of_verb import confirm
from lodger.engine.cli.words import Yes

app = typer.Typer(name="webhook", help="Where a tenant's events go.", no_args_is_help=True)

Tenant = Annotated[str, typer.Argument(help="The tenant's id.")]
Name = Annotated[str, typer.Argument(help="The webhook's name.")]


@app.command()
def put(
    tenant: Tenant,
    name: Name,
    url: Annotated[str, typer.Argument(help="Where it goes, http or https.")],
    event: Annotated[
        list[str] | None, typer.Option(help="What it is told: order.paid, order.*, * (all that scripts emit), lodger.*")
    ] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Make a webhook, and show the secret that its receiver checks signatures with; or change one."""
    with opened(db) as engine:
        made = engine.webhooks.put(tenant, name, url, events=event or ("*",))
    _told(made, as_json=as_json)


@app.command()
def renew(tenant: Tenant, name: Name, db: Database = None, as_json: AsJson = False) -> None:
    """Give a webhook a new secret; the one before signs along for a day."""
    with opened(db) as engine:
        made = engine.webhooks.renew(tenant, name)
    _told(made, as_json=as_json)


@app.command("list")
def show_all(tenant: Tenant, db: Database = None, as_json: AsJson = False) -> None:
    """List a tenant's webhooks."""
    with opened(db) as engine:
        found = engine.webhooks.list(tenant)
    if as_json:
        write_json({"webhooks": found})
    else:
        table(("webhook", "goes to", "is told", "state"), ((e.name, e.url, " ".join(e.events), e.state) for e in found))


@app.command()
def delete(tenant: Tenant, name: Name, yes: Yes = False, db: Database = None, as_json: AsJson = False) -> None:
    """Delete a webhook; what waits for it is not sent any more."""
    confirm("delete webhook {name} of {tenant}", {"name": name, "tenant": tenant}, yes=yes, as_json=as_json)
    with opened(db) as engine:
        engine.webhooks.delete(tenant, name)
    if as_json:
        write_json({"deleted": name})
    else:
        say(f"webhook {name} of {tenant} is gone")


def _told(made: Any, *, as_json: bool) -> None:  # noqa: ANN401 - a webhook, with its secret or without
    if as_json:
        write_json(made)
        return
    webhook = getattr(made, "webhook", made)
    say(f"webhook {webhook.name} goes to {webhook.url} and is told {' '.join(webhook.events)}")
    if webhook is not made:
        say(f"its secret, shown this once: {made.secret}")
