"""Run as a program: sends every form through the client in a network where each address listens; prints what was heard, as JSON.

``guarded`` is the client as it ships; the others are the same with a part of the guard taken away.
"""

import asyncio
import json
import socket
import sys
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from tests.egress.canary import Canary
from tests.egress.forms import REBINDING, ZONE, all_forms
from tests.egress.name_server import NameServer
from tests.egress.namespace import NoNamespace, enter

from lodger.engine.core.access.origins import PORTS, Origin
from lodger.engine.core.token_buckets import TokenBuckets
from lodger.engine.egress import client, network, target
from lodger.engine.egress.address import AddressPolicy
from lodger.engine.egress.client import Rules, send
from lodger.engine.egress.request import Request
from lodger.engine.egress.request_errors import NoAnswer
from lodger.engine.egress.way_out import Resolver

PUBLIC = {"93.184.216.34", "2606:2800:220:1::1"}
PORTS_HEARD = (80, 443, 8080, 22, 25, 6379, 5432, 11211)
#: Where redirects of a public host lead.
PLACES = (
    "http://127.0.0.1/", "http://[::ffff:127.0.0.1]/", "http://169.254.169.254/", "file:///etc/passwd", "//10.0.0.1/", "http://2130706433/",
    "http://loop.evil.example/", "http://public.example:22/", "\\\\127.0.0.1\\", "gopher://127.0.0.1/",
)  # fmt: skip


async def outcome_of(rules: Rules, url: str) -> str:
    """Send a request to a URL; return the answer or the refusal as text."""
    try:
        answer = await send(rules, Request("GET", url, total_s=3))
    except NoAnswer as refused:
        return f"{refused.code}: {refused.message}"
    except Exception as error:
        return f"{type(error).__name__}"
    return f"answered {answer.status}"


async def play_all_forms(taken_away: str) -> dict[str, Any]:
    """Send requests to all forms of forbidden URLs; return the outcomes by URL, and the connections that arrived."""
    import ssl
    import time

    zone = ZONE | REBINDING | {"public.example": [["93.184.216.34"]]}
    async with NameServer(zone) as names, Canary(PORTS_HEARD) as canary:
        quick = TokenBuckets(1e6, 1000, time.monotonic)
        resolver = Resolver((names.place,))
        rules = Rules(
            AddressPolicy(),
            resolver.addresses,
            frozenset({80, 443, 8080, 8443}),
            ssl.create_default_context(),
            quick,
            quick,
        )
        answers = {url: await outcome_of(rules, url) for url in all_forms()}
        heard = list(canary.heard)
        control = await outcome_of(rules, "http://public.example/")
        rebinding = {name: [await outcome_of(rules, f"http://{name}/") for _ in range(4)] for name in REBINDING}
        looks = {name: names.asked[name, "A"] + names.asked[name, "AAAA"] for name in REBINDING}
        redirected = {}
        for place in PLACES:
            canary.answers["93.184.216.34"] = (
                f"HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n".encode()
            )
            redirected[place] = await outcome_of(rules, "http://public.example/")
        outside = [each for each in canary.heard if each[0] not in PUBLIC]
        return {
            "taken away": taken_away, "answers": answers, "heard": heard, "control": control, "rebinding": rebinding, "looks": looks,
            "redirected": redirected, "outside": outside, "public": len(canary.heard) - len(outside),
        }  # fmt: skip


def without(part: str) -> None:
    """Remove a part of the guard."""
    if part != "guarded":
        # In this network every address is the machine's own, which alone would refuse them all.
        network.is_ours = lambda _address: False
    if part in ("no table", "no guard"):
        AddressPolicy.closed = lambda _self, _address: None  # type: ignore[method-assign]  # taken away
    if part == "no guard":
        target.read = client.targets.read = _leniently
        client.require_allowed = lambda *_: None


def _leniently(url: str) -> target.Target:
    """Read a URL as a program does that means well."""
    parts = urlsplit(url.strip(), scheme="http")
    scheme = parts.scheme if parts.scheme in PORTS else "http"
    host = (parts.hostname or "").encode("idna").decode()
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        address = ip_address(found[0][4][0])
    except OSError:
        address = None
    return target.Target(Origin(scheme, host, parts.port or PORTS[scheme]), parts.path or "/", address)


if __name__ == "__main__":
    try:
        enter()
    except NoNamespace as reason:
        sys.stdout.write(json.dumps({"no namespace": str(reason)}))
        sys.exit()
    without(sys.argv[1])
    sys.stdout.write(json.dumps(asyncio.run(play_all_forms(sys.argv[1]))))
