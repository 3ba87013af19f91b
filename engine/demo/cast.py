"""Schedules of the demo: scripts, rules and policies of both shops. Data, no behaviour."""

from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from lodger.engine.demo.shops import SHOPS

#: For how long the demo's engine was off before its first second.
OFF_DAYS = 100
#: How long after the start the one-off comes.
ONCE_AFTER_S = 8


@dataclass(frozen=True, slots=True)
class Part:
    """One schedule of the demo.

    Attributes:
        rule: an RRULE; None for the one-off, which comes :data:`ONCE_AFTER_S` after the start.
        missed: policy for slots that were due while the engine was off.
        limits: the script's own, lower than the shop's.
    """

    shop: str
    name: str
    script: str
    rule: str | None
    missed: str
    tz: str = "UTC"
    params: dict[str, Any] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)

    def source(self) -> str:
        """Return the script's text."""
        return (files("lodger.engine.demo") / "scripts" / f"{self.script}.js").read_text(encoding="utf-8")


_BOOKSHOP, _BIKES = SHOPS
#: An order of the first shop; the second one's script asks for it.
VICTIM_ORDER = 1

CAST = (
    # runs live; missed slots are skipped: one gap row for a hundred days
    Part(_BOOKSHOP.id, "cart-reminders", "cart_reminders", "FREQ=SECONDLY;INTERVAL=5", "skip"),
    # all missed slots run, oldest first
    Part(_BOOKSHOP.id, "monthly-sales", "monthly_sales", "FREQ=MONTHLY;BYMONTHDAY=1;BYHOUR=6;BYMINUTE=0;BYSECOND=0", "all",
         tz=_BOOKSHOP.tz),
    # only the latest missed slot runs; mails the manager if the figure is below the threshold
    Part(_BOOKSHOP.id, "weekly-figure", "weekly_figure", "FREQ=WEEKLY;BYDAY=MO;BYHOUR=8;BYMINUTE=0;BYSECOND=0", "latest",
         tz=_BOOKSHOP.tz, params={"threshold": 100_000, "manager": _BOOKSHOP.manager}),
    # throws: the error shows the script's line
    Part(_BOOKSHOP.id, "broken-report", "broken_report", "FREQ=DAILY;BYHOUR=7;BYMINUTE=0;BYSECOND=0", "latest", tz=_BOOKSHOP.tz),
    # runs once, at a date
    Part(_BOOKSHOP.id, "winter-sale", "winter_sale", None, "latest", params={"percent": 20}),
    # runs live
    Part(_BIKES.id, "confirm-orders", "confirm_orders", "FREQ=SECONDLY;INTERVAL=2", "skip"),
    # the same script for another shop, which reads other rows
    Part(_BIKES.id, "monthly-sales", "monthly_sales", "FREQ=MONTHLY;BYMONTHDAY=1;BYHOUR=6;BYMINUTE=0;BYSECOND=0", "all", tz=_BIKES.tz),
    # missed slots of the last four days run, older ones are skipped
    Part(_BIKES.id, "unanswered-tickets", "unanswered_tickets", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9;BYMINUTE=0;BYSECOND=0",
         "within:4d", tz=_BIKES.tz, params={"manager": _BIKES.manager}),
    # loops endlessly: the CPU limit stops it
    Part(_BIKES.id, "endless", "endless", "FREQ=DAILY;BYHOUR=3;BYMINUTE=30;BYSECOND=0", "latest", limits={"cpu_ms": 300}),
    # reads the other shop's rows and gets none
    Part(_BIKES.id, "nosy", "nosy", "FREQ=HOURLY;BYMINUTE=15;BYSECOND=0", "latest", params={"victim": _BOOKSHOP.id,
         "victimOrder": VICTIM_ORDER}),
)  # fmt: skip
