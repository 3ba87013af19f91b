"""The client for scripts, Flask and Django: :class:`lodger.engine.sync.Engine`'s verbs, asked of a server."""

import json
import ssl
import time
from collections.abc import Generator
from datetime import datetime
from types import TracebackType
from typing import Any, Self, cast

import httpx2

from lodger.engine.client import requests
from lodger.engine.client.requests import Request
from lodger.engine.core.serialization import from_jsonable
from lodger.engine.features import Nouns
from lodger.engine.service.operations import proxy
from lodger.engine.service.operations.declaration import Sync
from lodger.engine.service.operations.table import Operation
from lodger.engine.store.records import Action, AuditEntry, Page
from lodger.sandbox.job import LogLine


class Client(Nouns[Sync]):
    """A server, with the engine's own verbs. It may be used from several threads; close it, or use it as a block.

    Args:
        url: of the server, such as ``http://127.0.0.1:8750``; else ``LODGER_SERVER``.
        token: else ``LODGER_TOKEN``.
        verify: what certificates are trusted; the system's unless told.

    Raises:
        InputError: server_missing, server_invalid, token_missing.
    """

    def __init__(
        self, url: str | None = None, token: str | None = None, *, verify: ssl.SSLContext | bool = True
    ) -> None:
        self.url, headers = requests.connection(url, token)
        timeout = httpx2.Timeout(requests.ANSWER_S, connect=requests.CONNECT_S)
        self._http = httpx2.Client(headers=headers, timeout=timeout, trust_env=False, verify=verify)
        proxy.bind_operations(self, self._call)

    def close(self) -> None:
        """Close the connections; safe to call twice."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def me(self) -> dict[str, Any]:
        """Return the token's name, role and tenant."""
        return cast("dict[str, Any]", self._http_json("/api/v1/me"))

    def live(self, tenant_id: str, action_id: str | None = None) -> Generator[Action | LogLine]:
        """Yield each of a tenant's actions as it is created or changes; or one action with its log lines, until it has ended.

        Raises:
            NotFound: tenant_unknown, action_unknown. Unavailable: server_unreachable, when the stream breaks.
        """
        reading, patience = requests.EventReader(), httpx2.Timeout(requests.SILENCE_S, connect=requests.CONNECT_S)
        try:
            with self._http.stream(
                "GET", self.url + requests.live_path(tenant_id, action_id), timeout=patience
            ) as answer:
                if not answer.is_success:
                    raise requests.error_of(answer.status_code, answer.read())
                for line in answer.iter_lines():
                    found = reading.read(line)
                    if found is not None:
                        yield found
        except httpx2.TransportError as error:
            raise requests.unreachable(self.url, error) from error

    def _call(self, operation: Operation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if operation.declared.streams:
            return self._export(**requests.arguments_of(operation, args, kwargs))
        sent = requests.build(operation, args, kwargs)
        if sent.route.kind != "page":
            return requests.result_of(sent.route, self._ask(sent))
        return self._pages(sent, requests.page_limit(operation, requests.arguments_of(operation, args, kwargs)))

    def _pages(self, sent: Request, wanted: int | None) -> Page[Any]:
        """Return so many entries, or all, in as many requests as the server's pages need."""
        found: Page[Any] = Page()
        cursor = sent.query.get("cursor")
        while wanted is None or len(found) < wanted:
            left = sent.route.max_page if wanted is None else min(sent.route.max_page, wanted - len(found))
            one = requests.next_page(sent, str(cursor), left) if cursor else requests.first_page(sent, left)
            page = requests.result_of(sent.route, self._ask(one))
            found.extend(page)
            found.next = cursor = page.next
            if cursor is None:
                break
        return found

    def _ask(self, sent: Request) -> bytes:
        tried = 0
        while True:
            try:
                with self._http.stream(
                    sent.route.method,
                    self.url + sent.path,
                    params=sent.query,
                    headers=sent.headers,
                    content=sent.content,
                ) as answer:
                    body = requests.Body()
                    for part in answer.iter_bytes():
                        body.add(part)
            except httpx2.TransportError as error:
                left = not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
                pause = requests.pause_after_failure(sent, tried, self.url, error, left=left)
            else:
                if answer.is_success:
                    return body.whole()
                again = answer.headers.get("retry-after")
                pause = requests.pause_after_answer(sent, tried, answer.status_code, body.whole(), again)
            tried += 1
            time.sleep(pause)

    def _http_json(self, path: str) -> Any:
        try:
            answer = self._http.get(self.url + path)
        except httpx2.TransportError as error:
            raise requests.unreachable(self.url, error) from error
        if not answer.is_success:
            raise requests.error_of(answer.status_code, answer.content)
        return answer.json()

    def _export(
        self, tenant_id: str | None = None, *, since: datetime | None = None, until: datetime | None = None
    ) -> Generator[AuditEntry]:
        """Yield every change, oldest first, as the server sends them."""
        path, query = requests.export_path(tenant_id, since, until)
        try:
            with self._http.stream("GET", self.url + path, params=query) as answer:
                if not answer.is_success:
                    raise requests.error_of(answer.status_code, answer.read())
                for line in answer.iter_lines():
                    if line:
                        yield from_jsonable(AuditEntry, json.loads(line))
        except httpx2.TransportError as error:
            raise requests.unreachable(self.url, error) from error
