"""The route of URLs of scripts: their path carries the only credential, and a request is answered before its run starts."""

from typing import Annotated

from fastapi import Path
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lodger.engine.features.script_urls.script_urls import PATH
from lodger.engine.features.script_urls.url_requests import MAX_BODY, UrlRefused, UrlRequest, UrlRequests
from lodger.engine.server import app, auth
from lodger.engine.server.app import Api
from lodger.engine.server.auth import client
from lodger.engine.server.problems import Refused
from lodger.engine.server.rate_limits import RateLimit


def _add(api: Api) -> None:
    requests = UrlRequests(api.engine)
    limit = RateLimit(api.engine.context.settings.api_url_requests_per_minute)

    async def receive(request: Request, text: Annotated[str, Path(max_length=100)]) -> Response:
        """Request a run of a URL's script; answer with the id of its action."""
        address = client(request)
        try:
            # Threads of authentication, which senders of wrong URLs take from each other only.
            url = await api.lookups.run(address, lambda: requests.find(text))
            limit.require(url.id, "a URL's senders together")
            async with api.bodies.read(request, url.tenant_id, max_bytes=MAX_BODY) as body:
                headers = dict(reversed(request.headers.items()))  # of several, the first
                received = UrlRequest(request.method, request.url.query, headers, body)
                action_id = await api.calls.write(url.tenant_id, lambda: requests.receive(text, received))
        except UrlRefused as refused:
            if refused.status == 404:
                api.limits.failure(address)
            retry = {} if refused.retry_s is None else {"Retry-After": str(refused.retry_s)}
            raise Refused.with_texts_of(refused, refused.status, retry) from None
        return JSONResponse({"action_id": action_id}, 202)

    for method in ("POST", "GET"):
        api.framework.router.add_api_route(
            PATH + "{text}", receive, methods=[method], operation_id=f"url_{method.lower()}", include_in_schema=False
        )


auth.OPEN_PREFIXES.append(PATH)
app.ROUTES.append(_add)
