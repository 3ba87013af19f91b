"""Forms of pages: what is typed is read as the API takes it, and the API is asked for it.

A page's script sends a form with the session's token and gets the answer; without JavaScript a page asks first whether to go on.
"""

import json
import re
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, unquote, urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from lodger.engine.core.access.names import is_segment
from lodger.engine.core.errors import InputError, NotFound
from lodger.engine.server.auth import client, session_of
from lodger.engine.server.operation_call import authenticated
from lodger.engine.server.problems import Refused, problem
from lodger.engine.service.operations.route import ROOT, Route
from lodger.engine.store.tenants import sessions
from lodger.engine.web import rule_form
from lodger.engine.web.page import own_path, page_after, root_of
from lodger.engine.web.pages import operations
from lodger.sandbox import prescan

if TYPE_CHECKING:
    from lodger.engine.web.dashboard import Dashboard

#: Parts of pages that show what an operation answers, by its name.
PARTS = {
    "actions.backfill": "backfill.html", "actions.backfill_preview": "backfill.html", "schedules.preview": "slots.html",
    "actions.bulk": "bulk.html", "schedules.bulk": "bulk.html",
    "schedules.what_if": "what_if.html", "scripts.check": "checked.html", "scripts.dry_run": "dry_run.html",
}  # fmt: skip
#: Most fields of a form: a script has at most 500 files, each a field, and a tenant some fifty limits.
MAX_FIELDS = 600
#: What the names of the fields of a script's modules begin with.
MODULE = "module:"
_OF_THE_FORM = {b"content-type", b"content-length", b"accept"}
_OF_THE_ROUTE = {"route", "endpoint", "path_params", "app_root_path"}
_PLACE = re.compile(r"{(\w+)}")
_WORDS = re.compile(r"[\s,]+")
Values = dict[str, Any]


async def call(pages: "Dashboard", request: Request) -> Response:
    """Answer the form of a change: ask whether to make it, or make it if the asking page or a script has sent it."""
    found, by_script = authenticated(request), is_by_script(request)
    boundary = re.match('multipart/form-data;.*boundary="?([^";]+)', request.headers.get("content-type", ""))
    async with pages.api.bodies.read(request, found.key, upload=boundary is not None) as sent:
        try:
            parts = {} if boundary is None else _parts(sent, boundary[1])
            file = parts.pop("file", b"")
            typed = parse_qsl("" if boundary else sent.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS)
            pairs = [*typed, *((name, part.decode()) for name, part in parts.items())]
            rules, builder = rule_form.typed(pairs) or ({}, None)
        except ValueError:
            raise Refused(415, "media_type") from None
    fields = {name: text.replace("\r\n", "\n") for name, text in pairs if not name.startswith(rule_form.PREFIX)}
    modules = {name.removeprefix(MODULE): fields.pop(name) for name in list(fields) if name.startswith(MODULE)}
    fields |= {"source": json.dumps(modules)} if modules else {}
    fields |= {name: each if isinstance(each, str) else json.dumps(each) for name, each in rules.items()}
    route = None
    try:
        method, _space, path = _filled(request.query_params.get("to", ""), fields).partition(" ")
        changing = (each for each in pages.api.engine.table.routes if each.method != "GET")
        route = next((each for each in changing if _is(each, method, path)), None)
        if route is None:
            raise NotFound("operation_unknown", name=f"{method} {path}"[:200])
        if found.by != "session" and not by_script:
            raise Refused(403, "csrf_missing")
        if "_csrf" not in fields and not by_script:
            question = _PLACE.sub(lambda name: fields.get(name[1], name[0]), request.query_params.get("confirm", ""))
            own = await _asking(pages, request, fields)
            kept = [each for each in pairs if each[0] not in own and not (route.raw and each[0] == "file")]
            asks = {"question": question, "pairs": [*kept, *own.items()], "back": own["_back"]}
            return pages.shown(request, "call.html", route=route, **asks)
        given = _body(route, fields, request.query_params.get("nest"), _given(request)) if route.at("body") else None
        body = None if given is None else json.dumps(given).encode()
        if route.declared.secret:
            fields.pop("_key", None)  # answers with secrets are not kept
        query = urlencode({each.name: text for each in route.at("query") if (text := fields.get(each.name))})
        answer = await sent_to_api(
            pages, request, method, path, file if route.raw else body, fields, query, route.media
        )
    except InputError as error:
        answer = problem(error, request.scope)
    if route is None or answer.status_code >= 400:
        wrong = json.loads(bytes(answer.body))
        wrong |= (builder and rule_form.place(wrong, rules, builder["step"])) or {"place": place(wrong, fields)}
        headers = {name: text for name, text in answer.headers.items() if name != "content-length"}
        answer = Response(json.dumps(wrong), answer.status_code, headers)
        return pages.problem_page(request, answer, [each for each in pairs if each[0] not in {"_csrf", "_key"}])
    pages.changes += route.changes
    value = json.loads(bytes(answer.body) or b"null")
    named = {f"answer.{name}": each for name, each in value.items()} if isinstance(value, dict) else {}
    asked = request.query_params.get("then")
    once = next((named[each] for each in operations.shown_once(route) if named.get(each)), None)
    # Of an operation's own form the answer is what was wanted.
    part = "once.html" if once else PARTS.get(route.name) or ("answer.html" if asked == "" else "")
    shown: Values = {"fields": fields, "answer": value, "once": once}
    if by_script:
        html = pages.rendered(request, part, builder=builder, **shown) if part and value is not None else None
        then = asked and own_path(request, _filled(asked, fields | named))
        return JSONResponse({"html": html, "then": then, "changes": route.changes, "next": named.get("answer.next")})
    if once or (part and value is not None and not asked):
        return pages.shown(request, "call.html", route=route, question="", part=part, builder=None, **shown)
    return RedirectResponse(
        own_path(request, _filled(asked, fields | named) if asked else fields.get("_back", "")), 303
    )


def _parts(body: bytes, boundary: str) -> dict[str, bytes]:
    """Return the fields of a form with a file, which no parser of a library reads from bytes that are bounded before."""
    found: dict[str, bytes] = {}
    for part in (b"\r\n" + body).split(b"\r\n--" + boundary.encode(), MAX_FIELDS)[1:]:
        head, _empty, content = part.partition(b"\r\n\r\n")
        if name := re.search(rb'; name="([^"]*)"', head):
            found[name[1].decode()] = content
    return found


def place(wrong: Values, fields: Mapping[str, str]) -> str | None:
    """Return the name of the field that a problem is about: by the path that it gives, its code, the text that it repeats, or its
    sentence; None if it is about none, or about what has changed meanwhile."""
    typed = {name: text for name, text in fields.items() if not name.startswith("_")}
    code, said, status = wrong["code"], wrong["detail"], wrong["status"]
    if status not in {400, 404, 409, 422} or code == "changed_meanwhile":
        return None
    paths = [part for each in wrong.get("errors", ()) for part in reversed(each["at"].split("/"))]
    words = [f"{each}{plural}" for each in reversed(code.split("_")) for plural in ("", "s")]
    repeated = [
        name
        for name, text in typed.items()
        if any(repr(each) in said for each in (text, *_WORDS.split(text[:2000])) if each)
    ]
    named = [name for name in typed if status in {400, 422} and re.search(rf"\b{re.escape(name)}\b", said)]
    return next((name for name in (*paths, *words, *repeated, *named) if name in typed), None)


def is_by_script(request: Request) -> bool:
    """Whether a page's script sends a form, with a header that no form has."""
    return "x-csrf-token" in request.headers


async def _asking(pages: "Dashboard", request: Request, fields: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of the page that asks whether to go on: the session's token, where to return, and a key by which two clicks
    are one request."""
    back = own_path(request, fields.get("_back") or request.headers.get("referer", ""))
    return {"_csrf": await _csrf(pages, request), "_back": back, "_key": secrets.token_hex(16)}


async def _csrf(pages: "Dashboard", request: Request) -> str:
    """Return the token of a browser's session."""
    text, caller = session_of(request) or "", authenticated(request).caller
    return await pages.api.authentication.in_ledger_of(
        caller, client(request), lambda connection: sessions.csrf(connection, text)
    )


async def signed_out(pages: "Dashboard", request: Request) -> Response:
    """End a browser's session, and lead to the page to sign in, or to the provider's that signs out there."""
    fields = {"_csrf": await _csrf(pages, request)}
    answer = await sent_to_api(pages, request, "DELETE", "/session", None, fields)
    if answer.status_code >= 400:
        return pages.problem_page(request, answer)
    # A page, because a form's answer may lead to no other site.
    left = pages.shown(request, "signed_in.html", next=answer.headers.get("location", f"{root_of(request)}/sign-in"))
    left.headers["set-cookie"] = answer.headers["set-cookie"]
    return left


async def signed_in(pages: "Dashboard", request: Request) -> Response:
    """Begin a session with the token of a form, and lead to the page that was asked for."""
    async with pages.api.bodies.read(request, client(request)) as sent:
        token = dict(parse_qsl(sent.decode("ascii", "replace"), max_num_fields=MAX_FIELDS)).get("token", "")
    answer = await sent_to_api(pages, request, "POST", "/session", json.dumps({"token": token.strip()}).encode(), {})
    if answer.status_code == 401:
        return pages.ask_to_sign_in(request, json.loads(bytes(answer.body))["detail"])
    if answer.status_code >= 400:
        return pages.problem_page(request, answer)
    cookies = {"set-cookie": answer.headers["set-cookie"]}
    return RedirectResponse(page_after(request), 303, cookies)


def _given(request: Request) -> Values:
    """Return the JSON body that the button of a form sends.

    Raises:
        InputError: json_invalid.field.
    """
    found = _value("body", "json", request.query_params.get("body") or "{}")
    return found if isinstance(found, dict) else {}


def _is(route: Route, method: str, path: str) -> bool:
    """Whether a method and a path are those of a route."""
    return route.method == method and re.fullmatch(re.sub(r"{\w+}", "[^/]+", route.path), path) is not None


def _filled(text: str, fields: Mapping[str, Any]) -> str:
    """Return a path with the fields that it names in braces.

    Raises:
        InputError: name_invalid.segment.
    """

    def quoted_field(found: re.Match[str]) -> str:
        """Return the form's field of a name in braces, as a segment of a path."""
        given = str(fields.get(found[1], ""))
        # A server reads others as other paths, which may be other operations.
        if not is_segment(given):
            raise InputError("name_invalid.segment", thing=found[1], name=given)
        return quote(given, safe="")

    return re.sub(r"{([\w.]+)}", quoted_field, text)


def _body(route: Route, fields: Mapping[str, str], nest: str | None, given: Values) -> Values:
    """Return the JSON body that the API takes: empty fields are left out, of a form with former values unchanged ones, too.

    Args:
        nest: the field of the body that is an object of all fields.
        given: body of the request, as a button states it.

    Raises:
        InputError: json_invalid.field.
    """
    if nest:
        return {
            nest: {
                name: _value(name, "number", text) for name, text in fields.items() if text and not name.startswith("_")
            }
        }
    was: Values | None = json.loads(fields["_was"]) if "_was" in fields else None
    body: Values = dict(given)
    for parameter in route.at("body"):
        name = parameter.key
        text, kind = fields.get(name), operations.kind_of(parameter)[0]
        if text == "" and was is None and kind == "words" and parameter.needed:
            body[name] = []
        elif text is not None and text != ("" if was is None else was.get(name, "")):
            body[name] = None if text == "" else _value(name, kind, text)
    return body


def _value(name: str, kind: str, text: str) -> Any:
    """Return what is typed into a field as the value that the API takes.

    Raises:
        InputError: json_invalid.field.
    """
    if kind == "mixed" and text.lstrip()[:1] not in {"[", "{"}:
        lines = [each for each in text.split("\n") if each.strip()]
        return lines if len(lines) > 1 else text.strip()
    if kind in {"json", "mixed", "number"} or (kind == "source" and text.lstrip().startswith("{")):
        try:
            return prescan.decode(text)
        except ValueError as wrong:
            if kind == "source":
                return text
            raise InputError("json_invalid.field", name=name, reason=wrong.__cause__ or wrong) from None
    if kind == "boolean":
        return text in {"true", "on"}
    if kind == "words":
        return [each for each in _WORDS.split(text) if each]
    return f"{text}Z" if kind == "instant" and "Z" not in text.upper() else text


async def sent_to_api(
    pages: "Dashboard",
    request: Request,
    method: str,
    path: str,
    body: bytes | None,
    fields: Mapping[str, str],
    query: str = "",
    media: str = "application/json",
) -> Response:
    """Return the API's answer to a request of this browser, with the token and the key among a form's fields."""
    encoded, started, found = body or b"", dict[str, Any](), list[bytes]()
    kept = [each for each in request.scope["headers"] if each[0] not in _OF_THE_FORM]
    own = {"content-type": media, "content-length": str(len(encoded)), "x-csrf-token": fields.get("_csrf")}
    own |= {"idempotency-key": fields.get("_key"), "if-match": fields.get("_match")}
    scope = {name: value for name, value in request.scope.items() if name not in _OF_THE_ROUTE} | {
        "method": method, "path": root_of(request) + unquote(ROOT + path), "raw_path": (root_of(request) + ROOT + path).encode(),
        "query_string": query.encode(), "headers": kept + [(name.encode(), value.encode()) for name, value in own.items() if value],
        "state": {"request_id": request.scope["state"]["request_id"]},
    }  # fmt: skip
    parts = [encoded]

    async def receive() -> Any:
        """Pass the request's body to the API, as ASGI asks for it."""
        return {"type": "http.request", "body": parts.pop()} if parts else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        """Keep the parts of the API's response, as ASGI sends them."""
        started.update(message if message["type"] == "http.response.start" else {})
        found.append(message.get("body", b""))

    await pages.api.authentication(scope, receive, send)
    headers = {name.decode(): value.decode() for name, value in started["headers"] if name != b"content-length"}
    return Response(b"".join(found), started["status"], headers)
