"""The client for asyncio: :class:`lodger.engine.Engine`'s verbs, asked of a server."""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self, cast

import httpx2

from lodger.engine.client import asking, events, place
from lodger.engine.client.asking import Asked
from lodger.engine.core.serialization import unshaped
from lodger.engine.service.async_nouns import (
    Actions,
    Audit,
    Collections,
    Grants,
    Locks,
    Metrics,
    Nodes,
    Schedules,
    Scripts,
    Secrets,
    Tenants,
    Tokens,
    Webhooks,
)
from lodger.engine.store.records import Action, AuditEntry, Json, Page
from lodger.sandbox.job import LogLine


class AsyncClient:
    """A server, with the engine's own verbs. ``async with AsyncClient(url, token) as client``.

    Arguments and errors are those of :class:`lodger.engine.client.Client`.
    """

    def __init__(
        self, url: str | None = None, token: str | None = None, *, verify: ssl.SSLContext | bool = True
    ) -> None:
        self.url, headers = place.found(url, token)
        timeout = httpx2.Timeout(place.ANSWER_S, connect=place.CONNECT_S)
        self._http = httpx2.AsyncClient(headers=headers, timeout=timeout, trust_env=False, verify=verify)
        self.tenants = Tenants("tenants", self)
        self.grants = Grants("grants", self)
        self.collections = Collections("collections", self)
        self.secrets = Secrets("secrets", self)
        self.webhooks = Webhooks("webhooks", self)
        self.scripts = Scripts("scripts", self)
        self.schedules = Schedules("schedules", self)
        self.actions = Actions("actions", self)
        self.tokens = Tokens("tokens", self)
        self.audit = Audit("audit", self)
        self.nodes = Nodes("nodes", self)
        self.locks = Locks("locks", self)
        self.metrics = Metrics("metrics", self)

    async def close(self) -> None:
        """Let go of the connections; safe to call twice."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def me(self) -> dict[str, Any]:
        """Say whose token this is and what it may."""
        try:
            answer = await self._http.get(self.url + "/api/v1/me")
        except httpx2.TransportError as error:
            raise asking.unreachable(self.url, error) from error
        if not answer.is_success:
            raise asking.error_of(answer.status_code, answer.content)
        return cast("dict[str, Any]", answer.json())

    async def run_at(
        self, tenant_id: str, script: str, at: datetime, params: Json = None, request_key: str | None = None
    ) -> Action:
        """Run a script once at an instant; see :meth:`lodger.engine.service.nouns.actions.Actions.run_at`."""
        return await self.actions.run_at(tenant_id, script, at, params, request_key)

    async def run_in(
        self,
        tenant_id: str,
        script: str,
        delay: float | str | timedelta,
        params: Json = None,
        request_key: str | None = None,
    ) -> Action:
        """Run a script once after a delay; see :meth:`lodger.engine.service.nouns.actions.Actions.run_in`."""
        return await self.actions.run_in(tenant_id, script, delay, params, request_key)

    async def carry(
        self, noun: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:  # noqa: ANN401 - what the verb gives
        """Ask one verb of the server. Satisfies :class:`lodger.engine.service.async_nouns.Carrier`."""
        sent = asking.asked(noun, function, args, kwargs)
        if sent.route.kind != "page":
            return asking.value_of(sent.route, await self._ask(sent))
        return await self._pages(sent, asking.whole(sent, asking.arguments_of(function, args, kwargs), function))

    async def live(self, tenant_id: str, action_id: str | None = None) -> AsyncGenerator[Action | LogLine]:
        """Give what happens as it does; see :meth:`lodger.engine.client.blocking.Client.live`."""
        reading, patience = events.Events(), httpx2.Timeout(events.SILENCE_S, connect=place.CONNECT_S)
        try:
            async with self._http.stream(
                "GET", self.url + events.path(tenant_id, action_id), timeout=patience
            ) as answer:
                if not answer.is_success:
                    raise asking.error_of(answer.status_code, await answer.aread())
                async for line in answer.aiter_lines():
                    found = reading.read(line)
                    if found is not None:
                        yield found
        except httpx2.TransportError as error:
            raise asking.unreachable(self.url, error) from error

    async def _pages(self, sent: Asked, wanted: int | None) -> Page[Any]:
        found: Page[Any] = Page()
        cursor = sent.query.get("cursor")
        while wanted is None or len(found) < wanted:
            left = sent.route.most if wanted is None else min(sent.route.most, wanted - len(found))
            one = asking.more(sent, str(cursor), left) if cursor else asking.first(sent, left)
            page = asking.value_of(sent.route, await self._ask(one))
            found.extend(page)
            found.next = cursor = page.next
            if cursor is None:
                break
        return found

    async def _ask(self, sent: Asked) -> bytes:
        tried = 0
        while True:
            try:
                answer = await self._http.request(
                    sent.route.method,
                    self.url + sent.path,
                    params=sent.query,
                    headers=sent.headers,
                    content=sent.content,
                )
            except httpx2.TransportError as error:
                left = not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
                pause = asking.after_failure(sent, tried, self.url, error, left=left)
            else:
                if answer.is_success:
                    return answer.content
                again = answer.headers.get("retry-after")
                pause = asking.after_answer(sent, tried, answer.status_code, answer.content, again)
            tried += 1
            await asyncio.sleep(pause)

    async def stream(
        self, noun: str, function: Callable[..., Generator[Any]], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> AsyncIterator[Any]:
        """Ask for what comes bit by bit: the audit log's lines."""
        said = asking.arguments_of(function, args, kwargs)
        path, query = asking.export(said.get("tenant_id"), said.get("since"), said.get("until"))
        try:
            async with self._http.stream("GET", self.url + path, params=query) as answer:
                if not answer.is_success:
                    raise asking.error_of(answer.status_code, await answer.aread())
                async for line in answer.aiter_lines():
                    if line:
                        yield unshaped(AuditEntry, json.loads(line))
        except httpx2.TransportError as error:
            raise asking.unreachable(self.url, error) from error
