"""The table of shadows: a further version of a script that runs beside the live one, and how its runs compared."""

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    String,
    Table,
    Text,
)

from lodger.engine.store.drivers.expressions import Id, partial
from lodger.engine.store.drivers.guards import Stored, guards
from lodger.engine.store.schema.metadata import metadata
from lodger.engine.store.schema.scheduling import Name, Us

script_shadows = Table(
    "lodger_script_shadows",
    metadata,
    Column("tenant_id", Name, primary_key=True),
    Column("script_id", Id, primary_key=True),
    # Of this shadow: a later one of the same script has another.
    Column("id", Id, nullable=False),
    # The version that was live when it began; it is compared with this one alone.
    Column("live_version", Integer, nullable=False),
    Column("modules", Text, nullable=False),
    Column("wasm", LargeBinary),
    Column("digest", String(64), nullable=False),
    Column("state", String(10), nullable=False),
    Column("wanted", SmallInteger, nullable=False),
    # 1 if it is promoted as soon as all wanted runs agree.
    Column("automatic", SmallInteger, nullable=False),
    # Runs that were not compared: the node was busy, or the tenant's CPU time of the day was used up.
    Column("missed", Integer, nullable=False, server_default="0"),
    # JSON list of its runs, at most `wanted`.
    Column("runs", Text, nullable=False, server_default="[]"),
    Column("created_us", Us, nullable=False),
    Column("created_by", Name),
    Column("why", Text),
    ForeignKeyConstraint(["tenant_id", "script_id"], ["lodger_scripts.tenant_id", "lodger_scripts.id"]),
    CheckConstraint("state IN ('running', 'finished', 'promoted')", name="state"),
    Index("ix_lodger_script_shadows_running", "tenant_id", "script_id", **partial("state = 'running'")),
    info=guards(stored=Stored("kept_bytes", ("modules", "wasm", "why"))),
)
