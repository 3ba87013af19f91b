"""A link that signs in once, and the addresses of this dashboard that a request names."""

import re

from starlette.requests import Request

from lodger.engine.service.engine import Engine
from lodger.engine.web.page import root_of

#: A path of this host: no other host after two slashes or a backslash, and nothing that a header or a browser reads differently.
PATH = re.compile(r"/(?!/)[!-\[\]-~]{0,2000}", re.ASCII)


def link(engine: Engine) -> str | None:
    """Return the path of a one-time link for the oldest valid administrator's token; None if there is none."""
    code = engine.tokens.sign_in_code()
    return None if code is None else f"/sign-in?code={code}"


def own_path(request: Request, place: str) -> str:
    """Return the path and query of an address of this dashboard; its root for any other."""
    root, host = root_of(request), re.escape(request.headers.get("host", ""))
    wanted = re.sub(rf"^https?://{host}(?=/)", "", place).partition("#")[0]
    return wanted if PATH.fullmatch(wanted) and wanted.startswith(root + "/") else root + "/"


def page_after(request: Request) -> str:
    """Return the page of the dashboard that a request names with ``next``, but for the page to sign in; else the root."""
    wanted = own_path(request, request.query_params.get("next", ""))
    return root_of(request) + "/" if wanted.startswith(root_of(request) + "/sign-in") else wanted
