"""Creates the demo's ledger: shops, rows, scripts and schedules, as if the engine had been off for a hundred days."""

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from sqlalchemy import inspect

from lodger.engine.core.clock import from_us
from lodger.engine.demo.cast import CAST, OFF_DAYS, ONCE_AFTER_S
from lodger.engine.demo.demo_rows import SHOPS, fill
from lodger.engine.demo.tables import customers

if TYPE_CHECKING:
    from lodger.engine.sync import Engine


@dataclass(frozen=True, slots=True)
class Stage:
    """The result of the set-up; ``rows`` by table, empty if the demo's ledger existed already."""

    fresh: bool
    rows: dict[str, int]


def set_up(engine: "Engine") -> Stage:
    """Fill the ledger; continue the set-up of an earlier run that was interrupted."""
    now = from_us(engine.context.clock.now_us())
    rows: dict[str, int] = {}
    with engine.context.database.write() as connection:
        if not inspect(connection).has_table(customers.name):
            rows = fill(connection, now)
    known = {tenant.id for tenant in engine.tenants.list()}
    for shop in SHOPS:
        if shop.id not in known:
            engine.tenants.create(
                shop.id, name=shop.name, grants=["sets:write", "mail:*@mail.example"], people=[shop.manager]
            )
    bound = {(schedule.tenant_id, schedule.name) for schedule in engine.schedules.list()}
    for part in CAST:
        engine.scripts.put(part.shop, part.script, part.source())
        if part.rule is None:
            engine.run_at(part.shop, part.script, now + timedelta(seconds=ONCE_AFTER_S), part.params)
        elif (part.shop, part.name) not in bound:
            engine.schedules.create(
                part.shop,
                part.name,
                script=part.script,
                rules=part.rule,
                tz=part.tz,
                missed=part.missed,
                params=part.params or None,
                limits=part.limits or None,
                first_after=now - timedelta(days=OFF_DAYS),
            )
    return Stage(bool(rows), rows)
