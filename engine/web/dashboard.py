"""The dashboard's pages: each reads operations with the caller's role and renders a template."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from urllib.parse import quote

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lodger.engine.core.access.roles import Role
from lodger.engine.core.errors import NotFound
from lodger.engine.server.app import Api
from lodger.engine.server.auth import cookie_name
from lodger.engine.server.operation_call import authenticated, require
from lodger.engine.server.problems import problem
from lodger.engine.service.operations.table import ROUTES
from lodger.engine.store.tenants import sessions
from lodger.engine.web import rendering, sign_in

#: What pages may load: our own script and style, nothing inline, nothing from elsewhere.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
STATIC = {"dashboard.js": "text/javascript; charset=utf-8", "dashboard.css": "text/css; charset=utf-8"}
#: Entries of a list on one page; runs in a sparkline.
PAGE, RUNS = 50, 30
#: Seconds for which a page is reused for callers with the same rights: open pages refresh themselves.
FRESH_S = 1.0
MAX_CACHED = 200
Values = dict[str, Any]


class Dashboard:
    """The pages of one API. They are added to its application; every other path stays the API's.

    Args:
        api: its sessions, threads and rate limits serve the pages, too.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._cached: dict[tuple[str, ...], tuple[float, str]] = {}
        self._rendering: dict[tuple[str, ...], asyncio.Task[str]] = {}

    def add(self) -> None:
        """Add the routes."""
        router, public = self._api.framework.router, self._api.authentication.public
        for name, media in STATIC.items():
            public.add(f"/static/{name}")
            router.add_route(f"/static/{name}", _file(name, media), include_in_schema=False)
        public.add("/sign-in")
        router.add_route("/sign-in", self._sign_in, include_in_schema=False)
        self._api.authentication.sign_in = "/sign-in"
        pages: dict[str, Callable[[Request], Awaitable[tuple[str, Values]]]] = {
            "/": self._overview,
            "/tenants": self._tenants,
            "/schedules": self._schedules,
            "/actions": self._actions,
            "/audit": self._audit,
            "/t/{tenant}": self._overview,
            "/t/{tenant}/schedules": self._schedules,
            "/t/{tenant}/schedules/{schedule}": self._schedule,
            "/t/{tenant}/actions": self._actions,
            "/t/{tenant}/actions/{action}": self._action,
            "/t/{tenant}/scripts": self._scripts,
            "/t/{tenant}/scripts/{script}": self._script,
            "/t/{tenant}/audit": self._audit,
        }
        for path, page in pages.items():
            router.add_route(path, partial(self._answer, page=page), include_in_schema=False)

    async def _answer(self, request: Request, *, page: Callable[[Request], Awaitable[tuple[str, Values]]]) -> Response:
        """Render a page, or the error that it met."""
        caller = authenticated(request).caller
        key = (caller.tenant_id or "", caller.role.value, str(request.url.path), str(request.url.query))
        try:
            body = await self._rendered(key, request, page)
        except Exception as error:  # noqa: BLE001 - every error has a page
            answer = problem(error)
            shown = rendering.environment().get_template("error.html")
            body = shown.render(self._common(request), problem=json.loads(bytes(answer.body)))
            return _html(body, answer.status_code)
        return _html(body)

    async def _rendered(
        self, key: tuple[str, ...], request: Request, page: Callable[[Request], Awaitable[tuple[str, Values]]]
    ) -> str:
        """Return the page, rendered at most once a second for callers with the same rights, or anew after a change of their own."""
        anew = request.headers.get("cache-control") == "no-cache"
        kept, task = self._cached.get(key), self._rendering.get(key)
        if not anew and kept is not None and time.monotonic() - kept[0] < FRESH_S:
            return kept[1]
        if anew or task is None:
            task = self._rendering[key] = asyncio.ensure_future(self._render(key, request, page))
        return await asyncio.shield(task)

    async def _render(
        self, key: tuple[str, ...], request: Request, page: Callable[[Request], Awaitable[tuple[str, Values]]]
    ) -> str:
        begun = time.monotonic()
        try:
            name, values = await page(request)
            text = rendering.environment().get_template(name).render(self._common(request), **values)
        finally:
            if self._rendering.get(key) is asyncio.current_task():
                del self._rendering[key]
        if key not in self._cached or self._cached[key][0] < begun:
            while len(self._cached) >= MAX_CACHED:
                self._cached.pop(next(iter(self._cached)))
            self._cached[key] = begun, text
        return text

    def _common(self, request: Request) -> Values:
        caller = authenticated(request).caller
        tenant = request.path_params.get("tenant") or caller.tenant_id
        return {
            "platform": caller.tenant_id is None,
            "role": caller.role.value,
            "edits": caller.role.covers(Role.EDITOR),
            "tenant": tenant,
            "base": f"/t/{quote(tenant, safe='')}" if tenant else "",
            "path": request.url.path,
            "query": dict(request.query_params),
        }

    async def ask(self, request: Request, operation: str, /, **arguments: Any) -> Any:  # noqa: ANN401 - a result
        """Return the result of a reading operation, with the caller's role.

        Raises:
            Refused: tenant_unknown, role_too_low.
        """
        tenant = arguments.get("tenant_id")
        route = next(
            each
            for each in ROUTES
            if each.name == operation and not each.changes and each.of_tenant == (tenant is not None)
        )
        require(request, tenant, route.role)
        verb = partial(route.function, getattr(self._api.engine, route.noun), **arguments)
        return await self._api.calls.run(authenticated(request).key, verb)

    def _tenant(self, request: Request) -> Values:
        """Return the tenant of a path, of a tenant's caller, or None for all tenants."""
        return {"tenant_id": request.path_params.get("tenant") or authenticated(request).caller.tenant_id}

    async def _overview(self, request: Request) -> tuple[str, Values]:
        tenant = self._tenant(request)
        everywhere = tenant["tenant_id"] is None
        running = await self.ask(request, "actions.running", **tenant, limit=PAGE)
        overdue = await self.ask(request, "actions.overdue", **tenant, limit=PAGE)
        recent = await self.ask(request, "actions.list", **tenant, limit=200)
        ended = [each for each in recent if each.finished_at is not None]
        late = sorted(each for each in map(rendering.lateness, ended) if each is not None)
        outcomes: dict[str, int] = {}
        for each in ended:
            name = each.outcome.value if each.outcome else each.state
            outcomes[name] = outcomes.get(name, 0) + 1
        return "overview.html", {
            "running": running,
            "overdue": overdue,
            "failed": [each for each in ended if each.state == "failed"][:10],
            "outcomes": sorted(outcomes.items(), key=lambda pair: -pair[1]),
            "ended": len(ended),
            "late": {"p50": late[len(late) // 2], "p99": late[len(late) * 99 // 100]} if late else None,
            "lateness": [each for each in map(rendering.lateness, reversed(ended)) if each is not None],
            "nodes": await self.ask(request, "nodes.list", gone=False) if everywhere else None,
            "blocked": await self.ask(request, "metrics.blocked") if everywhere else None,
        }

    async def _tenants(self, request: Request) -> tuple[str, Values]:
        found = await self.ask(request, "tenants.list", limit=PAGE, cursor=request.query_params.get("cursor"))
        return "tenants.html", {"tenants": found}

    async def _schedules(self, request: Request) -> tuple[str, Values]:
        asked = _chosen(request.query_params, "state", "cursor")
        found = await self.ask(request, "schedules.list", **self._tenant(request), limit=PAGE, **asked)
        return "schedules.html", {"schedules": found}

    async def _schedule(self, request: Request) -> tuple[str, Values]:
        tenant, name = self._tenant(request), request.path_params["schedule"]
        schedule = await self.ask(request, "schedules.get", **tenant, schedule=name)
        runs = await self.ask(request, "actions.list", **tenant, schedule=schedule.id, limit=RUNS)
        durations = [each for each in map(rendering.took, reversed(runs)) if each is not None]
        slots: Any = None
        if schedule.state == "armed" and schedule.rules.rules:
            rules = schedule.rules
            with_rules = {"rules": list(rules.rules), "exclusions": list(rules.exclusions), "tz": schedule.tz}
            slots = await self._preview(request, with_rules)
        return "schedule.html", {
            "schedule": schedule,
            "runs": runs,
            "durations": durations,
            "preview": slots,
            "revisions": await self.ask(request, "schedules.revisions", **tenant, schedule=schedule.id, limit=10),
        }

    async def _preview(self, request: Request, rules: Values) -> Any:  # noqa: ANN401 - a preview or None
        try:
            return await self.ask(request, "schedules.preview", **rules, n=10)
        except Exception:  # noqa: BLE001 - a rule on changes has no preview
            return None

    async def _actions(self, request: Request) -> tuple[str, Values]:
        asked = _chosen(request.query_params, "schedule", "state", "outcome", "origin", "script", "cursor")
        found = await self.ask(request, "actions.list", **self._tenant(request), limit=PAGE, **asked)
        return "actions.html", {"actions": found, "asked": asked}

    async def _action(self, request: Request) -> tuple[str, Values]:
        tenant, action_id = self._tenant(request), request.path_params["action"]
        action = await self.ask(request, "actions.get", **tenant, action_id=action_id)
        source = None
        if action.error is not None and action.error.line is not None and action.script is not None:
            try:
                version = await self.ask(
                    request, "scripts.get", **tenant, name=action.script, version=action.script_version
                )
                source = version.modules.get(action.error.file or "main.js")
            except NotFound:
                source = None
        return "action.html", {
            "action": action,
            "attempts": await self.ask(request, "actions.attempts", **tenant, action_id=action.id),
            "logs": await self.ask(request, "actions.logs", **tenant, action_id=action.id),
            "deliveries": await self.ask(request, "actions.deliveries", **tenant, action_id=action.id),
            "compared": await self.ask(request, "actions.compared", **tenant, action_id=action.id),
            "source": source,
        }

    async def _scripts(self, request: Request) -> tuple[str, Values]:
        asked = _chosen(request.query_params, "cursor")
        found = await self.ask(request, "scripts.list", **self._tenant(request), limit=PAGE, **asked)
        return "scripts.html", {"scripts": found}

    async def _script(self, request: Request) -> tuple[str, Values]:
        tenant, name = self._tenant(request), request.path_params["script"]
        asked = request.query_params.get("version", "")
        version = await self.ask(
            request, "scripts.get", **tenant, name=name, version=int(asked) if asked.isdigit() else None
        )
        diff = None
        if version.version > 1 and not version.wasm_bytes:
            diff = await self.ask(
                request, "scripts.diff", **tenant, name=name, older=version.version - 1, newer=version.version
            )
        return "script.html", {
            "version": version,
            "versions": await self.ask(request, "scripts.versions", **tenant, name=name, limit=20),
            "diff": diff,
        }

    async def _audit(self, request: Request) -> tuple[str, Values]:
        asked = _chosen(request.query_params, "verb", "target", "actor", "cursor")
        found = await self.ask(request, "audit.list", **self._tenant(request), limit=PAGE, **asked)
        return "audit.html", {"entries": found}

    async def _sign_in(self, request: Request) -> Response:
        """Show the form for a token, or redeem a one-time link."""
        code = request.query_params.get("code")
        begun = None
        if code:
            begun = await self._api.calls.run("sign-in", partial(sign_in.redeem, self._api.engine.context, code))
        if begun is not None:
            answer: Response = RedirectResponse("/", 303)
            secure = request.url.scheme == "https"
            answer.set_cookie(
                cookie_name(secure), begun.text, max_age=sessions.LIFE_US // 1_000_000, path="/", secure=secure,
                httponly=True, samesite="strict",
            )  # fmt: skip
            return answer
        body = rendering.environment().get_template("sign_in.html").render(refused=bool(code))
        return _html(body, 401 if code else 200)


def _chosen(params: QueryParams, *names: str) -> Values:
    """Return the given query parameters that are not empty."""
    return {name: params[name] for name in names if params.get(name)}


def _html(body: str, status: int = 200) -> Response:
    headers = {"content-security-policy": POLICY, "referrer-policy": "same-origin"}
    return Response(body, status, headers, "text/html; charset=utf-8")


def _file(name: str, media: str) -> Callable[[Request], Awaitable[Response]]:
    async def file(request: Request) -> Response:
        del request
        return Response(rendering.static(name), media_type=media, headers={"cache-control": "no-cache"})

    return file
