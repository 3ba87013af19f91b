"""The client for scripts, Flask and Django: :class:`lodger.engine.sync.Engine`'s verbs, asked of a server."""

import json
import ssl
import time
from collections.abc import Callable, Generator, Mapping
from datetime import datetime, timedelta
from functools import wraps
from inspect import getmembers, isfunction
from types import TracebackType
from typing import Any, Self, cast

import httpx2

from lodger.engine.client import asking, events, place
from lodger.engine.client.asking import Asked
from lodger.engine.core.serialization import unshaped
from lodger.engine.service.nouns.actions import Actions
from lodger.engine.service.nouns.audit import Audit
from lodger.engine.service.nouns.collections import Collections
from lodger.engine.service.nouns.grants import Grants
from lodger.engine.service.nouns.locks import Locks
from lodger.engine.service.nouns.metrics import Metrics
from lodger.engine.service.nouns.nodes import Nodes
from lodger.engine.service.nouns.schedules import Schedules
from lodger.engine.service.nouns.scripts import Scripts
from lodger.engine.service.nouns.secrets import Secrets
from lodger.engine.service.nouns.tenants import Tenants
from lodger.engine.service.nouns.tokens import Tokens
from lodger.engine.service.nouns.webhooks import Webhooks
from lodger.engine.service.operations.table import NOUNS
from lodger.engine.store.records import Action, AuditEntry, Json, Page
from lodger.sandbox.job import LogLine


class _Remote:
    """A noun whose verbs are asked of the server."""

    def __init__(self, client: "Client", noun: str) -> None:
        self._client = client
        self._noun = noun

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        function = getattr(NOUNS[self._noun], verb, None)
        if verb.startswith("_") or not isfunction(function):
            raise AttributeError(f"{self._noun} has no verb {verb!r}")
        if (self._noun, verb) == ("audit", "export"):
            return self._client._export

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the verb's own signature
            return self._client._carry(self._noun, function, args, kwargs)

        call.__signature__ = asking.without_self(function)  # type: ignore[attr-defined]  # what inspect looks for
        return call

    def __dir__(self) -> list[str]:
        return [name for name, _function in getmembers(NOUNS[self._noun], isfunction) if not name.startswith("_")]


class Client:
    """A server, with the engine's own verbs. It may be used from several threads; close it, or use it as a block.

    Args:
        url: of the server, such as ``http://127.0.0.1:8750``; else ``LODGER_SERVER``.
        token: else ``LODGER_TOKEN``.
        verify: what certificates are trusted; the system's unless told.

    Raises:
        InputError: server_missing, server_invalid, token_missing.
    """

    tenants: Tenants
    grants: Grants
    collections: Collections
    secrets: Secrets
    webhooks: Webhooks
    scripts: Scripts
    schedules: Schedules
    actions: Actions
    tokens: Tokens
    audit: Audit
    nodes: Nodes
    locks: Locks
    metrics: Metrics

    def __init__(
        self, url: str | None = None, token: str | None = None, *, verify: ssl.SSLContext | bool = True
    ) -> None:
        self.url, headers = place.found(url, token)
        timeout = httpx2.Timeout(place.ANSWER_S, connect=place.CONNECT_S)
        self._http = httpx2.Client(headers=headers, timeout=timeout, trust_env=False, verify=verify)
        for noun in NOUNS:
            # Typed as the verbs themselves, so that no signature is written twice; asked of the server instead.
            setattr(self, noun, cast("Any", _Remote(self, noun)))

    def close(self) -> None:
        """Let go of the connections; safe to call twice."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def me(self) -> dict[str, Any]:
        """Say whose token this is and what it may."""
        return cast("dict[str, Any]", self._http_json("/api/v1/me"))

    def run_at(
        self, tenant_id: str, script: str, at: datetime, params: Json = None, request_key: str | None = None
    ) -> Action:
        """Run a script once at an instant; see :meth:`lodger.engine.service.nouns.actions.Actions.run_at`."""
        return self.actions.run_at(tenant_id, script, at, params, request_key)

    def run_in(
        self,
        tenant_id: str,
        script: str,
        delay: float | str | timedelta,
        params: Json = None,
        request_key: str | None = None,
    ) -> Action:
        """Run a script once after a delay; see :meth:`lodger.engine.service.nouns.actions.Actions.run_in`."""
        return self.actions.run_in(tenant_id, script, delay, params, request_key)

    def live(self, tenant_id: str, action_id: str | None = None) -> Generator[Action | LogLine]:
        """Give each of a tenant's actions as it is made or moves on; or one action with its log lines, until it is over.

        Raises:
            NotFound: tenant_unknown, action_unknown. Unavailable: server_unreachable, when the stream breaks.
        """
        reading, patience = events.Events(), httpx2.Timeout(events.SILENCE_S, connect=place.CONNECT_S)
        try:
            with self._http.stream("GET", self.url + events.path(tenant_id, action_id), timeout=patience) as answer:
                if not answer.is_success:
                    raise asking.error_of(answer.status_code, answer.read())
                for line in answer.iter_lines():
                    found = reading.read(line)
                    if found is not None:
                        yield found
        except httpx2.TransportError as error:
            raise asking.unreachable(self.url, error) from error

    def _carry(self, noun: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:  # noqa: ANN401 - what the verb gives
        sent = asking.asked(noun, function, args, kwargs)
        if sent.route.kind != "page":
            return asking.value_of(sent.route, self._ask(sent))
        return self._pages(sent, asking.whole(sent, asking.arguments_of(function, args, kwargs), function))

    def _pages(self, sent: Asked, wanted: int | None) -> Page[Any]:
        """Give so many entries, or all, in as many requests as the server's pages need."""
        found: Page[Any] = Page()
        cursor = sent.query.get("cursor")
        while wanted is None or len(found) < wanted:
            left = sent.route.most if wanted is None else min(sent.route.most, wanted - len(found))
            one = asking.more(sent, str(cursor), left) if cursor else asking.first(sent, left)
            page = asking.value_of(sent.route, self._ask(one))
            found.extend(page)
            found.next = cursor = page.next
            if cursor is None:
                break
        return found

    def _ask(self, sent: Asked) -> bytes:
        tried = 0
        while True:
            try:
                answer = self._http.request(
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
            time.sleep(pause)

    def _http_json(self, path: str) -> Any:  # noqa: ANN401 - any JSON value
        try:
            answer = self._http.get(self.url + path)
        except httpx2.TransportError as error:
            raise asking.unreachable(self.url, error) from error
        if not answer.is_success:
            raise asking.error_of(answer.status_code, answer.content)
        return answer.json()

    def _export(
        self, tenant_id: str | None = None, *, since: datetime | None = None, until: datetime | None = None
    ) -> Generator[AuditEntry]:
        """Give every change, oldest first, as the server sends them."""
        path, query = asking.export(tenant_id, since, until)
        try:
            with self._http.stream("GET", self.url + path, params=query) as answer:
                if not answer.is_success:
                    raise asking.error_of(answer.status_code, answer.read())
                for line in answer.iter_lines():
                    if line:
                        yield unshaped(AuditEntry, json.loads(line))
        except httpx2.TransportError as error:
            raise asking.unreachable(self.url, error) from error
