"""Sends one request and follows its redirects; each hop is parsed, authorized, resolved and checked like the first."""

import asyncio
import ssl
from dataclasses import dataclass
from urllib.parse import urljoin

import h11
import httpcore2

from lodger.engine.core.execution import Answer
from lodger.engine.core.token_buckets import TokenBuckets
from lodger.engine.egress import headers as allowed_headers
from lodger.engine.egress import target as targets
from lodger.engine.egress.address import AddressPolicy
from lodger.engine.egress.decoding import ACCEPTED, Body
from lodger.engine.egress.headers import Headers
from lodger.engine.egress.network import GuardedNetwork, Lookup
from lodger.engine.egress.request import MAX_HEADERS, MAX_HOPS, Redirect, Request
from lodger.engine.egress.request_errors import Cut, Refused, TooLarge, TooLate
from lodger.engine.egress.target import Target

_POINTS_ELSEWHERE = {301, 302, 303, 307, 308}
_BODILESS = {"GET", "HEAD"}
_UNASKED = ("content-encoding", "content-length", "transfer-encoding")


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules for every request of this node.

    Attributes:
        ports: allowed ports.
        tls: verifies certificates; requests cannot weaken it.
        payer_pace, host_pace: rates of one payer at one host, and of all payers at one host.
    """

    addresses: AddressPolicy
    look_up: Lookup
    ports: frozenset[int]
    tls: ssl.SSLContext
    payer_pace: TokenBuckets
    host_pace: TokenBuckets


@dataclass(slots=True)
class _Asked:
    """The state of a request from hop to hop."""

    method: str
    target: Target
    headers: Headers
    body: bytes


async def send(rules: Rules, request: Request) -> Answer:
    """Send a request; no connection, cookie or credential outlives it.

    Raises:
        NoAnswer: Refused, TooLate, TooLarge or Cut.
    """
    asked = _Asked(request.method, targets.read(request.url), request.headers, request.body)
    loop = asyncio.get_running_loop()
    end, moved = loop.time() + request.total_s, request.moved
    try:
        async with asyncio.timeout_at(end):
            for hop in range(MAX_HOPS + 1):
                require_allowed(rules, request, asked.target)
                for pace, key in (
                    (rules.payer_pace, (request.payer, asked.target.origin.host)),
                    (rules.host_pace, asked.target.origin.host),
                )[: 1 if request.trusted else 2]:
                    left = end - loop.time()
                    wait = pace.turn(key, left)
                    if wait > left:
                        said = "the request rate to this host stayed too high until the timeout"
                        raise TooLate(said, said)
                    await asyncio.sleep(wait)
                status, reason, headers, body = await _hop(rules, request, asked)
                elsewhere = _elsewhere(status, headers) if request.redirect is not Redirect.MANUAL else None
                if elsewhere is None:
                    return Answer(status, reason, str(asked.target), headers, body, hop > 0, moved.sent, moved.received)
                if request.redirect is Redirect.ERROR:
                    said = 'the answer is a redirect, and redirect is "error"'
                    raise Cut(said, said)
                _go_on(asked, status, elsewhere)
            said = f"the answer is a redirect for the {MAX_HOPS + 1}th time, and at most {MAX_HOPS} are followed"
            raise Cut(said, said)
    except TimeoutError:
        raise TooLate(f"no complete answer within {request.total_s} s", request.late) from None


def require_allowed(rules: Rules, request: Request, target: Target) -> None:
    """Raise Refused unless the target's port, origin and address are allowed."""
    origin = target.origin
    if not request.allowed(origin):
        granted = f"fetch:{str(origin).removeprefix('https://')}"
        raise Refused(f"{origin} is not granted", f"this request is not allowed: it needs the grant {granted}")
    if request.trusted:
        return
    if origin.port not in rules.ports:
        raise Refused(f"port {origin.port} is not allowed")
    if target.address is None and ("." not in origin.host or origin.host.endswith(".localhost")):
        raise Refused(f"{origin.host} is a name of this machine or its local network")


async def _hop(rules: Rules, request: Request, asked: _Asked) -> tuple[int, str, Headers, bytes]:
    """Send one request without following a redirect; return status, reason, headers and decoded body."""
    target, filled, content = request.filled(asked.target, asked.headers, asked.body)
    sent = [("host", target.authority), *filled, ("accept-encoding", ACCEPTED)]
    for header, value in (("accept", "*/*"), ("user-agent", "Lodger")):
        if not any(name == header for name, _ in sent):
            sent.append((header, value))
    if content or asked.method not in _BODILESS | {"DELETE", "OPTIONS"}:
        sent.append(("content-length", str(len(content))))
    sent.append(("connection", "close"))
    request.moved.sent += len(asked.method) + len(target.path) + len(content) + 14
    request.moved.sent += sum(len(name) + len(value) + 4 for name, value in sent)
    network = GuardedNetwork(target, None if request.trusted else rules.addresses, rules.look_up)
    connection = httpcore2.AsyncHTTPConnection(_origin(target), rules.tls, network_backend=network)
    made = httpcore2.Request(
        asked.method,
        httpcore2.URL(
            scheme=target.origin.scheme, host=target.origin.host, port=target.origin.port, target=target.path
        ),
        headers=[(name.encode(), value.encode("latin-1")) for name, value in sent],
        content=content,
    )
    response: httpcore2.Response | None = None
    try:
        response = await connection.handle_async_request(made)
        headers = _headers(response.headers)
        request.moved.received += sum(len(name) + len(value) + 4 for name, value in headers)
        network.expect(request.max_body)
        pointed = request.redirect is not Redirect.MANUAL and _elsewhere(response.status, headers) is not None
        # The body of a redirect that is followed is not read.
        body = b"" if pointed else await _body(request, response, headers)
    except (
        httpcore2.NetworkError,
        httpcore2.ProtocolError,
        httpcore2.TimeoutException,
        h11.ProtocolError,
        OSError,
    ) as error:
        raise Cut(
            f"{type(error).__name__}: {error}", _cause(error, begun=network.connected, answered=response is not None)
        ) from error
    finally:
        await connection.aclose()
        await network.aclose()
    reason = response.extensions.get("reason_phrase", b"").decode("latin-1")
    kept = tuple((name, value) for name, value in headers if name not in _UNASKED)
    return response.status, reason, kept, body


def _cause(error: Exception, *, begun: bool, answered: bool) -> str:
    """Return the sentence for a script about a broken connection. ``begun``: the request was sent; ``answered``: a response had begun."""
    reason: BaseException | None = error
    while reason is not None:
        if isinstance(reason, ssl.SSLCertVerificationError):
            return f"the certificate of the host is not valid: {reason.verify_message}"
        if isinstance(reason, ssl.SSLError):
            return "the connection failed in TLS: the host does not speak it, or not in a common version"
        reason = reason.__cause__ or reason.__context__
    if isinstance(error, httpcore2.ConnectTimeout):
        return "the host did not accept the connection in time"
    if isinstance(error, httpcore2.ConnectError) and not begun:
        return "the host refused the connection"
    if isinstance(error, httpcore2.RemoteProtocolError | httpcore2.ReadError) and begun:
        if answered or "closed connection" in str(error):
            return "the connection ended before the answer was complete"
        without = isinstance(error, httpcore2.ReadError) or "without sending a response" in str(error)
        return "the host closed the connection without an answer" if without else "the answer of the host is not HTTP"
    return Cut.message


def _origin(target: Target) -> httpcore2.Origin:
    """Return the origin of a target for the HTTP library."""
    origin = target.origin
    return httpcore2.Origin(origin.scheme.encode(), origin.host.encode(), origin.port)


def _headers(found: list[tuple[bytes, bytes]]) -> Headers:
    """Return response headers as text, names in lower case."""
    if sum(len(name) + len(value) for name, value in found) > MAX_HEADERS:
        said = f"the headers of the answer have more than {MAX_HEADERS} characters"
        raise TooLarge(said, said)
    return tuple((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in found)


async def _body(request: Request, response: httpcore2.Response, headers: Headers) -> bytes:
    """Read and decode the body of a response, up to the request's maximum."""
    if response.status == 101:
        raise Cut("the server switches to another protocol")
    body = Body(",".join(value for name, value in headers if name == "content-encoding"), request.max_body)
    try:
        async for part in response.aiter_stream():
            request.moved.received += len(part)
            body.take(part)
    finally:
        await response.aclose()
    return body.whole()


def _elsewhere(status: int, headers: Headers) -> str | None:
    """Return the location that a redirect names; None if the response is no redirect."""
    found = [value for name, value in headers if name == "location"]
    return found[0] if status in _POINTS_ELSEWHERE and len(found) == 1 else None


def _go_on(asked: _Asked, status: int, location: str) -> None:
    """Change the state of a request for the next hop of a redirect: its URL, method, headers and body (Fetch standard, HTTP-redirect
    fetch)."""
    before = asked.target
    try:
        asked.target = targets.read(joined_url(str(before), location))
    except ValueError:
        said = "the redirect has no valid http or https URL in its location"
        raise Cut(said, said) from None
    if (status == 303 and asked.method != "HEAD") or (status in (301, 302) and asked.method == "POST"):
        asked.method, asked.body = "GET", b""
        asked.headers = tuple((name, value) for name, value in asked.headers if not name.startswith("content-"))
    if asked.target.origin != before.origin:
        asked.headers = allowed_headers.for_other_origin(asked.headers)


def joined_url(base: str, location: str) -> str:
    """Return a redirect's location in canonical form where that is unambiguous; other locations are refused later."""
    if location.strip(" \t").rstrip("/").lower() in ("http:", "https:"):
        raise ValueError(location)  # urljoin would take it for an empty one
    joined = urljoin(base, location.strip(" \t")).partition("#")[0]
    scheme, colon, rest = joined.partition("://")
    authority, slash, path = rest.partition("/")
    authority, question, query = authority.partition("?")
    if question:  # http://host?query
        slash, path = "/", question + query + slash + path
    scheme, authority = scheme.lower(), authority.lower()
    for known, port in (("http", ":80"), ("https", ":443")):
        if scheme == known:
            authority = authority.removesuffix(port)
    return scheme + colon + authority + (slash or "/") + path.replace(" ", "%20")
