"""``lodger tenant``: customers of the platform."""

from lodger.engine.cli.ledger import opened
from lodger.engine.output.result_output import Database, Group, TenantId, say, write_result

app = Group(no_args_is_help=True)


@app.command()
def show(tenant: TenantId, db: Database = None) -> None:
    """Show one tenant: state, limits, grants and people."""
    with opened(db) as engine:
        found = engine.tenants.get(tenant)
        held = engine.grants.list(tenant)
    write_result(
        {"id": found.id, "name": found.name, "state": found.state, "limits": found.limits, "grants": held,
         "people": found.people, "plan": found.plan, "tz": found.tz,
         "limits_in_effect": found.limits_in_effect, "created_at": found.created_at}
    )  # fmt: skip
    say(f"{found.id}: {found.name}, {found.state}")
    limits = sorted(found.limits_in_effect.items())
    say("limits  " + (", ".join(f"{name} {value}" for name, value in limits) or "the defaults"))
    say("plan    " + (found.plan or "none"))
    say("zone    " + (found.tz or "UTC"))
    say("grants  " + " ".join(held))
    say("people  " + (", ".join(found.people) or "none"))
