"""A platform's table in which each applied journal leaves a row. Only the row's number is unique: what happens twice is seen."""

import sqlalchemy as sa
from sqlalchemy import Connection

from lodger.engine.core.execution import Claim
from lodger.engine.data.sets.dataset import TableDataset
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.effects.effect import Update
from lodger.engine.effects.journal import Journal

TABLE = sa.Table(
    "effects_seen",
    sa.MetaData(),
    # From 2: what is changed under key 1 is never there.
    sa.Column("key", sa.Integer, sa.Identity(start=2), primary_key=True),
    sa.Column("tenant_id", sa.Text, nullable=False),
    sa.Column("id", sa.Text, nullable=False),
    sa.Column("step", sa.Integer, nullable=False),
    sa.Column("tries", sa.Integer, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("fits", sa.Boolean, nullable=False),
    sa.CheckConstraint("fits", name="effects_fit"),
    sqlite_autoincrement=True,
)
_WRITTEN = ("id", "step", "tries", "name", "fits")


class Traces:
    """Journals that leave a trace.

    Args:
        datasets: of the engine that applies them; the table is exposed there.
    """

    def __init__(self, datasets: Datasets) -> None:
        self._datasets = datasets
        self._rows: TableDataset = datasets.expose(TABLE, tenant_column="tenant_id", write=_WRITTEN, feed="off")

    def journal(self, claim: Claim, name: str = "", *, refused: bool = False, stale: bool = False) -> Journal:
        """Return a journal that inserts one row.

        Args:
            refused: then another one, which a constraint of the table forbids.
            stale: it also changes a row that is not there any more.
        """
        rows, made = self._rows, Journal(claim.tenant_id, claim.action_id, claim.step, self._datasets.pinned())
        values = {"id": claim.action_id, "step": claim.step, "tries": claim.tries, "name": name, "fits": True}
        for fits in (True, False) if refused else (True,):
            row = {"key": made.token(), **values, "fits": fits}
            made.insert(rows, row, given=frozenset(values), line="main.js:7", token=True)
        if stale:
            made.record_read(rows, [{"key": 1, **values}])
            made.change(Update(rows, 1, {"name": "changed"}), None)
        return made


def seen(connection: Connection) -> list[tuple[str, int, int]]:
    """Return (action, step, try) of every applied journal, in the order of application."""
    statement = sa.select(TABLE.c.id, TABLE.c.step, TABLE.c.tries).order_by(TABLE.c.key)
    return [(row.id, row.step, row.tries) for row in connection.execute(statement)]
