"""The client for asyncio: :class:`lodger.engine.Engine`'s verbs, asked of a server."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from typing import Any, Self, TypeVar

import httpx2

from lodger.engine.client import requests
from lodger.engine.client.requests import Answer, Conversation, Lines, Request
from lodger.engine.core.partial_answers import HEADER, note_unreachable
from lodger.engine.features import Nouns
from lodger.engine.service.operations import proxy
from lodger.engine.service.operations.declaration import Async
from lodger.engine.service.operations.route import Operation
from lodger.engine.store.records import Action
from lodger.sandbox.job import LogLine

T = TypeVar("T")


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
        proxy.bind_operations(self, self._call, awaited=True)

    async def close(self) -> None:
        """Close the connections; safe to call twice."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def me(self) -> dict[str, Any]:
        """Return the token's name, role and tenant."""
        return await self._converse(requests.me(self.url))

    def live(self, tenant_id: str, action_id: str | None = None) -> AsyncGenerator[Action | LogLine]:
        """Yield what happens as it does; see :meth:`lodger.engine.client.blocking.Client.live`."""
        return self._lines(requests.LiveLines(self.url, tenant_id, action_id))

    def _call(self, operation: Operation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call an operation of the server."""
        if operation.declared.streams:
            return self._lines(requests.ExportedLines(self.url, **requests.arguments_of(operation, args, kwargs)))
        return self._converse(requests.call(self.url, operation, args, kwargs))

    async def _converse(self, conversation: Conversation[T]) -> T:
        """Send the requests of a conversation until it has a result."""
        said: Answer | httpx2.TransportError | None = None
        try:
            while True:
                step = conversation.send(said)
                said = await self._answer(step) if isinstance(step, Request) else None
                if isinstance(step, float):
                    await asyncio.sleep(step)
        except StopIteration as end:
            result: T = end.value
            return result

    async def _answer(self, sent: Request) -> Answer | httpx2.TransportError:
        """Send one request; return its response, or the failure to reach the server."""
        try:
            async with self._http.stream(
                sent.method, self.url + sent.path, params=sent.query, headers=sent.headers, content=sent.content
            ) as answer:
                body = bytearray()
                async for part in answer.aiter_bytes():
                    requests.add_part(body, part)
        except httpx2.TransportError as error:
            return error
        note_unreachable(*filter(None, answer.headers.get(HEADER, "").split(", ")))
        return Answer(answer.status_code, bytes(body), answer.headers.get("retry-after"))

    async def _lines(self, lines: Lines[T]) -> AsyncGenerator[T]:
        """Yield the values of a streamed response; a broken live stream is resumed."""
        patience = httpx2.Timeout(lines.silence_s, connect=requests.CONNECT_S)
        said: Answer | httpx2.TransportError
        while True:
            sent = lines.sent
            try:
                async with self._http.stream(
                    "GET", self.url + sent.path, params=sent.query, headers=sent.headers, timeout=patience
                ) as answer:
                    if answer.is_success:
                        async for line in answer.aiter_lines():
                            found = lines.read(line)
                            if found is not None:
                                yield found
                        return
                    said = Answer(answer.status_code, await answer.aread(), answer.headers.get("retry-after"))
            except httpx2.TransportError as error:
                said = error
            await asyncio.sleep(lines.pause(said))
