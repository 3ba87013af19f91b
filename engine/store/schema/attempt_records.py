"""The table of attempts' records."""

from sqlalchemy import Column, ForeignKeyConstraint, Integer, LargeBinary, SmallInteger

from lodger.engine.store.drivers.expressions import Id
from lodger.engine.store.schema.metadata import table_of_tenants

#: Maximum size of a record as it is stored.
MAX_PACKED_BYTES = 1 << 20
#: What attempts were told and how they ended, in a form that the wing of replays knows.
attempt_records = table_of_tenants(
    "lodger_attempt_records",
    Column("action_id", Id, primary_key=True),
    Column("step", SmallInteger, primary_key=True),
    Column("n", Integer, primary_key=True),
    Column("body", LargeBinary, nullable=False),
    ForeignKeyConstraint(["tenant_id", "action_id"], ["lodger_actions.tenant_id", "lodger_actions.id"]),
)
