"""The client for scripts, Flask and Django: :class:`lodger.engine.sync.Engine`'s verbs, asked of a server."""

import ssl
import time
from collections.abc import Generator
from typing import Any, Self, TypeVar

import httpx2

from lodger.engine.client import requests
from lodger.engine.client.requests import Answer, Conversation, Lines, Request
from lodger.engine.core.partial_answers import HEADER, note_unreachable
from lodger.engine.features import Nouns
from lodger.engine.service.operations import proxy
from lodger.engine.service.operations.declaration import Sync
from lodger.engine.service.operations.route import Operation
from lodger.engine.store.records import Action
from lodger.sandbox.job import LogLine

T = TypeVar("T")


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

    def __exit__(self, *_error: object) -> None:
        self.close()

    def me(self) -> dict[str, Any]:
        """Return the token's name, role and tenant."""
        return self._converse(requests.me(self.url))

    def live(self, tenant_id: str, action_id: str | None = None) -> Generator[Action | LogLine]:
        """Yield each of a tenant's actions as it is created or changes; or one action with its log lines, until it has ended.

        A stream that breaks is continued after its last event.

        Raises:
            NotFound: tenant_unknown, action_unknown. Unavailable: server_unreachable, when the stream cannot be continued.
        """
        return self._lines(requests.LiveLines(self.url, tenant_id, action_id))

    def _call(self, operation: Operation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call an operation of the server."""
        if operation.declared.streams:
            return self._lines(requests.ExportedLines(self.url, **requests.arguments_of(operation, args, kwargs)))
        return self._converse(requests.call(self.url, operation, args, kwargs))

    def _converse(self, conversation: Conversation[T]) -> T:
        """Send the requests of a conversation until it has a result."""
        said: Answer | httpx2.TransportError | None = None
        try:
            while True:
                step = conversation.send(said)
                said = self._answer(step) if isinstance(step, Request) else None
                if isinstance(step, float):
                    time.sleep(step)
        except StopIteration as end:
            result: T = end.value
            return result

    def _answer(self, sent: Request) -> Answer | httpx2.TransportError:
        """Send one request; return its response, or the failure to reach the server."""
        try:
            with self._http.stream(
                sent.method, self.url + sent.path, params=sent.query, headers=sent.headers, content=sent.content
            ) as answer:
                body = bytearray()
                for part in answer.iter_bytes():
                    requests.add_part(body, part)
        except httpx2.TransportError as error:
            return error
        note_unreachable(*filter(None, answer.headers.get(HEADER, "").split(", ")))
        return Answer(answer.status_code, bytes(body), answer.headers.get("retry-after"))

    def _lines(self, lines: Lines[T]) -> Generator[T]:
        """Yield the values of a streamed response; a broken live stream is resumed."""
        patience = httpx2.Timeout(lines.silence_s, connect=requests.CONNECT_S)
        said: Answer | httpx2.TransportError
        while True:
            sent = lines.sent
            try:
                with self._http.stream(
                    "GET", self.url + sent.path, params=sent.query, headers=sent.headers, timeout=patience
                ) as answer:
                    if answer.is_success:
                        for line in answer.iter_lines():
                            found = lines.read(line)
                            if found is not None:
                                yield found
                        return
                    said = Answer(answer.status_code, answer.read(), answer.headers.get("retry-after"))
            except httpx2.TransportError as error:
                said = error
            time.sleep(lines.pause(said))
