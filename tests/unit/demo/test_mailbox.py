"""The demo's SMTP server, spoken to by a real client over a real socket."""

import asyncio
from email.message import EmailMessage

import aiosmtplib
import pytest

from lodger.engine.demo.mailbox import Mail, Mailbox


def _message(subject: str, text: str) -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "shop@a.example", "kim@b.example", subject
    message["Message-ID"] = "<one@lodger>"
    message.set_content(text)
    return message


def test_receives_what_was_sent() -> None:
    seen: list[Mail] = []

    async def talk() -> None:
        async with Mailbox(seen.append) as box:
            await aiosmtplib.send(_message("Grüße", "a\n.point\nZoë\n"), hostname=box.host, port=box.port)
            await aiosmtplib.send(_message("second", "x" * 5000), hostname=box.host, port=box.port)

    asyncio.run(talk())
    first, second = seen
    assert (first.subject, first.text, first.message_id) == ("Grüße", "a\n.point\nZoë\n", "<one@lodger>")
    assert first.to == ("kim@b.example",)
    assert second.text.strip() == "x" * 5000


def test_a_mail_cut_off_is_not_kept() -> None:
    async def talk() -> list[Mail]:
        async with Mailbox() as box:
            reader, writer = await asyncio.open_connection(box.host, box.port)
            await reader.readline()
            for line in (b"MAIL FROM:<a@b.c>", b"RCPT TO:<d@e.f>", b"DATA"):
                writer.write(line + b"\r\n")
                assert (await reader.readline())[:1] in b"23"
            writer.write(b"Subject: half\r\n\r\nnot the en")
            writer.close()
            await writer.wait_closed()
        return box.mails

    assert asyncio.run(talk()) == []


def test_stops_with_a_silent_client() -> None:
    async def talk() -> None:
        async with Mailbox() as box:
            _, writer = await asyncio.open_connection(box.host, box.port)
        writer.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(box.host, box.port)

    asyncio.run(asyncio.wait_for(talk(), 120))
