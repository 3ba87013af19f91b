"""One operation for one request: as its caller, in a thread, under its preconditions, stored under its idempotency key."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from fastapi import Depends
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from lodger.engine.core.access import names as naming
from lodger.engine.core.access.audit_context import AuditContext, in_the_name_of, use_audit_context
from lodger.engine.core.access.roles import Caller, Role
from lodger.engine.core.errors import Unavailable
from lodger.engine.core.partial_answers import HEADER, unreachable_ledgers
from lodger.engine.core.serialization import to_jsonable
from lodger.engine.server.auth import Authenticated
from lodger.engine.server.problems import Refused, Stale
from lodger.engine.server.rate_limits import Threads
from lodger.engine.service.engine import Engine
from lodger.engine.service.operations.route import ROOT, Route
from lodger.engine.store.connection.database import reads_from_replica
from lodger.engine.store.context import StoreContext
from lodger.engine.store.platform import idempotency
from lodger.engine.store.platform.idempotency import Repeated, StoredResponse
from lodger.engine.store.records import Page

T = TypeVar("T")
KEY = re.compile(r"[A-Za-z0-9._:-]{1,200}", re.ASCII)
#: A reason in a header: printable ASCII, and everything else percent-encoded.
WHY = re.compile(r"[A-Za-z0-9 _.:,;!?()'/+=@#%-]*", re.ASCII)


class Calls:
    """Operations for requests.

    Args:
        threads: bounds all of them.
        writing: bounds those that wait for the database's one writer, so that readers keep threads.
        long: bounds those that take seconds because they start sandboxes.
    """

    def __init__(self, engine: Engine, threads: Threads, writing: Threads, long: Threads) -> None:
        self._engine = engine
        self._clock = engine.context.clock
        self._threads = threads
        self._writing = writing
        self._long = long

    async def run(self, key: str, work: Callable[[], T]) -> T:
        """Run blocking work in a thread, in the present context.

        Args:
            key: the tenant or token that the thread is counted for.
        """
        return await self._threads.run(key, work)

    async def write(self, key: str, work: Callable[[], T]) -> T:
        """Run blocking work that writes in a thread; see :meth:`run`."""
        async with self._writing.slot(key):
            return await self.run(key, work)

    def lane(self, request: Request, route: Route) -> AbstractAsyncContextManager[None]:
        """Return the slot that a route's work holds beside its thread: among the long ones, or among the writers."""
        key = authenticated(request).key
        if route.long:
            return self._long.slot(key)
        return self._writing.slot(key) if route.changes else nullcontext()

    async def carry_out(
        self, request: Request, route: Route, arguments: Mapping[str, Any], body: Callable[[], bytes]
    ) -> Response:
        """Carry out an operation and return its answer; a repeated request with an idempotency key gets the first answer."""
        share, key = authenticated(request).key, _key(request, route)
        digest = await self.run(share, lambda: _fingerprint(request, body())) if key else ""
        stored: list[str] = []
        audit_context = self._act(request, route, key, digest, stored)
        if key:
            before = await self.run(share, lambda: self._before(request, key, digest))
            if before is not None:
                return before

        def run_verb() -> tuple[Any, Response, bool]:
            """Run the verb in the caller's audit context; return the result, the response, and whether a ledger was missing."""
            replica = nullcontext() if route.changes else reads_from_replica()
            with use_audit_context(audit_context), replica, unreachable_ledgers() as missing:
                record = route.call(self._engine, arguments)
            # Encoded in the thread: a long page would hold up every other answer.
            answer = respond(request, route, record)
            if missing:
                answer.headers[HEADER] = ", ".join(sorted(missing))
            # Some operations complete their record after their change was stored.
            return record, answer, bool(stored) and stored[0].encode() != answer.body

        try:
            record, answer, is_completed = await (
                self._long.run_held(run_verb) if route.long else self.run(share, run_verb)
            )
        except Repeated:
            again = await self.run(share, lambda: self._before(request, key, digest))
            if again is None:
                raise
            return again
        if is_completed:
            await self.run(share, lambda: self._mend(request, route, key, record))
        return answer

    def _mend(self, request: Request, route: Route, key: str, record: object) -> None:
        """Replace the answer that was stored under an idempotency key by one with this record."""
        found = self._kept(request, key)
        if found is not None:
            token_id = authenticated(request).caller.token_id
            with found[0].database.write() as connection:
                idempotency.replace_body(connection, token_id, key, text_of(route, record))

    def _kept(self, request: Request, key: str) -> tuple[StoreContext, StoredResponse] | None:
        """Return the response that was stored under an idempotency key, with the ledger that has it; None if none was."""
        token_id = authenticated(request).caller.token_id

        def find_in_ledger(engine: Engine) -> tuple[StoreContext, StoredResponse] | None:
            """Return the response that this ledger has stored under the idempotency key."""
            found = engine.context.database.ask(lambda connection: idempotency.find(connection, token_id, key))
            return None if found is None else (engine.context, found)

        tenant_id = request.path_params.get("tenant_id")
        try:
            return self._engine.ask_each(find_in_ledger, tenant_id=tenant_id)
        except Unavailable as error:
            if tenant_id is not None or error.code != "ledger_unreachable":
                raise
            return None  # an operation that this ledger has carried out is refused itself

    def _act(self, request: Request, route: Route, key: str, digest: str, stored: list[str]) -> AuditContext:
        """Return the audit context of a request, with its conditions; ``stored`` receives the text that is kept for a repeated
        request."""
        caller, now_us = authenticated(request).caller, self._clock.now_us()
        expect = expectation(request) if route.changes else None
        if expect is not None and not route.declared.tagged:
            raise Refused(400, "header_invalid.if_match")

        def store_response(connection: Connection, record: object) -> None:
            """Store the response under the idempotency key, in the transaction of the change."""
            stored[:] = [text_of(route, record)]
            answer = StoredResponse(digest, route.status, stored[0], _headers(request, route, record))
            idempotency.store(connection, caller.token_id, caller.tenant_id, key, answer, now_us)

        actor = in_the_name_of(caller.called, _text_of(request, "lodger-acting-as"))
        vouches = None if caller.tenant_id is None else caller.name
        kept = store_response if key else None
        return AuditContext(actor, "http", why(request), None, request_id(request), expect, kept, vouches)

    def _before(self, request: Request, key: str, digest: str) -> Response | None:
        """Return the answer that was stored for an earlier request with this key; raises Refused if that request was a different one."""
        kept = self._kept(request, key)
        if kept is None:
            return None
        found = kept[1]
        if found.digest != digest:
            raise Refused(422, "idempotency_key_reused")
        return Response(found.body, found.status, {**found.headers, "Idempotent-Replayed": "true"}, "application/json")


def authenticated(request: Request) -> Authenticated:
    """Return the caller of a request; the authentication has put it there, or the request would not be here."""
    found: Authenticated = request.scope["state"]["authenticated"]
    return found


def request_id(request: Request) -> str:
    """Return the id of a request."""
    return str(request.scope["state"]["request_id"])


def require(request: Request, tenant_id: str | None, role: Role) -> Caller:
    """Return the caller if it may see this tenant and its role covers the needed one.

    Raises:
        Refused: tenant_unknown, word for word as for a tenant that does not exist; role_too_low.
    """
    caller = authenticated(request).caller
    if tenant_id is not None and not caller.sees(tenant_id):
        raise tenant_unknown(tenant_id)
    if not caller.role.covers(role):
        raise Refused(403, "role_too_low", role=caller.role.value, needed=role.value)
    return caller


def permission(role: Role, *, of_tenant: bool) -> Any:
    """Return the check of a route's role, made before anything of the request is read: a refused caller learns nothing of it."""

    async def require_role(request: Request) -> None:
        """Raise unless the caller has the role that the operation needs."""
        require(request, request.path_params["tenant_id"] if of_tenant else None, role)

    return Depends(require_role)


def tenant_unknown(tenant_id: str) -> Refused:
    """Return the engine's refusal of an unknown tenant."""
    return Refused(404, "tenant_unknown", tenant=tenant_id)


def why(request: Request) -> str | None:
    """Return the reason that a request states in Lodger-Why.

    Raises:
        Refused: header_invalid. InputError: why_invalid.
    """
    return naming.reason(_text_of(request, "lodger-why"))


def _text_of(request: Request, header: str) -> str | None:
    """Return the decoded text of a header, None without it; raises Refused (header_invalid)."""
    given = request.headers.get(header)
    if not given:
        return None
    if not WHY.fullmatch(given):
        raise Refused(400, "header_invalid.why", header=header)
    return unquote(given)


def _key(request: Request, route: Route) -> str:
    """Return the idempotency key of a request; empty without one, or if the route changes nothing. Raises Refused (header_invalid)."""
    keys = request.headers.getlist("idempotency-key")
    if not keys:
        return ""
    if len(keys) > 1 or not KEY.fullmatch(keys[0]):
        raise Refused(400, "header_invalid.idempotency_key")
    if not route.changes:
        return ""
    if route.declared.secret:
        raise Refused(422, "idempotency_refused")
    return keys[0]


def _fingerprint(request: Request, body: bytes) -> str:
    """Return a digest of everything that makes a request the same when it is repeated."""
    parts = [request.method, request.scope["path"], request.scope["query_string"].decode("latin-1")]
    parts += [request.headers.get("if-match", ""), hashlib.sha256(body).hexdigest()]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def text_of(route: Route, record: object) -> str:
    """Return the text of an answer, as ASCII: a script's result may hold half of a surrogate pair."""
    if route.kind == "nothing":
        return ""
    if isinstance(record, Page):
        return json.dumps({"items": to_jsonable(list(record)), "next": record.next})
    return json.dumps(to_jsonable(record))


def respond(request: Request, route: Route, record: object) -> Response:
    """Return the answer of a route; 304 if the client has the record already (If-None-Match)."""
    if route.kind == "nothing":
        return Response(status_code=route.status)
    if isinstance(record, bytes):
        return Response(record, route.status, media_type=route.media)
    headers = _headers(request, route, record)
    known = {part.strip().removeprefix("W/") for part in request.headers.get("if-none-match", "").split(",")}
    if route.method == "GET" and "ETag" in headers and known & {headers["ETag"], "*"}:
        return Response(status_code=304, headers=headers)
    return Response(text_of(route, record), route.status, headers, "application/json")


def _headers(request: Request, route: Route, record: object) -> dict[str, str]:
    """Return the headers of an answer with a record: ETag, and Location for a new one."""
    tag, place = etag(record), getattr(type(record), "LOCATION", None)
    headers = {} if tag is None else {"ETag": tag}
    if route.status == 201 and place is not None:
        path = re.sub(r"\{(\w+)\}", lambda name: quote(str(getattr(record, name[1])), safe=""), place)
        headers["Location"] = request.scope.get("root_path", "") + ROOT + path
    return headers


def etag(record: object) -> str | None:
    """Return the entity tag of a record, None if its type has none."""
    names = getattr(type(record), "ETAG", None)  # the fields that a change moves; its clock moves none of them
    if names is None:
        return None
    text = json.dumps([getattr(record, name) for name in names], sort_keys=True, default=str)
    return f'"{hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]}"'


def expectation(request: Request) -> Callable[[Any], None] | None:
    """Return the check of the stored record by If-Match and If-None-Match, or None without those headers.

    Raises:
        Refused: header_invalid.
    """
    match, none = request.headers.get("if-match"), request.headers.get("if-none-match")
    if match is None and none is None:
        return None
    if none is not None and none.strip() != "*":
        raise Refused(400, "header_invalid.if_none_match")
    wanted = None if match is None else {part.strip() for part in match.split(",")}

    def require_match(record: object) -> None:
        """Raise Stale unless the record is as If-Match or If-None-Match expects it."""
        if none is not None and record is not None:
            raise Stale("precondition_failed.exists")
        if wanted is not None and (record is None or ("*" not in wanted and etag(record) not in wanted)):
            raise Stale("precondition_failed.absent" if record is None else "precondition_failed")

    return require_match
