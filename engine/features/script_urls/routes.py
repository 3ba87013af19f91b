"""The route of URLs of scripts: their path carries the only credential, and a request is answered before its run starts."""

from typing import Annotated

from fastapi import Path
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lodger.engine.features.script_urls import answers
from lodger.engine.features.script_urls.script_urls import PATH, ScriptUrl
from lodger.engine.features.script_urls.url_requests import MAX_BODY, UrlRequest, UrlRequests, unknown
from lodger.engine.server import app, auth
from lodger.engine.server.app import Api
from lodger.engine.server.auth import client
from lodger.engine.server.problems import Refused
from lodger.engine.server.rate_limits import RateLimit
from lodger.engine.service.engine import Engine

#: Further headers of the answer to a preflight of a page of another origin.
_PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, POST", "Access-Control-Allow-Headers": "Content-Type, Idempotency-Key",
    "Access-Control-Max-Age": "600",
}  # fmt: skip


def _of_origin(request: Request, url: ScriptUrl) -> dict[str, str]:
    """Return the headers that let a page of the request's origin read the answer; none for other origins."""
    origin = request.headers.get("origin", "")
    if origin and ("*" in url.origins or origin.lower() in url.origins):
        return {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}
    return {}


def _add(api: Api) -> None:
    """Add the routes that receive requests to scripts' URLs."""
    engine = api.engine
    limit = RateLimit(api.engine.context.settings.api_url_requests_per_minute)

    def found(text: str) -> tuple[UrlRequests, ScriptUrl]:
        """Return the URL with a secret part, and the ledger of its tenant, which receives requests to it."""

        def find_in_ledger(each: Engine) -> tuple[UrlRequests, ScriptUrl] | None:
            """Return the URL of this secret text if the ledger has it."""
            requests = UrlRequests(each)
            url = requests.find(text)
            return None if url is None else (requests, url)

        there = engine.ask_each(find_in_ledger)
        if there is None:
            raise unknown()
        return there

    async def receive(request: Request, text: Annotated[str, Path(max_length=100)]) -> Response:
        """Request a run of a URL's script; answer with the id of its action, or with what the script answers."""
        address, headers = client(request), {}
        try:
            # Threads of authentication, which senders of wrong URLs take from each other only.
            requests, url = await api.lookups.run(address, lambda: found(text))
            headers = _of_origin(request, url)
            if request.method == "OPTIONS":
                return Response(status_code=204, headers=headers | _PREFLIGHT if headers else {})
            limit.require(url.id, "a URL's senders together")
            async with api.bodies.read(request, url.tenant_id, max_bytes=MAX_BODY) as body:
                given = dict(reversed(request.headers.items()))  # of several, the first
                received = UrlRequest(request.method, request.url.query, given, body)
                action_id = await api.calls.write(url.tenant_id, lambda: requests.receive(text, received))
            if url.answers:
                answer = await answers.wait(requests.engine, api.calls, url.tenant_id, action_id)
            else:
                answer = JSONResponse({"action_id": action_id}, 202)
        except Refused as refused:
            if refused.status == 404:
                api.limits.failure(address)
            refused.headers |= headers
            raise
        answer.headers.update(headers)
        return answer

    for method in ("POST", "GET", "OPTIONS"):
        api.framework.router.add_api_route(
            PATH + "{text}", receive, methods=[method], operation_id=f"url_{method.lower()}", include_in_schema=False
        )


auth.OPEN_PREFIXES.append(PATH)
app.ROUTES.append(_add)
