"""Carries out one verb for one request: as its caller, in a thread, remembered under its idempotency key."""

import hashlib
import json
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, TypeVar
from urllib.parse import unquote

from fastapi import Depends
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from lodger.engine.core.access.audit_context import Act, in_act
from lodger.engine.server import etags
from lodger.engine.server.envelope import request_id
from lodger.engine.server.gate import Asker
from lodger.engine.server.problems import Refused
from lodger.engine.server.turns import Turns, whose
from lodger.engine.store.platform import idempotency
from lodger.engine.core.access import names
from lodger.engine.store.platform.idempotency import Answer, Repeated
from lodger.engine.store.context import Books
from lodger.engine.store.records import Page
from lodger.engine.core.access.roles import Caller, Role
from lodger.engine.service.operations.route import Route
from lodger.engine.core.serialization import shaped

T = TypeVar("T")
KEY = re.compile(r"[A-Za-z0-9._:-]{1,200}", re.ASCII)
#: A reason in a header: plain letters, and everything else percent-encoded.
WHY = re.compile(r"[A-Za-z0-9 _.:,;!?()'/+=@#%-]*", re.ASCII)


class Calls:
    """Verbs for requests. ``turns`` bounds how many run at once, ``writing`` how many of those may wait for the writer, ``long`` how many
    of those run that take seconds.
    """

    def __init__(self, books: Books, turns: Turns, writing: Turns, long: Turns) -> None:
        self._books = books
        self._turns = turns
        self._writing = writing
        self._long = long

    async def run(self, work: Callable[[], T]) -> T:
        """Do blocking work in a thread, in the present context, when it is the asker's turn."""
        return await self._turns.run(work)

    def lane(self, route: Route) -> AbstractAsyncContextManager[None]:
        """Give what holds a turn among those like it, where a route's work waits for others: while it waits for that turn, it holds no
        thread.
        """
        if route.long:
            return self._long.turn(whose.get())
        return self._writing.turn(whose.get()) if route.changes else nullcontext()

    async def carry_out(
        self, request: Request, route: Route, verb: Callable[[], Any], body: Callable[[], bytes]
    ) -> Response:
        """Carry out a verb and give its answer; a repeated request with an idempotency key gets the first one's."""
        key = _key(request, route)
        digest = await self.run(lambda: _fingerprint(request, body())) if key else ""
        act = self._act(request, route, key, digest)
        if key:
            before = await self.run(lambda: self._before(request, key, digest))
            if before is not None:
                return before

        def work() -> tuple[Any, Response]:
            with in_act(act):
                record = verb()
            # Written here, in the thread: a long page would hold up every other answer.
            return record, respond(route, record)

        try:
            record, answer = await (self._long.thread(work) if route.long else self.run(work))
        except Repeated:
            again = await self.run(lambda: self._before(request, key, digest))
            if again is None:
                raise
            return again
        if key:
            await self.run(lambda: self._mend(request, route, key, record))
        return answer

    def _mend(self, request: Request, route: Route, key: str, record: object) -> None:
        """Remember the answer itself, where a verb found it only after its change was stored."""
        text, token_id = text_of(route, record), asker(request).caller.token_id
        with self._books.database.read() as connection:
            kept = idempotency.find(connection, token_id, key)
        if kept is not None and kept.body != text:
            with self._books.database.write() as connection:
                idempotency.mend(connection, token_id, key, text)

    def _act(self, request: Request, route: Route, key: str, digest: str) -> Act:
        caller, now_us = asker(request).caller, self._books.clock.now_us()
        expect = etags.expectation(request) if route.changes else None
        if expect is not None and not route.tagged:
            raise Refused(400, "header_invalid", "what this route answers has no ETag", fix="leave If-Match out")

        def remember(connection: Connection, record: object) -> None:
            answer = Answer(digest, route.status, text_of(route, record))
            idempotency.keep(connection, caller.token_id, caller.tenant_id, key, answer, now_us)

        return Act(caller.called, "http", why(request), request_id(request.scope), expect, remember if key else None)  # type: ignore[arg-type]  # a scope is a mapping

    def _before(self, request: Request, key: str, digest: str) -> Response | None:
        with self._books.database.read() as connection:
            found = idempotency.find(connection, asker(request).caller.token_id, key)
        if found is None:
            return None
        if found.digest != digest:
            raise Refused(
                422,
                "idempotency_key_reused",
                "this Idempotency-Key came with another request before",
                why="a key stands for one request: its method, path and body",
                fix="make a new key for every request",
            )
        return Response(found.body, found.status, {"Idempotent-Replayed": "true"}, "application/json")


def asker(request: Request) -> Asker:
    """Give who asks; the gate has put it there, or nobody would be here."""
    found: Asker = request.scope["state"]["asker"]
    return found


def demand(request: Request, tenant_id: str | None, role: Role) -> Caller:
    """Let a caller pass who may see this tenant and may do what needs the role.

    Raises:
        Refused: tenant_unknown, in the very words of a tenant that is not there; role_too_low.
    """
    caller = asker(request).caller
    if tenant_id is not None and not caller.sees(tenant_id):
        raise tenant_unknown(tenant_id)
    if not caller.role.covers(role):
        raise Refused(
            403,
            "role_too_low",
            f"the role {caller.role.value} may not do this",
            why=f"it needs the role {role.value}",
            fix="use a token with that role",
        )
    return caller


def permission(role: Role, *, of_tenant: bool) -> Any:  # noqa: ANN401 - what the framework calls a dependency
    """Give what lets a caller pass before anything of the request is looked at: who may not learns nothing of its mistakes."""

    async def check(request: Request) -> None:
        demand(request, request.path_params["tenant_id"] if of_tenant else None, role)

    return Depends(check)


def tenant_unknown(tenant_id: str) -> Refused:
    """Say that there is no such tenant, as the engine says it."""
    return Refused(404, "tenant_unknown", f"there is no tenant {tenant_id!r}", fix="create it first")


def why(request: Request) -> str | None:
    """Give the reason that a request states in Lodger-Why.

    Raises:
        Refused: header_invalid. InputError: why_invalid.
    """
    given = request.headers.get("lodger-why")
    if not given:
        return None
    if not WHY.fullmatch(given):
        raise Refused(
            400,
            "header_invalid",
            "this Lodger-Why is not one",
            fix="percent-encode what is no letter, digit or -_.:,;!?()'/+=@#",
        )
    return names.reason(unquote(given))


def _key(request: Request, route: Route) -> str:
    keys = request.headers.getlist("idempotency-key")
    if not keys:
        return ""
    if len(keys) > 1 or not KEY.fullmatch(keys[0]):
        raise Refused(
            400, "header_invalid", "an Idempotency-Key has 1 to 200 letters, digits or ._:-", fix="use a UUID, once"
        )
    if not route.changes:
        return ""
    if route.secret:
        raise Refused(
            422,
            "idempotency_refused",
            "this route's request or answer holds a secret, of which nothing is kept",
            fix="ask without Idempotency-Key",
        )
    return keys[0]


def _fingerprint(request: Request, body: bytes) -> str:
    said = [request.method, request.scope["path"], request.scope["query_string"].decode("latin-1")]
    said += [request.headers.get("if-match", ""), hashlib.sha256(body).hexdigest()]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def text_of(route: Route, record: object) -> str:
    """Give the text of an answer. Escapes, not letters: a script's result may hold half of a surrogate pair."""
    if route.kind == "nothing":
        return ""
    if isinstance(record, Page):
        return json.dumps({"items": shaped(list(record)), "next": record.next})
    return json.dumps(shaped(record))


def respond(route: Route, record: object) -> Response:
    """Give the answer of a route."""
    if route.kind == "nothing":
        return Response(status_code=route.status)
    if isinstance(record, bytes):
        return Response(record, route.status, media_type=route.media)
    tag = etags.of(record)
    return Response(text_of(route, record), route.status, {"ETag": tag} if tag else {}, "application/json")
