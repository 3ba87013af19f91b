"""What a page is made from: operations asked with the caller's role, and the request's tenant and query."""

import re
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

from starlette.requests import Request

from lodger.engine.core.access.roles import Caller
from lodger.engine.core.clock import from_us
from lodger.engine.core.errors import NotFound, Unavailable
from lodger.engine.core.partial_answers import unreachable_ledgers
from lodger.engine.server.app import Api
from lodger.engine.server.operation_call import authenticated, require
from lodger.engine.service.operations.table import OperationTable
from lodger.engine.store.connection.database import read_together, reads_from_replica

#: Entries of a list on one page.
PAGE = 50
#: A path of this host: no other host after two slashes or a backslash, and nothing that a header or a browser reads differently.
PATH = re.compile(r"/(?!/)[!-\[\]-~]{0,2000}", re.ASCII)
Values = dict[str, Any]
T = TypeVar("T")


def root_of(request: Request) -> str:
    """Return the path at which the application is mounted; empty at the host's root."""
    return str(request.scope.get("root_path", ""))


def own_path(request: Request, place: str) -> str:
    """Return the path and query of an address of this dashboard; its root for any other."""
    root, host = root_of(request), re.escape(request.headers.get("host", ""))
    wanted = re.sub(rf"^https?://{host}(?=/)", "", place).partition("#")[0]
    return wanted if PATH.fullmatch(wanted) and wanted.startswith(root + "/") else root + "/"


def page_after(request: Request) -> str:
    """Return the page of the dashboard that a request names with ``next``, but for the page to sign in; else the root."""
    wanted = own_path(request, request.query_params.get("next", ""))
    return root_of(request) + "/" if wanted.startswith(root_of(request) + "/sign-in") else wanted


class Reader:
    """Reads for one request for a page.

    Attributes:
        request: the request.
        tenant: the argument ``tenant_id`` of operations: the tenant of the path or of a tenant's caller; None for all tenants.
    """

    def __init__(self, api: Api, request: Request) -> None:
        self._api = api
        self.request = request
        self.tenant: Values = {"tenant_id": request.path_params.get("tenant") or self.caller.tenant_id}

    async def run(self, page: "Callable[[Reader], T]") -> T:
        """Run a page in one of the API's threads; all that it reads is of one snapshot of its ledger."""

        def run_page() -> T:
            """Make the page from one snapshot, perhaps of a replica."""
            with reads_from_replica(), self._api.engine.snapshot(self.tenant["tenant_id"]):
                return page(self)

        return await self._api.calls.run(authenticated(self.request).key, run_page)

    @property
    def caller(self) -> Caller:
        """The caller, with its role."""
        return authenticated(self.request).caller

    @property
    def now(self) -> datetime:
        """The engine's present time."""
        return from_us(self._api.engine.context.clock.now_us())

    @property
    def root(self) -> str:
        """The path at which the application is mounted; empty at the host's root."""
        return root_of(self.request)

    @property
    def base(self) -> str:
        """The path of the pages of the tenant, or of all tenants."""
        tenant = self.tenant["tenant_id"]
        return self.root if tenant is None else f"{self.root}/t/{quote(tenant, safe='')}"

    @property
    def refused(self) -> Unavailable | None:
        """The error by which writes to the ledger are refused now: the disk is full, or the database read-only."""
        database = self._api.engine.context.database
        return database.refused if database.refused is not None and self._api.engine.unready() else None

    @property
    def table(self) -> OperationTable:
        """The declared operations."""
        return self._api.engine.table

    def chosen(self, *names: str) -> Values:
        """Return the given query parameters that are not empty."""
        return {name: self.request.query_params[name] for name in names if self.request.query_params.get(name)}

    def ask(self, operation: str, /, **arguments: Any) -> Any:
        """Return the result of a reading operation, with the caller's role.

        Raises:
            Refused: tenant_unknown, role_too_low.
        """
        tenant = arguments.get("tenant_id")
        routes = [each for each in self._api.engine.table.routes if each.name == operation and not each.changes]
        route = next((each for each in routes if each.of_tenant == (tenant is not None)), routes[0])
        require(self.request, tenant, route.role)
        with unreachable_ledgers() as missing:
            found = route.call(self._api.engine, ({"tenant_id": None} if route.everywhere else {}) | arguments)
        self.request.scope["state"].setdefault("unreachable", set()).update(missing)
        return found

    def together(self, *asked: tuple[str, Values] | Callable[[], Any]) -> list[Any]:
        """Return the results of operations and functions that do not need each other's: a server is asked for all at once."""
        return read_together(*(each if callable(each) else partial(self.ask, each[0], **each[1]) for each in asked))

    def find(self, operation: str, /, **arguments: Any) -> Any:
        """Return what :meth:`ask` returns; None for what does not exist."""
        try:
            return self.ask(operation, **arguments)
        except NotFound:
            return None
