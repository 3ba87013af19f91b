"""The client for asyncio: :class:`lodger.engine.Engine`'s verbs, asked of a server."""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from datetime import datetime
from types import TracebackType
from typing import Any, Self, cast

import httpx2

from lodger.engine.client import requests
from lodger.engine.client.requests import Request
from lodger.engine.core.serialization import from_jsonable
from lodger.engine.features import Nouns
from lodger.engine.service.operations import proxy
from lodger.engine.service.operations.declaration import Async
from lodger.engine.service.operations.table import Operation
from lodger.engine.store.records import Action, AuditEntry, Page
from lodger.sandbox.job import LogLine


class AsyncClient(Nouns[Async]):
    """A server, with the engine's own verbs. ``async with AsyncClient(url, token) as client``.

    Arguments and errors are those of :class:`lodger.engine.client.Client`.
    """

    def __init__(
        self, url: str | None = None, token: str | None = None, *, verify: ssl.SSLContext | bool = True
    ) -> None:
        self.url, headers = requests.connection(url, token)
        timeout = httpx2.Timeout(requests.ANSWER_S, connect=requests.CONNECT_S)
        self._http = httpx2.AsyncClient(headers=headers, timeout=timeout, trust_env=False, verify=verify)
        proxy.bind_operations(self, self._call)

    async def close(self) -> None:
        """Close the connections; safe to call twice."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def me(self) -> dict[str, Any]:
        """Return the token's name, role and tenant."""
        try:
            answer = await self._http.get(self.url + "/api/v1/me")
        except httpx2.TransportError as error:
            raise requests.unreachable(self.url, error) from error
        if not answer.is_success:
            raise requests.error_of(answer.status_code, answer.content)
        return cast("dict[str, Any]", answer.json())

    def _call(self, operation: Operation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if operation.declared.streams:
            return self._export(**requests.arguments_of(operation, args, kwargs))
        return self._answer(operation, args, kwargs)

    async def _answer(self, operation: Operation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        sent = requests.build(operation, args, kwargs)
        if sent.route.kind != "page":
            return requests.result_of(sent.route, await self._ask(sent))
        return await self._pages(sent, requests.page_limit(operation, requests.arguments_of(operation, args, kwargs)))

    async def live(self, tenant_id: str, action_id: str | None = None) -> AsyncGenerator[Action | LogLine]:
        """Yield what happens as it does; see :meth:`lodger.engine.client.blocking.Client.live`."""
        reading, patience = requests.EventReader(), httpx2.Timeout(requests.SILENCE_S, connect=requests.CONNECT_S)
        try:
            async with self._http.stream(
                "GET", self.url + requests.live_path(tenant_id, action_id), timeout=patience
            ) as answer:
                if not answer.is_success:
                    raise requests.error_of(answer.status_code, await answer.aread())
                async for line in answer.aiter_lines():
                    found = reading.read(line)
                    if found is not None:
                        yield found
        except httpx2.TransportError as error:
            raise requests.unreachable(self.url, error) from error

    async def _pages(self, sent: Request, wanted: int | None) -> Page[Any]:
        found: Page[Any] = Page()
        cursor = sent.query.get("cursor")
        while wanted is None or len(found) < wanted:
            left = sent.route.max_page if wanted is None else min(sent.route.max_page, wanted - len(found))
            one = requests.next_page(sent, str(cursor), left) if cursor else requests.first_page(sent, left)
            page = requests.result_of(sent.route, await self._ask(one))
            found.extend(page)
            found.next = cursor = page.next
            if cursor is None:
                break
        return found

    async def _ask(self, sent: Request) -> bytes:
        tried = 0
        while True:
            try:
                async with self._http.stream(
                    sent.route.method,
                    self.url + sent.path,
                    params=sent.query,
                    headers=sent.headers,
                    content=sent.content,
                ) as answer:
                    body = requests.Body()
                    async for part in answer.aiter_bytes():
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
            await asyncio.sleep(pause)

    async def _export(
        self, tenant_id: str | None = None, *, since: datetime | None = None, until: datetime | None = None
    ) -> AsyncIterator[AuditEntry]:
        path, query = requests.export_path(tenant_id, since, until)
        try:
            async with self._http.stream("GET", self.url + path, params=query) as answer:
                if not answer.is_success:
                    raise requests.error_of(answer.status_code, await answer.aread())
                async for line in answer.aiter_lines():
                    if line:
                        yield from_jsonable(AuditEntry, json.loads(line))
        except httpx2.TransportError as error:
            raise requests.unreachable(self.url, error) from error
