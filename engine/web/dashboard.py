"""The dashboard: its routes, rendering each page once for callers with the same rights, and signing in."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from urllib.parse import quote

from sqlalchemy import Connection
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lodger.engine.core.access.roles import Caller, Role
from lodger.engine.core.partial_answers import HEADER
from lodger.engine.server.app import Api
from lodger.engine.server.auth import is_page, keep_session
from lodger.engine.server.operation_call import authenticated, request_id
from lodger.engine.server.problems import problem, routing_error
from lodger.engine.server.sessions import begin_session
from lodger.engine.service.engine import Engine
from lodger.engine.store.tenants import sessions
from lodger.engine.store.tenants.sessions import NewSession
from lodger.engine.web import forms, listing, rendering
from lodger.engine.web.page import Reader, Values, page_after, root_of
from lodger.engine.web.pages import actions, find, operations, overview, schedules, scripts, tenants
from lodger.engine.web.texts import LANGUAGE, _, preferred
from lodger.stdlib import declarations

#: What pages may load: our own script and style, nothing inline, nothing from elsewhere.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_SCRIPT, _STYLE = "text/javascript; charset=utf-8", "text/css; charset=utf-8"
STATIC = {
    "dashboard.js": _SCRIPT, "morph.js": _SCRIPT, "theme.js": _SCRIPT,
    "codemirror.js": _SCRIPT, "types.js": _SCRIPT, "editor.js": _SCRIPT, "dashboard.css": _STYLE,
    "favicon.svg": "image/svg+xml", declarations.FILE: "text/plain; charset=utf-8", **dict.fromkeys(rendering.CATALOGUES, _SCRIPT),
}  # fmt: skip
#: Seconds for which a page is reused for callers with the same rights: open pages refresh themselves.
FRESH_S = 1.0
MAX_CACHED = 200
Page = Callable[[Reader], tuple[str, Values]]

#: Pages of all tenants by path, each with one of the same for a tenant; wings add theirs.
PAGES: dict[str, Page] = {
    "": overview.overview,
    "/schedules": schedules.schedules,
    "/actions": actions.actions,
    "/scripts": scripts.scripts,
    "/audit": tenants.audit,
    "/find": find.find,
    "/operations": operations.operations,
    "/operations/{operation}": operations.operation,
}
#: Pages of the platform alone, and of a tenant alone.
OTHERS: dict[str, Page] = {
    "/tenants": tenants.tenants,
    "/t/{tenant}/new-schedule": schedules.new,
    "/t/{tenant}/schedules/{schedule}": schedules.schedule,
    "/t/{tenant}/actions/{action}": actions.action,
    "/t/{tenant}/new-script": scripts.new,
    "/t/{tenant}/scripts/{script}": scripts.script,
    "/t/{tenant}/settings": tenants.settings,
}
#: Links to pages of wings in the navigation: path below the tenant or the root, and title.
LINKS: list[tuple[str, str]] = []
#: Called with each dashboard; wings add public pages and ways to sign in.
EXTENSIONS: "list[Callable[[Dashboard], None]]" = []


class Dashboard:
    """The pages of one API. They are added to its application; every other path stays the API's.

    Args:
        api: its authentication, threads and rate limits serve the pages, too.
        sign_in: URL of the platform's own sign-in page, to which browsers are sent that its authentication does not know.

    Attributes:
        changes: number of changes by forms; a page that was rendered before one is not shown after it.
        sign_ins: ways to sign in beside a token: each returns the path of its start and its title, for the page that follows; or None.
    """

    def __init__(self, api: Api, *, sign_in: str | None = None) -> None:
        self._api = self.api = api
        self.changes = 0
        self.sign_ins: list[Callable[[str], tuple[str, str] | None]] = []
        framed = api.engine.context.settings.frame_ancestors
        self._policy = POLICY.replace("frame-ancestors 'none'", f"frame-ancestors {framed}") if framed else POLICY
        self._sign_in_url = sign_in
        #: When the latest rendering of a page began, and its task.
        self._rendering: dict[tuple[str, ...], tuple[float, asyncio.Task[str]]] = {}

    def add(self) -> None:
        """Add the routes of all pages."""
        self._api.engine.load_wings("pages")
        router = self._api.framework.router
        for name, media in STATIC.items():
            if rendering.present(name):
                self._let_in(f"/static/{name}")
                router.add_route(f"/static/{name}", _file(name, media), include_in_schema=False)
        if self._api.authentication.by_platform is None:
            self.add_public("/sign-in", self._sign_in)
            self._let_in("/sign-in", "POST")
            router.add_route(
                "/sign-in", self._guarded(partial(forms.signed_in, self)), methods=["POST"], include_in_schema=False
            )
            self._api.authentication.sign_in = _sign_in_page
        elif (url := self._sign_in_url) is not None:
            self._api.authentication.sign_in = lambda _request: url
        for extend in EXTENSIONS:
            extend(self)
        self._api.authentication.error_page = self.problem_page
        for path, form in (("/call", forms.call), ("/sign-out", forms.signed_out)):
            self._api.authentication.asking.add(("POST", path))
            router.add_route(path, self._guarded(partial(form, self)), methods=["POST"], include_in_schema=False)
        self._api.framework.add_exception_handler(HTTPException, self._unrouted)
        of_tenant = {f"/t/{{tenant}}{path}": page for path, page in PAGES.items()}
        for path, page in (PAGES | of_tenant | OTHERS).items():
            router.add_route(path or "/", self._guarded(partial(self._answer, page=page)), include_in_schema=False)

    def add_public(self, path: str, endpoint: Callable[[Request], Awaitable[Response]]) -> None:
        """Add a page that needs no authentication. What it raises is answered with the page of the error."""
        self._let_in(path)
        self._api.framework.router.add_route(path, self._guarded(endpoint), include_in_schema=False)

    def _let_in(self, path: str, *methods: str) -> None:
        """Let requests to a path need no authentication, by these methods; without any, those that read."""
        self._api.authentication.public.update((each, path) for each in methods or ("GET", "HEAD"))

    def _guarded(self, endpoint: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        """Return an endpoint whose errors are answered with their page."""

        async def answer_guarded(request: Request) -> Response:
            """Answer a request; errors become pages."""
            self._speak(request)
            try:
                return await endpoint(request)
            except Exception as error:  # noqa: BLE001 - every error has a page
                return self.error_page(request, error)

        return answer_guarded

    def shown(self, request: Request, template: str, **values: object) -> Response:
        """Return a page that is rendered for this request only, and not kept."""
        return self._html(self.rendered(request, template, **values))

    def rendered(self, request: Request, template: str, **values: object) -> str:
        """Return a page, or a part of one, that is rendered for this request only."""
        self._speak(request)
        return rendering.environment().get_template(template).render(self._common(request), **values)

    def _speak(self, request: Request) -> None:
        """Set the language of what is rendered next: the brand's, else the one that the request prefers."""
        brand = self._api.engine.of_surfaces.get("branding")
        LANGUAGE.set((brand and brand.language) or preferred(request.headers.get("accept-language", "")))

    def error_page(self, request: Request, error: Exception) -> Response:
        """Return the page of an error."""
        return self.problem_page(request, problem(error, request.scope))

    async def _answer(self, request: Request, *, page: Page) -> Response:
        """Answer a request with a page, or with the file of its list."""
        form = request.query_params.get("format")
        if form in listing.FORMS:
            file = await Reader(self._api, request).run(lambda reader: listing.exported(reader, page(reader)[1], form))
            if missing := request.scope["state"].get("unreachable"):
                file.headers[HEADER] = ", ".join(sorted(missing))
            return file
        caller = authenticated(request).caller
        of_caller = (caller.tenant_id or "", caller.role.value, str(self.changes))
        key = (*of_caller, str(request.url.path), str(request.url.query), LANGUAGE.get())
        return self._html(await self._rendered(key, request, page))

    def problem_page(self, request: Request, answer: Response, typed: Sequence[tuple[str, str]] = ()) -> Response:
        """Return the page for a problem document, with the id by which the log names the request, and what was typed, to be corrected;
        to a page's script the document."""
        if forms.is_by_script(request):
            return answer
        wrong = json.loads(bytes(answer.body))
        if wrong["status"] in {400, 404, 409, 412, 422} and request.method == "GET":
            typed = request.query_params.multi_items()
            wrong["place"] = forms.place(wrong, dict(typed))
        values = {"problem": wrong, "request_id": request_id(request), "typed": typed}
        kept = {name: value for name, value in answer.headers.items() if name in {"retry-after", "allow"}}
        return self._html(self.rendered(request, "error.html", **values), answer.status_code, kept)

    async def _unrouted(self, request: Request, error: Exception) -> Response:
        """Answer a path without a route."""
        answer = await routing_error(request, error)
        return self.problem_page(request, answer) if is_page(request) else answer

    async def _rendered(self, key: tuple[str, ...], request: Request, page: Page) -> str:
        """Return the page, rendered at most once a second for callers with the same rights, or anew after a change of their own."""
        # A form says what has changed against the values that it was given.
        anew = page is operations.operation or request.headers.get("cache-control") == "no-cache"
        begun, task = self._rendering.get(key, (0.0, None))
        stale = task is not None and task.done() and (task.exception() or time.monotonic() - begun >= FRESH_S)
        if task is None or anew or stale:
            task = asyncio.ensure_future(self._render(request, page))
            self._rendering.pop(key, None)
            self._rendering[key] = time.monotonic(), task
            if len(self._rendering) > MAX_CACHED:
                self._rendering.pop(next(iter(self._rendering)))
        return await asyncio.shield(task)

    async def _render(self, request: Request, page: Page) -> str:
        """Return the HTML of a page."""
        name, values = await Reader(self._api, request).run(page)
        return rendering.environment().get_template(name).render(self._common(request), **values)

    def _may(self, role: Role, operation: str, tenant: str | None) -> bool:
        """Whether a role covers an operation on a page of a tenant, or of all tenants."""
        found = self._api.engine.table.routes_of(operation)
        return role.covers(next((each for each in found if each.of_tenant == (tenant is not None)), found[0]).role)

    def _common(self, request: Request) -> Values:
        """Return the values that every page has."""
        # There is none on a page about an error in the authentication.
        found = request.scope.get("state", {}).get("authenticated")
        caller, root = (None if found is None else found.caller), root_of(request)
        tenant = request.path_params.get("tenant") or (caller and caller.tenant_id)
        return {
            "signed_in": caller is not None,
            "platform": caller is not None and caller.tenant_id is None,
            "role": caller.role.value if caller else "",
            "edits": caller is not None and caller.role.covers(Role.EDITOR),
            "operates": caller is not None and caller.role.covers(Role.OPERATOR),
            "administers": caller is not None and caller.role.covers(Role.ADMIN),
            "may": lambda operation: caller is not None and self._may(caller.role, operation, tenant),
            "signs_out": caller is not None and self._api.authentication.by_platform is None,
            "tenant": tenant,
            "brand": (brand := self._api.engine.of_surfaces.get("branding")),
            "product": brand.name if brand else "Lodger",
            "root": root,
            "base": f"{root}/t/{quote(tenant, safe='')}" if tenant else root,
            "path": request.url.path,
            "method": request.method,
            "links": LINKS,
            "unreachable": sorted(request.scope.get("state", {}).get("unreachable", ())),
            "query": dict(request.query_params),
        }

    async def begin(
        self,
        request: Request,
        find: Callable[[Connection], Caller | None],
        by: str,
        *,
        next_page: str,
        of: Caller | None = None,
        life_us: int = sessions.LIFE_US,
        id_token: str | None = None,
    ) -> Response | None:
        """Begin a session of the browser in place of the one that it has, and lead to a page; None if there is no caller.

        After a link on another site a page leads on, because browsers send no strict cookie with a redirect that another site has begun.

        Args:
            find: returns the caller, in the transaction in which the session begins.
            by: how the browser signs in, for the audit log.
            of: the caller if it is known before: its session lives in the ledger of its tenant. Otherwise each ledger is asked for it.
            life_us, id_token: see :func:`lodger.engine.store.tenants.sessions.begin`.
        """
        engine = self._api.engine

        def begin_session_in(ledger: Engine) -> NewSession | None:
            """Begin the session in this ledger if it knows the caller."""
            with ledger.context.database.write() as connection:
                caller = find(connection)
                if caller is None:
                    return None
                more = {"life_us": life_us, "id_token": id_token}
                return begin_session(ledger.context, connection, request, caller, by, **more)

        begun = await self._api.calls.run(
            "sign-in",
            lambda: engine.ask_each(begin_session_in) if of is None else begin_session_in(engine.at(of.tenant_id)),
        )
        if begun is None:
            return None
        if request.headers.get("sec-fetch-site") in {"none", "same-origin"}:
            answer: Response = RedirectResponse(next_page, 303)
        else:
            answer = self.shown(request, "signed_in.html", next=next_page)
        keep_session(answer, request, begun.text, life_us, self._api.engine.context.settings)
        return answer

    async def _sign_in(self, request: Request) -> Response:
        """Show the ways to sign in, or redeem a one-time link."""
        code, why = request.query_params.get("code"), ""
        if code:

            def redeem_code(connection: Connection) -> Caller | None:
                """Return the caller of the sign-in link's code, which holds once."""
                return sessions.redeem_code(connection, code, self._api.engine.context.clock.now_us())

            answer = await self.begin(request, redeem_code, "sign-in link", next_page=page_after(request))
            if answer is not None:
                return answer
            why = _("This sign-in link was used already or is too old. Ask for a new one, or use a token.")
        return self.ask_to_sign_in(request, why)

    def ask_to_sign_in(self, request: Request, why: str) -> Response:
        """Return the page to sign in, with the reason why signing in was refused."""
        next_page = page_after(request)
        ways = [found for way in self.sign_ins if (found := way(next_page)) is not None]
        return self._html(self.rendered(request, "sign_in.html", refused=why, ways=ways), 401 if why else 200)

    def _html(self, body: str, status: int = 200, more: Mapping[str, str] | None = None) -> Response:
        """Return a response with HTML and its security headers."""
        headers = {"content-security-policy": self._policy, "referrer-policy": "same-origin", "vary": "accept-language"}
        return Response(body, status, headers | dict(more or {}), "text/html; charset=utf-8")


def _sign_in_page(request: Request) -> str:
    """Return the page to sign in, which leads back to the one that was asked for."""
    root, query = root_of(request), request.scope["query_string"].decode("latin-1")
    wanted = request.scope["raw_path"].decode("latin-1") + (f"?{query}" if query else "")
    return f"{root}/sign-in" + (
        "" if wanted == f"{root}/" or request.method != "GET" else f"?next={quote(wanted, safe='/')}"
    )


def _file(name: str, media: str) -> Callable[[Request], Awaitable[Response]]:
    """Return the function that answers requests for a static file."""

    async def answer_file(request: Request) -> Response:
        """Answer with the file, packed where the browser takes that."""
        tag = rendering.digest(name)
        kept = "public, max-age=31536000, immutable" if request.url.query == tag else "no-cache"
        headers = {"cache-control": kept, "etag": f'"{tag}"', "vary": "accept-encoding"}
        # A proxy that packs the file itself makes the tag weak.
        if f'"{tag}"' in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(rendering.static(name), media_type=media, headers=headers)
        return Response(rendering.zipped(name), media_type=media, headers=headers | {"content-encoding": "gzip"})

    return answer_file
