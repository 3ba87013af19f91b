"""What happens, as it happens, for whoever has the ledger open: one tenant's actions, or one action with its log."""

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import Connection

from lodger.engine.ledger import actions, tenants
from lodger.engine.ledger.following import Following
from lodger.engine.ledger.records import Action
from lodger.engine.ledger.running_lines import Hearing
from lodger.engine.ledger.schema.scheduling import OPEN
from lodger.sandbox.job import LogLine

if TYPE_CHECKING:
    from lodger.engine.sync import Engine

T = TypeVar("T")
#: Seconds between two looks at the ledger; what this process changes is looked at at once.
LOOK_S = 0.5


def live(engine: "Engine", tenant_id: str, action_id: str | None) -> Iterator[Action | LogLine]:
    """Give what happens; see :meth:`lodger.engine.sync.Engine.live`."""
    woken = threading.Event()
    forget = engine.watch(woken.set)

    def read(look: Callable[[Connection], T]) -> T:
        with engine.books.database.read() as connection:
            return look(connection)

    def waited() -> None:
        woken.wait(LOOK_S)
        woken.clear()

    try:
        yield from (
            _actions(engine, tenant_id, read, waited)
            if action_id is None
            else _action(tenant_id, action_id, read, waited)
        )
    finally:
        forget()


Read = Callable[[Callable[[Connection], T]], T]


def _actions(
    engine: "Engine", tenant_id: str, read: "Read[list[Action]]", waited: Callable[[], None]
) -> Iterator[Action]:
    following = Following(tenant_id)

    def begin(connection: Connection) -> list[Action]:
        tenants.get(connection, tenant_id)
        following.begin(connection, engine.books.clock.now_us())
        return []

    read(begin)
    while True:
        waited()
        yield from read(following.look)


def _action(
    tenant_id: str, action_id: str, read: "Read[tuple[Action, list[LogLine]]]", waited: Callable[[], None]
) -> Iterator[Action | LogLine]:
    mark, hearing = None, Hearing(tenant_id, action_id)

    def look(connection: Connection) -> tuple[Action, list[LogLine]]:
        return actions.get(connection, action_id, tenant_id), hearing.look(connection)

    while True:
        found, lines = read(look)
        yield from lines
        if (found.state, found.attempt, found.step) != mark:
            mark = (found.state, found.attempt, found.step)
            yield found
        if found.state not in OPEN:
            return
        waited()
