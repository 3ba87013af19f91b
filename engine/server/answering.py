"""A route that always answers: whatever is raised inside becomes a problem document, and nothing goes on to the server."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from lodger.engine.server.problems import document, not_valid, problem

_WORDS = {
    404: ("route_unknown", "there is no such route", "GET /api/v1/openapi.json lists them"),
    405: ("method_not_allowed", "this route has no such method", "Allow says which it has"),
}


class Answering(APIRoute):
    """The route class of every endpoint."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Give the framework's handler, with its errors caught."""
        inner = super().get_route_handler()

        async def handler(request: Request) -> Response:
            try:
                return await inner(request)
            except RequestValidationError as wrong:
                return problem(not_valid(list(wrong.errors()), "request"))
            except HTTPException:
                raise
            except Exception as error:  # noqa: BLE001 - the boundary: every fault is told in words
                return problem(error)

        return handler


async def of_framework(request: Request, error: Exception) -> Response:
    """Answer what the framework itself refuses: a path or a method that is not there."""
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 405:
        headers["Allow"] = ", ".join(sorted(_methods(request)))
    code, what, fix = _WORDS.get(error.status_code, ("request_refused", str(error.detail), ""))
    return document(error.status_code, {"code": code, "message": what, "fix": fix}, headers)


def _methods(request: Request) -> set[str]:
    """Every method of this path; the framework knows only those of the first route that has it."""
    found: set[str] = set()
    for route in request.app.routes:
        if isinstance(route, APIRoute) and route.path_regex.match(request.scope["path"]):
            found |= route.methods or set()
    return found
