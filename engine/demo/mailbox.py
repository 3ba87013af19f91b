"""A small SMTP server on the loopback: it receives the demo's mails, keeps them in memory and delivers them nowhere."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from email import message_from_bytes, policy
from typing import Self

#: RFC 5321 §4.5.3.1 asks for 512 octets a command and 1000 a line; mails above a megabyte are refused.
_LINE_BYTES = 2048
_MAIL_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Mail:
    """One mail as it arrived on the wire."""

    sender: str
    to: tuple[str, ...]
    subject: str
    text: str
    message_id: str


class Mailbox:
    """The server; ``async with`` starts and stops it.

    Args:
        on_mail: called with each mail as it is accepted.
    """

    host = "127.0.0.1"

    def __init__(self, on_mail: Callable[[Mail], None] = lambda _mail: None) -> None:
        self.mails: list[Mail] = []
        self.port = 0
        self._on_mail = on_mail
        self._server: asyncio.Server | None = None
        self._talks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._talk, self.host, 0, limit=_LINE_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_error: object) -> None:
        if self._server is None:
            return
        self._server.close()
        for talk in list(self._talks):
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._talks.add(task)
        try:
            await _Talk(reader, writer, self._keep).run()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # the peer broke off or broke the protocol: its mail was not accepted, so it will come again
        except asyncio.CancelledError:
            pass  # the server stops; swallowed because asyncio's stream callback would log it as a fault
        finally:
            self._talks.discard(task)
            writer.close()

    def _keep(self, mail: Mail) -> None:
        self.mails.append(mail)
        self._on_mail(mail)


class _Talk:
    """One connection: RFC 5321 as far as a submitting client needs it."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, keep: Callable[[Mail], None]
    ) -> None:
        self._reader, self._writer, self._keep = reader, writer, keep
        self._sender = ""
        self._to: list[str] = []

    async def run(self) -> None:
        await self._say("220 lodger demo mailbox")
        while line := await self._reader.readline():
            verb, _, rest = line.decode("utf-8", "replace").strip().partition(" ")
            match verb.upper():
                case "EHLO":
                    await self._say(f"250-mailbox\r\n250-SIZE {_MAIL_BYTES}\r\n250-8BITMIME\r\n250 SMTPUTF8")
                case "HELO" | "NOOP":
                    await self._say("250 ok")
                case "RSET":
                    self._forget()
                    await self._say("250 ok")
                case "MAIL":
                    self._forget()
                    self._sender = _address(rest)
                    await self._say("250 ok")
                case "RCPT":
                    self._to.append(_address(rest))
                    await self._say("250 ok")
                case "DATA":
                    await self._data()
                case "QUIT":
                    await self._say("221 bye")
                    return
                case _:
                    await self._say("502 command not implemented")

    async def _data(self) -> None:
        if not self._to:
            await self._say("503 no recipient given")
            return
        await self._say("354 end with a line that has only a dot")
        lines, size = [], 0
        while (line := await self._reader.readline()) not in (b".\r\n", b".\n"):
            if not line.endswith(b"\n"):
                raise ConnectionError("the mail is incomplete")
            size += len(line)
            if size <= _MAIL_BYTES:
                lines.append(line[1:] if line.startswith(b".") else line)
        if size > _MAIL_BYTES:
            await self._say("552 message too large")
        else:
            self._keep(_parsed(self._sender, self._to, b"".join(lines)))
            await self._say("250 stored")
        self._forget()

    def _forget(self) -> None:
        self._sender, self._to = "", []

    async def _say(self, text: str) -> None:
        self._writer.write(text.encode() + b"\r\n")
        await self._writer.drain()


def _address(text: str) -> str:
    _, _, path = text.partition(":")
    path = path.strip()
    return path[1 : path.index(">")] if path.startswith("<") and ">" in path else path.split(" ")[0]


def _parsed(sender: str, to: list[str], body: bytes) -> Mail:
    message = message_from_bytes(body, policy=policy.default)
    part = message.get_body(("plain", "html"))
    return Mail(
        sender,
        tuple(to),
        str(message.get("Subject", "")),
        part.get_content().replace("\r\n", "\n") if part is not None else "",
        str(message.get("Message-ID", "")),
    )
