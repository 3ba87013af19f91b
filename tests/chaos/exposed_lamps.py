"""Exposed table of the chaos run, without a unique key, to which every effect adds a row."""

from sqlalchemy import Column, Integer, MetaData, String, Table

from lodger.engine.sync import Engine

traces = Table(
    "traces",
    MetaData(),
    Column("id", Integer, primary_key=True),
    Column("house", String(40), nullable=False),
    Column("action", String(36), nullable=False),
    Column("mark", String(10), nullable=False),
)

_LEAVE = "await db.traces.insert({{ action: action.id, mark: {mark} }});"
_BEGIN = "export default async ({ action, db, kv }) => { "
#: Scripts by name, and the traces of one success. Long ones are hit by faults more often.
SCRIPTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "plain": (_BEGIN + _LEAVE.format(mark='"plain"') + " return 1 }", ("plain",)),
    "twice": (_BEGIN + _LEAVE.format(mark='"a"') + _LEAVE.format(mark='"b"') + " }", ("a", "b")),
    "slow": (
        _BEGIN + _LEAVE.format(mark='"slow"') + " let n = 0; while (n < 3e5) n += 1; return n }",
        ("slow",),
    ),
    "throws": (_BEGIN + _LEAVE.format(mark='"throws"') + ' throw new Error("after it has written") }', ("throws",)),
    "counts": (_BEGIN + 'await kv.add("n", 1); ' + _LEAVE.format(mark='"counts"') + " }", ("counts",)),
}


def expose(engine: Engine) -> None:
    """Expose the table; called by each node before it starts."""
    engine.expose(traces, tenant_column="house", write=["action", "mark"])
