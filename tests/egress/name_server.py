"""A DNS server of the tests' own: answers change from question to question, as a rebinding attacker's do."""

import asyncio
from collections import Counter
from ipaddress import ip_address
from typing import Self

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset

#: What a name answers: addresses for each question in turn (the last stays); ``>name`` is an alias.
Answers = list[list[str]]


class NameServer(asyncio.DatagramProtocol):
    """``async with`` starts and stops it on 127.0.0.1."""

    def __init__(self, zone: dict[str, Answers], port: int = 0) -> None:
        self.zone = zone
        self.port = port
        self.asked: Counter[tuple[str, str]] = Counter()
        self.silent: set[str] = set()

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=("127.0.0.1", self.port))
        self.port = self._transport.get_extra_info("sockname")[1]
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._transport.close()
        await asyncio.sleep(0)

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.port}"

    def datagram_received(self, data: bytes, peer: tuple[str, int]) -> None:
        question = dns.message.from_wire(data)
        answer = dns.message.make_response(question)
        answer.flags |= dns.flags.RA
        (asked,) = question.question
        name, kind = str(asked.name).rstrip(".").lower(), dns.rdatatype.to_text(asked.rdtype)
        if name in self.silent:
            return
        if name not in self.zone:
            answer.set_rcode(dns.rcode.NXDOMAIN)
        else:
            self._fill(answer, name, kind)
        self._transport.sendto(answer.to_wire(), peer)

    def _fill(self, answer: dns.message.Message, name: str, kind: str) -> None:
        """Add the addresses of a name to an answer; a name may have another set of them at each question."""
        for _ in range(5):
            turns = self.zone.get(name, [[]])
            reported = turns[min(self.asked[name, kind], len(turns) - 1)]
            self.asked[name, kind] += 1
            aliases = [each[1:] for each in reported if each.startswith(">")]
            version = {"A": 4, "AAAA": 6}.get(kind)
            for address in (each for each in reported if not each.startswith(">")):
                if ip_address(address).version == version:
                    answer.answer.append(dns.rrset.from_text(f"{name}.", 0, "IN", kind, address))
            if not aliases:
                return
            answer.answer.append(dns.rrset.from_text(f"{name}.", 0, "IN", "CNAME", f"{aliases[0]}."))
            name = aliases[0]
