"""Repairs the ledger after a wall clock was set back, when stored instants of the past lie in the future.

A lease renewed before the step would last until that time comes again, and the actions of a dead node would not be
rescued. A tenant served before the step would be served after all others. Both are set to the present as soon as a node
checks; living nodes renew their leases anyway.

The time is read at the moment of writing: a node that was suspended since it read a clock would mistake leases that
were renewed meanwhile for future ones.
"""

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, bindparam, literal, select, update

from lodger.engine.store.context import StoreContext
from lodger.engine.store.schema.nodes import nodes
from lodger.engine.store.schema.scheduling import turns
from lodger.engine.store.stores import PerDriver

#: Clocks of nodes differ by two seconds at most, otherwise they claim nothing; instants this far ahead are normal.
SLACK_US = 3_000_000

_served = (turns.c.startable_at.is_not(None), turns.c.served_us > bindparam("now") + SLACK_US)
_turns = update(turns).where(*_served).values(served_us=bindparam("now"))


def is_ahead(context: StoreContext, connection: Connection, now_us: Callable[[], int]) -> bool:
    """Whether a stored instant lies in the future; reads only.

    Args:
        now_us: returns this node's time.
    """
    now = now_us()
    any_of, _mended = _queries(context, connection)
    return connection.scalar(any_of, {"now": now, "lease_now": now}) is not None


def repair(context: StoreContext, connection: Connection, now_us: Callable[[], int]) -> None:
    """Set future instants to the present."""
    _any_of, mended = _queries(context, connection)
    connection.execute(mended, {"lease_now": now_us()})
    connection.execute(_turns, {"now": now_us()})


def _queries(context: StoreContext, connection: Connection) -> tuple[Any, Any]:
    return _by_database.of(connection) if context.database_time else _BY_NODE


def _statements(now: Any) -> tuple[Any, Any]:  # noqa: ANN401 - an expression
    renewed = (nodes.c.state == "alive", nodes.c.seen_us > now + SLACK_US)
    leases = select(nodes.c.id).where(*renewed).exists()
    any_of = select(literal(1)).where(leases | select(turns.c.tenant_id).where(*_served).exists())
    until = nodes.c.lease_until_us - nodes.c.seen_us + now
    return any_of, update(nodes).where(*renewed).values(lease_until_us=until, seen_us=now)


_by_database = PerDriver(lambda driver: _statements(driver.now_us()))
_BY_NODE = _statements(bindparam("lease_now"))
