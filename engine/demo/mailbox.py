"""The demo's mailbox, which takes every mail of the outbox."""

import json
from collections.abc import Callable
from typing import Any, ClassVar

from sqlalchemy import Row

from lodger.engine.core.clock import Clock
from lodger.engine.node.outbox.sender import Sender
from lodger.engine.store.connection.transactions import Transactions

#: How often the outbox is emptied.
POLL_S = 0.5


class Mailbox(Sender):
    """A sender without a server: a line for each mail.

    Args:
        write: prints one line.
    """

    kind: ClassVar[str] = "mail"
    effect: ClassVar[str] = "mail"
    lanes: ClassVar[int] = 4
    each: ClassVar[int] = 10

    def __init__(self, database: Transactions, clock: Clock, write: Callable[[str], None]) -> None:
        super().__init__(database, clock, poll_s=POLL_S)
        self._write = write

    async def deliver(self, rows: list[Row[Any]]) -> None:
        """Write a line for each mail, and mark it as sent."""
        for row in rows:
            mail = json.loads(row.payload)
            self._write(f"mail    to {', '.join(mail['to'])}: {mail['subject']}")
            await self.mark(row, None)
