"""The route of URLs of scripts: their path carries the only credential, and a request is answered before its run starts."""

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lodger.engine.server.auth import client
from lodger.engine.server.bodies import Bodies
from lodger.engine.server.operation_call import Calls
from lodger.engine.server.problems import Refused
from lodger.engine.server.rate_limits import RateLimits, Threads
from lodger.engine.service.engine import Engine
from lodger.engine.service.url_requests import MAX_BODY, UrlRefused, UrlRequest, UrlRequests
from lodger.engine.store.scripts.script_urls import PATH


def add(router: APIRouter, engine: Engine, calls: Calls, bodies: Bodies, lookups: Threads, limits: RateLimits) -> None:
    """Add the route. ``lookups`` are the threads of authentication, which senders of wrong URLs take from each other only."""
    requests = UrlRequests(engine)

    async def receive(request: Request, text: Annotated[str, Path(max_length=100)]) -> Response:
        """Request a run of a URL's script; answer with the id of its action."""
        address = client(request)
        try:
            url = await lookups.run(address, lambda: requests.find(text))
            limits.url(url.id)
            async with bodies.read(request, url.tenant_id, max_bytes=MAX_BODY) as body:
                headers = dict(reversed(request.headers.items()))  # of several, the first
                received = UrlRequest(request.method, request.url.query, headers, body)
                action_id = await calls.write(url.tenant_id, lambda: requests.receive(text, received))
        except UrlRefused as refused:
            if refused.status == 404:
                limits.failure(address)
            retry = {} if refused.retry_s is None else {"Retry-After": str(refused.retry_s)}
            raise Refused.with_texts_of(refused, refused.status, retry) from None
        return JSONResponse({"action_id": action_id}, 202)

    for method in ("POST", "GET"):
        router.add_api_route(
            PATH + "{text}", receive, methods=[method], operation_id=f"url_{method.lower()}", include_in_schema=False
        )
