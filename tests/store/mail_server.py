"""A real SMTP server on the loopback interface, and a mailer that sends to it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import sqlalchemy as sa
from aiosmtpd.smtp import SMTP, Envelope, Session

from lodger.engine.core.clock import Alarm
from lodger.engine.effects import commit
from lodger.engine.effects.effect import Mail
from lodger.engine.effects.journal import Journal
from lodger.engine.node.outbox.mailer import Mailer, MailServer
from lodger.engine.store.connection.database import Database
from lodger.engine.store.schema.script_data import outbox

START_US = 1_795_000_000_000_000


class SteppedClock:
    """A clock that stands until a test sets ``us``."""

    def __init__(self) -> None:
        self.us = START_US

    def now_us(self) -> int:
        return self.us

    def elapsed_s(self) -> float:
        return self.us / 1_000_000

    async def sleep(self, seconds: float) -> None:
        await asyncio.Event().wait()

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Alarm:
        return asyncio.get_running_loop().call_later(100_000, callback)


class Mailbox:
    """Handler of an SMTP server: keeps mails, and refuses as a test says."""

    def __init__(self) -> None:
        self.got: list[tuple[list[str], bytes]] = []
        self.refuse_data: list[str] = []
        self.refuse_rcpt: dict[str, str] = {}

    async def handle_RCPT(  # noqa: N802 - the server's name for it
        self, _server: Any, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        if address in self.refuse_rcpt:
            return self.refuse_rcpt[address]
        envelope.rcpt_tos.append(address)
        return "250 ok"

    async def handle_DATA(self, _server: Any, _session: Session, envelope: Envelope) -> str:  # noqa: N802 - the server's name for it
        assert isinstance(envelope.content, bytes)
        self.got.append((envelope.rcpt_tos, envelope.content))
        return self.refuse_data.pop(0) if self.refuse_data else "250 ok"


class MailerBench:
    """A database with mails to send, and a mailer on a clock that a test sets."""

    def __init__(self, database: Database, box: Mailbox, port: int) -> None:
        self.database, self.box, self.clock = database, box, SteppedClock()
        self.server = MailServer("127.0.0.1", port, sender="shop@example.com", tries=3, timeout_s=5)
        self.mailer = Mailer(database, self.server, self.clock)
        self.sent = 0

    def queue(self, *, tenant: str = "one", **given: Any) -> None:
        """Queue a mail as a committed step does."""
        self.sent += 1
        journal = Journal(tenant, f"018f0000-0000-7000-8000-{self.sent:012}")
        mail = {"to": ("x@example.com",), "subject": "s", "text": "t"} | given
        journal.add(Mail(**mail, message_id=journal.message_id()))
        with self.database.write() as connection:
            commit.apply(connection, journal, now_us=self.clock.us)

    def rows(self) -> list[Any]:
        with self.database.read() as connection:
            return list(connection.execute(sa.select(outbox).order_by(outbox.c.id)))


def posted(url: str, work: Callable[[MailerBench], Awaitable[None]], *, listening: bool = True) -> None:
    """Run a test with a mailer and an SMTP server; without ``listening`` nothing answers at its port."""

    @asynccontextmanager
    async def server(box: Mailbox) -> AsyncIterator[int]:
        made = await asyncio.get_running_loop().create_server(lambda: SMTP(box, enable_SMTPUTF8=False), "127.0.0.1", 0)
        port = made.sockets[0].getsockname()[1]
        if not listening:
            made.close()
            await made.wait_closed()
        try:
            yield port
        finally:
            made.close()
            await made.wait_closed()

    async def go() -> None:
        database, box = Database(url), Mailbox()
        try:
            async with server(box) as port:
                await work(MailerBench(database, box, port))
                await asyncio.sleep(0)
        finally:
            database.close()
            await asyncio.get_running_loop().shutdown_default_executor()

    asyncio.run(go())
