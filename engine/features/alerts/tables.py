"""Tables of alerts: rules, the queue of actions that ended without success, and raised alerts."""

from sqlalchemy import Column, Integer, String, Text

from lodger.engine.store.drivers.expressions import Id
from lodger.engine.store.drivers.guards import RowTrigger, guards
from lodger.engine.store.schema.metadata import table_of_tenants
from lodger.engine.store.schema.scheduling import Us

#: One row per rule; lists are JSON.
alert_rules = table_of_tenants(
    "lodger_alert_rules",
    Column("name", String(63), primary_key=True),
    # None: every schedule of the tenant, and actions without one.
    Column("schedule_id", Id),
    Column("kinds", Text, nullable=False),
    Column("mail", Text, nullable=False),
    Column("webhooks", Text, nullable=False),
    # Windows of quiet hours, in the zone's local time.
    Column("quiet", Text, nullable=False),
    Column("zone", String(64), nullable=False),
    Column("late_s", Integer, nullable=False),
    # None: until the schedule's next slot.
    Column("overran_s", Integer),
    Column("silent_s", Integer, nullable=False),
    Column("created_us", Us, nullable=False),
    Column("updated_us", Us, nullable=False),
)

# Successful actions are not among them, so that the trigger costs them one comparison.
_ENDED = "NEW.state IN ('failed', 'skipped', 'expired')"
_queued = RowTrigger(
    "lodger_actions_alert",
    {
        "insert": ("INSERT ON lodger_actions", _ENDED),
        "update": ("UPDATE OF state ON lodger_actions", f"{_ENDED} AND OLD.state <> NEW.state"),
    },
    "EXISTS (SELECT 1 FROM lodger_alert_rules WHERE tenant_id = NEW.tenant_id)",
    "INSERT INTO lodger_alert_queue (tenant_id, action_id, kind) VALUES (NEW.tenant_id, NEW.id, 'ended') ON CONFLICT DO NOTHING",
)

#: Actions that ended without success, of tenants with rules: a trigger inserts them in the transaction that ends the action.
#: Kind slow: written with a schedule's new baseline.
alert_queue = table_of_tenants(
    "lodger_alert_queue",
    Column("action_id", Id, primary_key=True),
    Column("kind", String(8), primary_key=True),
    # JSON; None: the action's row says it.
    Column("details", Text),
    info=guards(triggers=(_queued,)),
)

#: Raised alerts. An open one (closed_us is None) suppresses the same alert; one that was not sent yet waits for the end
#: of quiet hours.
alerts = table_of_tenants(
    "lodger_alerts",
    Column("id", Id, primary_key=True),
    Column("rule", String(63), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("schedule_id", Id),
    Column("action_id", Id),
    # The budget's name, for alerts of kind budget.
    Column("subject", String(32), nullable=False, server_default=""),
    # JSON.
    Column("details", Text, nullable=False),
    Column("occurrences", Integer, nullable=False, server_default="1"),
    Column("opened_us", Us, nullable=False),
    # The last occurrence.
    Column("last_us", Us, nullable=False),
    Column("closed_us", Us),
    Column("sent_us", Us),
    # ``action_id`` of its messages in the outbox.
    Column("message", String(36)),
)
