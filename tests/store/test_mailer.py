"""The outbox on a real database, sent to a real SMTP server on the loopback."""

import asyncio
from email import message_from_bytes
from email.header import decode_header, make_header
from email.policy import default as email_policy
from email.utils import getaddresses
from typing import Any

import sqlalchemy as sa
from tests.store.mail_server import START_US, MailerBench, posted

from lodger.engine.effects.effect import Attachment
from lodger.engine.node.outbox.mailer import Mailer
from lodger.engine.store.schema.scheduling import tenants


def test_a_mail_arrives_as_written_once(url: str) -> None:
    async def work(post: MailerBench) -> None:
        body = "Grüße\n.\nQUIT\r\n\rbare\n" + "long " * 400
        post.queue(
            subject="Grüße an alle " + "ä" * 120,
            text=body,
            html="<p>ü</p>",
            reply_to="re@example.com",
            to=("x@example.com", "y@example.com"),
        )
        assert await post.mailer.send_due() == 1
        assert await post.mailer.send_due() == 0
        ((recipients, raw),) = post.box.got
        message = message_from_bytes(raw)
        assert recipients == ["x@example.com", "y@example.com"]
        assert str(make_header(decode_header(message["Subject"]))) == "Grüße an alle " + "ä" * 120
        assert (message["From"], message["Reply-To"]) == ("shop@example.com", "re@example.com")
        assert message.get_content_type() == "multipart/alternative"
        text, html = message.get_payload()
        assert (text.get_content_type(), html.get_content_type()) == ("text/plain", "text/html"), (
            "the richest form is the last"
        )
        assert text.get_payload(decode=True).decode().splitlines() == body.splitlines()
        assert html.get_payload(decode=True).decode().strip() == "<p>ü</p>"
        assert max(len(line) for line in raw.split(b"\r\n")) <= 998
        (row,) = post.rows()
        assert (row.state, row.attempts, row.message_id) == ("sent", 1, message["Message-ID"])

    posted(url, work)


def test_a_mail_with_copies_a_name_and_attachments(url: str) -> None:
    async def work(post: MailerBench) -> None:
        post.queue(
            html="<p>ü</p>",
            cc=("c@example.com", "x@example.com"),
            bcc=("b@example.com",),
            sender_name='Müller "Sales" <a@b.example>',
            names={"c@example.com": "Jürgen, C."},
            attachments=(
                Attachment("Bericht März.csv", "text/csv; charset=utf-8", "YSxiDQoNCi5cclw="),
                Attachment("x.bin", "image/png", "AP8="),
            ),
        )
        assert await post.mailer.send_due() == 1
        ((recipients, raw),) = post.box.got
        assert recipients == ["x@example.com", "c@example.com", "b@example.com"]
        assert b"b@example.com" not in raw, "a blind copy is in no header"
        message = message_from_bytes(raw, policy=email_policy)
        assert [(each.display_name, each.addr_spec) for each in message["Cc"].addresses] == [
            ("Jürgen, C.", "c@example.com"), ("", "x@example.com"),
        ]  # fmt: skip
        assert [part.get_content_charset() for part in message.iter_attachments()] == ["utf-8", None]
        (sender,) = message["From"].addresses
        assert (sender.display_name, sender.addr_spec) == ('Müller "Sales" <a@b.example>', "shop@example.com")
        assert message.get_body(("plain",)).get_content().strip() == "t"
        assert message.get_body(("html",)).get_content().strip() == "<p>ü</p>"
        assert [part.get_content_type() for part in message.walk()] == [
            "multipart/mixed", "multipart/alternative", "text/plain", "text/html", "text/csv", "image/png",
        ]  # fmt: skip
        first, second = message.iter_attachments()
        assert (first.get_filename(), first.get_content_type()) == ("Bericht März.csv", "text/csv")
        assert first.get_payload(decode=True) == b"a,b\r\n\r\n.\\r\\"
        assert (second.get_filename(), second.get_payload(decode=True)) == ("x.bin", b"\x00\xff")

    posted(url, work)


def test_long_names_and_subjects_arrive_as_they_are_and_name_no_other_address(url: str) -> None:
    forged = (
        "Bank, Inc. <ceo@bank.example> " + "y" * 70,
        "y" * 80 + "<ceo@bank.example>,",
        "ä" * 40 + ", <ceo@bank.example>,",
    )
    subject = "Ihre Rechnung – fällig am 1. Dezember – für Köln – 日本語 – " * 3 + "Ende  :"

    async def work(post: MailerBench) -> None:
        for name in forged:
            post.queue(subject=subject, sender_name=name, to=("x@example.com",), names={"x@example.com": name})
        assert await post.mailer.send_due() == len(forged)
        for (_, raw), name in zip(post.box.got, forged, strict=True):
            message = message_from_bytes(raw)
            for header, address in (("From", "shop@example.com"), ("To", "x@example.com")):
                ((shown, found),) = getaddresses([message[header]])
                assert (str(make_header(decode_header(shown))), found) == (name, address)
            assert str(make_header(decode_header(message["Subject"]))) == subject

    posted(url, work)


def test_a_temporary_refusal_is_tried_again_under_the_same_id(url: str) -> None:
    async def work(post: MailerBench) -> None:
        post.queue()
        post.box.refuse_data = ["451 later\x1b[31m"]
        await post.mailer.send_due()
        (row,) = post.rows()
        assert (row.state, row.attempts, row.next_at_us) == ("queued", 1, START_US + 30_000_000)
        assert row.last_error.startswith("451 later")
        assert "\x1b" not in row.last_error
        assert await post.mailer.send_due() == 0, "it waits"
        post.clock.us += 30_000_000
        await post.mailer.send_due()
        assert [row.state for row in post.rows()] == ["sent"]
        first, second = (message_from_bytes(raw)["Message-ID"] for _, raw in post.box.got)
        assert first == second

    posted(url, work)


def test_a_permanent_refusal_fails_at_once_and_delays_nobody(url: str) -> None:
    async def work(post: MailerBench) -> None:
        post.box.refuse_rcpt = {"x@example.com": "550 nobody here"}
        post.queue()
        post.queue(to=("y@example.com",))
        post.queue(to=("y@example.com", "x@example.com"))
        await post.mailer.send_due()
        found = {(row.state, row.last_error) for row in post.rows()}
        assert found == {
            ("failed", "550 nobody here"),
            ("sent", None),
            ("sent", "the mail server did not accept the recipients x@example.com"),
        }

    posted(url, work)


def test_an_absent_server_pauses_longer_each_time_then_fails(url: str) -> None:
    async def work(post: MailerBench) -> None:
        post.queue()
        pauses = []
        for _ in range(3):
            await post.mailer.send_due()
            (row,) = post.rows()
            if row.next_at_us is not None:
                pauses.append((row.next_at_us - post.clock.us) // 1_000_000)
                post.clock.us = row.next_at_us
        assert pauses == [30, 60]
        assert row.state == "failed"
        assert row.last_error.startswith("the mail server cannot be reached")

    posted(url, work, listening=False)


def test_what_a_dead_sender_took_goes_out_after_its_lease(url: str) -> None:
    async def work(post: MailerBench) -> None:
        post.queue()
        sending = asyncio.Event()

        class Killed(Mailer):
            async def deliver(self, rows: list[Any]) -> None:
                sending.set()
                await asyncio.get_running_loop().create_future()

        killed = Killed(post.database, post.server, post.clock)
        await killed.start()
        await sending.wait()
        await killed.stop()
        assert await post.mailer.send_due() == 0
        post.clock.us += 180_000_000
        assert await post.mailer.send_due() == 1
        assert [(row.state, row.attempts) for row in post.rows()] == [("sent", 2)]

    posted(url, work)


FORGED: list[dict[str, Any]] = [
    {"subject": "a\r\nBcc: evil@example.com"}, {"subject": "a\nBcc: evil@example.com"}, {"subject": "a\rBcc: evil@example.com"},
    {"to": ("x@example.com\r\nBcc: evil@example.com",)}, {"reply_to": "x@example.com\nBcc: evil@example.com"},
    {"cc": ("c@example.com\r\nBcc: evil@example.com",)}, {"sender_name": "a\r\nBcc: evil@example.com"},
    {"attachments": (Attachment("a\r\nX: y", "text/csv", "YQ=="),)},
    {"attachments": (Attachment("=?utf-8?q?a=0D=0AX:_y?=", "text/csv", "YQ=="),)},
    {"attachments": (Attachment("a.csv", "text/csv\r\nX: y", "YQ=="),)},
]  # fmt: skip


def test_the_sender_is_a_second_lock_against_forged_headers(url: str) -> None:
    """Past the first lock (the capability refuses such mails), no header line is made of it either."""

    async def work(post: MailerBench) -> None:
        for forged in FORGED:
            post.queue(**forged)
        while await post.mailer.send_due():
            pass
        assert [row.state for row in post.rows()] == ["failed"] * len(FORGED)
        assert post.box.got == []

    posted(url, work)


ENCODED = [
    "=?utf-8?q?a=0D=0ABcc:_evil@example.com?=",
    "=?utf-8?b?YQ0KQmNjOiBldmlsQGV4YW1wbGUuY29t?=",
    "=?us-ascii?Q?a=0ABcc:_evil@example.com?= b",
    "x =?utf-8?q?=0D=0A=0D=0Abody?=",
    "=?utf-8?q?a?= =?utf-8?q?=0D=0ABcc:_evil@example.com?=",
]


def test_encoded_words_make_no_header_even_past_the_first_lock(url: str) -> None:
    """Python decodes them when a header is set, line ends and all; whatever becomes of that, no further address receives the mail."""

    async def work(post: MailerBench) -> None:
        for words in ENCODED:
            post.queue(subject=words)
            post.queue(sender_name=words)
        await post.mailer.send_due()
        assert all(row.state in ("sent", "failed") for row in post.rows())
        for recipients, raw in post.box.got:
            head = raw.partition(b"\r\n\r\n")[0]
            assert recipients == ["x@example.com"]
            assert b"\nbcc" not in head.lower()
            assert message_from_bytes(raw)["Bcc"] is None
            assert message_from_bytes(raw).get_payload() == "t\r\n"

    posted(url, work)


def test_tenants_take_turns(url: str) -> None:
    async def work(post: MailerBench) -> None:
        for _ in range(35):
            post.queue(tenant="many")
        post.queue(tenant="few", subject="few")
        await post.mailer.send_due()
        assert len(post.box.got) == 11, "ten of the one that has many, all of the other"
        for _ in range(3):
            await post.mailer.send_due()
        assert len(post.box.got) == 36

    posted(url, work)


def test_mails_of_a_suspended_tenant_wait_until_it_goes_on(url: str) -> None:
    async def work(post: MailerBench) -> None:
        with post.database.write() as connection:
            values = {"name": "one", "generation": 1, "limits": "{}", "created_us": 1}
            connection.execute(sa.insert(tenants).values(id="one", state="suspended", **values))
        post.queue()
        post.queue(tenant="two")
        await post.mailer.send_due()
        assert [(row.tenant_id, row.state) for row in post.rows()] == [("one", "queued"), ("two", "sent")]
        with post.database.write() as connection:
            connection.execute(sa.update(tenants).values(state="active"))
        await post.mailer.send_due()
        assert {row.state for row in post.rows()} == {"sent"}

    posted(url, work)


def test_two_senders_send_nothing_twice(url: str) -> None:
    async def work(post: MailerBench) -> None:
        other = Mailer(post.database, post.server, post.clock)
        for number in range(30):
            post.queue(tenant=f"t{number % 3}")
        while await asyncio.gather(post.mailer.send_due(), other.send_due()) != [0, 0]:
            pass
        identities = [message_from_bytes(raw)["Message-ID"] for _, raw in post.box.got]
        assert len(identities) == len(set(identities)) == 30

    posted(url, work)
