"""Requests to URLs of scripts: verified, stored as one-off actions once a delivery, and answered before they run."""

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from lodger.engine.core.errors import InputError
from lodger.engine.core.refusal import CallRefused
from lodger.engine.egress.signature import NotVerified, verify_request
from lodger.engine.features.script_urls import script_urls
from lodger.engine.features.script_urls.script_urls import ScriptUrl
from lodger.engine.server.problems import Refused
from lodger.engine.store.actions import actions, later_runs
from lodger.engine.store.actions.later_runs import LaterRun
from lodger.engine.store.queue import ready_queue
from lodger.engine.store.scripts import scripts
from lodger.engine.store.tenants import secrets
from lodger.engine.store.usage import budget_reservations, storage_usage, usage
from lodger.sandbox.prescan import JsonRefused, parse

if TYPE_CHECKING:
    from lodger.engine.service.engine import Engine

#: Maximum size of a body, bytes.
MAX_BODY = 256 * 1024
#: A JSON body that is nested deeper, or has more values, is given to the script as text.
MAX_DEPTH, MAX_VALUES = 24, 50_000
#: Largest integer up to which a script's numbers are exact.
MAX_INTEGER = 2**53 - 1
BUDGET = "later_runs"
#: Headers with the id of a delivery, in this order.
DELIVERY = ("idempotency-key", "webhook-id", "x-github-delivery", "x-delivery-id")


@dataclass(frozen=True, slots=True)
class UrlRequest:
    """A request as it was received; ``headers`` by name in lower case, ``query`` without the question mark."""

    method: str
    query: str
    headers: Mapping[str, str]
    body: bytes


def unknown() -> Refused:
    """Return the one refusal of URLs that are unknown, revoked, expired, or of a tenant that is not active."""
    return Refused(404, "url_unknown")


class UrlRequests:
    """Carries out requests to URLs for one engine."""

    def __init__(self, engine: "Engine") -> None:
        self.engine = engine
        self._context = engine.context

    def find(self, text: str) -> ScriptUrl | None:
        """Return the URL with this secret part; None if it is unknown, revoked, expired, or its tenant is not active."""
        digest = script_urls.digest_of(text)
        if digest is None:
            return None
        with self._context.database.read() as connection:
            return script_urls.open_url(connection, digest, self._context.clock.now_us())

    def _open(self, connection: Connection, digest: str) -> ScriptUrl:
        """Return the URL with this digest, if it may be used now."""
        found = script_urls.open_url(connection, digest, self._context.clock.now_us())
        if found is None:
            raise unknown()
        return found

    def receive(self, text: str, request: UrlRequest) -> str:
        """Store the action that a request asks for; return its id. A repeated delivery returns the id of the first one.

        Raises:
            Refused: url_unknown, url_method, signature_invalid, url_body_too_large, url_script, url_full.
            Unavailable: the keys of secrets are not available.
        """
        context, now_us, digest = self._context, self._context.clock.now_us(), script_urls.digest_of(text) or ""
        body = _body(request)  # parsed before the transaction
        with context.database.write() as connection:
            url = self._open(connection, digest)
            ready_queue.lock(connection, [url.tenant_id])
            url = self._open(connection, digest)  # a revocation or suspension may have been committed meanwhile
            if request.method == "GET" and not url.get:
                raise Refused(405, "url_method")
            key = _request_key(url, self._verified(connection, url, request, now_us), request)
            before = actions.find_request(connection, url.tenant_id, key)
            if before is not None:
                return before.id
            params = self._params(connection, url, request, body)
            warned = self._charge(connection, url.tenant_id, now_us)
            action_id = context.ids.new()
            run = LaterRun(url.tenant_id, action_id, url.script, now_us, params, None, f"{later_runs.BY_URL}{url.name}")
            try:
                later_runs.deliver(connection, run, key)
            except CallRefused as refused:
                if refused.code == "too_many_waiting":
                    raise _full(60) from None
                raise Refused(422, "url_script") from None
            ready_queue.refresh(connection, [url.tenant_id])
            script_urls.record_use(connection, url, now_us)
            context.database.hints.send(connection, context.clock.elapsed_s())
        self.engine.changed()
        for each in warned:
            each.report(self.engine.events, now_us)
        return action_id

    def _verified(self, connection: Connection, url: ScriptUrl, request: UrlRequest, now_us: int) -> str | None:
        """Check the signature; return the id of the delivery that it covers, or None."""
        if url.signature is None or url.secret is None:
            return None
        found = secrets.open_secrets(self.engine.vault, connection, url.tenant_id, [url.secret]).get(url.secret)
        with suppress(NotVerified):
            if found is not None:
                return verify_request(url.signature, found.value, request.headers, request.body, now_us / 1_000_000)
        raise Refused(401, "signature_invalid")  # also if the secret was deleted since

    def _params(self, connection: Connection, url: ScriptUrl, request: UrlRequest, body: dict[str, Any]) -> str:
        """Return the input of the run that a request starts."""
        headers = {name: request.headers[name] for name in url.headers if name in request.headers}
        value = {"method": request.method, "query": request.query, "headers": headers} | body
        try:
            return scripts.params_text(self._context, connection, url.tenant_id, value) or ""
        except InputError as error:
            raise Refused(413, "url_body_too_large", reason=error.why) from None

    def _charge(self, connection: Connection, tenant_id: str, now_us: int) -> list[usage.Warned]:
        """Count the run on the tenant's day, and return the budgets to warn of; refuse it if the day's budget or the storage is used up."""
        context, day = self._context, now_us // usage.DAY_US
        today = usage.usages_of_day(context, connection, [tenant_id], day)[tenant_id]
        limit = today.allowed.of_day(BUDGET)
        if limit is not None:
            taken = budget_reservations.reserved(connection, tenant_id, day).get(BUDGET, 0)
            if today.used[BUDGET] + taken >= limit:
                raise _full((usage.DAY_US - now_us % usage.DAY_US) // 1_000_000 + 1)
        if storage_usage.excess(context, connection, tenant_id).total:
            raise _full(3600)
        return usage.charge(context, connection, {(tenant_id, day): Counter({BUDGET: 1})})


def _full(retry_s: int) -> Refused:
    """Return the refusal of a request while too many runs wait."""
    return Refused(429, "url_full", headers={"Retry-After": str(retry_s)})


def _request_key(url: ScriptUrl, signed: str | None, request: UrlRequest) -> str | None:
    """Return the key of a delivery: the id that its signature covers, or that of a header."""
    delivery = signed or next((request.headers[name] for name in DELIVERY if request.headers.get(name)), None)
    return None if delivery is None else f"{url.id}:{hashlib.sha256(delivery.encode()).hexdigest()}"


def _body(request: UrlRequest) -> dict[str, Any]:
    """Return a body as ``text``, or ``base64`` if it is not UTF-8, and parsed as ``json`` if it is that; nothing for none."""
    body, kind = request.body, request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not body:
        return {}
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode()}
    if kind == "application/json" or kind.endswith("+json"):
        with suppress(JsonRefused, UnicodeEncodeError):
            parse(body, max_bytes=MAX_BODY, max_depth=MAX_DEPTH, max_values=MAX_VALUES)
            value = json.loads(text, parse_int=_number, parse_float=_number)
            json.dumps(value, ensure_ascii=False).encode()  # not if a text has half a character
            return {"text": text, "json": value}
    return {"text": text}


def _number(digits: str) -> int | float | str:
    """Return a number, or its digits as text if a script's numbers cannot hold it exactly."""
    if digits.lstrip("-").isdigit():
        return int(digits) if len(digits) <= 17 and abs(int(digits)) <= MAX_INTEGER else digits
    with suppress(InvalidOperation):  # of exponents beyond those of Decimal
        if Decimal(repr(float(digits))) == Decimal(digits):
            return float(digits)
    return digits
