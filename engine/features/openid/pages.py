"""The routes of a sign-in at a provider: ``/sign-in/openid`` sends a browser there, ``/sign-in/callback`` is where it comes back."""

import hmac
import logging
import re
import secrets
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lodger.engine.core.access.roles import Caller
from lodger.engine.core.errors import Explained, InputError, NotFound, Unavailable
from lodger.engine.features.openid.configuration import NAME, SignIn
from lodger.engine.server.auth import client, cookie_name, made_from
from lodger.engine.server.problems import Refused
from lodger.engine.store.tenants import sessions, tenants
from lodger.engine.web import dashboard
from lodger.engine.web.dashboard import Dashboard
from lodger.engine.web.page import own_path, page_after

if TYPE_CHECKING:
    from lodger.engine.features.openid.provider import Provider

log = logging.getLogger("lodger.api")
START, CALLBACK = "/sign-in/openid", "/sign-in/callback"
#: Seconds from the start of a sign-in to its end.
LIFE_S = 600
MAX_PARAMETER = 4096
_USES = ("state", "nonce", "verifier")
#: The beginning of a sign-in in its cookie; longer numbers Python does not read.
_SECONDS = re.compile("[0-9]{1,12}")


class OpenIdPages:
    """Signs browsers in at the provider of the engine's file.

    A cookie binds a sign-in to the browser in which it began: state, nonce and code verifier are made from it.
    """

    def __init__(self, pages: Dashboard) -> None:
        self._pages = pages
        self._api = pages.api
        self._provider: Provider | None = None

    def add(self) -> None:
        """Add the routes of the sign-in to the dashboard."""
        for path, endpoint in ((START, self._start), (CALLBACK, self._end)):
            self._pages.add_public(path, endpoint)
        self._pages.sign_ins.append(self._link)
        self._api.authentication.signed_out = self._signed_out

    def _link(self, next_page: str) -> tuple[str, str] | None:
        """Return the path of the start of a sign-in, and what the button calls the provider; None without a provider."""
        configured: SignIn | None = self._api.engine.of_surfaces.get(NAME)
        return None if configured is None else (f"{START}?next={quote(next_page, safe='')}", configured.title)

    def _configured(self) -> "Provider":
        """Return the provider.

        Raises:
            NotFound: signin_none. Unavailable: extra_missing.
        """
        configured: SignIn | None = self._api.engine.of_surfaces.get(NAME)
        if configured is None:
            raise NotFound("signin_none")
        if self._provider is None or self._provider.configured is not configured:
            try:
                from lodger.engine.features.openid.provider import Provider
            except ModuleNotFoundError as missing:
                raise Unavailable("extra_missing.openid", name=missing.name) from None
            self._provider = Provider(configured)
        return self._provider

    async def _start(self, request: Request) -> Response:
        """Send a browser to the provider, with a cookie that binds the sign-in to it."""
        provider = self._configured()
        kept = f"{secrets.token_urlsafe(32)}.{self._now_s()}.{quote(page_after(request), safe='')}"
        state, nonce, verifier = made_from(kept, *_USES)
        url = await provider.authorization_url(self._callback(request), state, nonce, verifier)
        answer = RedirectResponse(url, 303)
        secure = request.url.scheme == "https"
        # Lax: the provider's page leads back here, and the cookie has to come with it.
        answer.set_cookie(
            _cookie(request), kept, max_age=LIFE_S, path="/", secure=secure, httponly=True, samesite="lax"
        )
        return answer

    async def _end(self, request: Request) -> Response:
        """Answer a browser that comes back from the provider: with a session, or with a page that says why there is none."""
        provider, address = self._configured(), client(request)
        try:
            answer = await self._signed_in(request, provider)
        except (Refused, InputError) as error:
            self._api.limits.failure(address)
            log.warning("rejected a sign-in from %s: %s", address, error)
            refused = error if isinstance(error, Refused) else Refused.with_texts_of(error, 403, {})
            answer = self._pages.error_page(request, refused)
        secure = request.url.scheme == "https"
        answer.delete_cookie(_cookie(request), path="/", secure=secure, httponly=True, samesite="lax")
        return answer

    async def _signed_in(self, request: Request, provider: "Provider") -> Response:
        """Check the answer of the provider, and begin a session.

        Raises:
            Explained: why there is none.
        """
        from lodger.engine.features.openid.provider import failed

        given = {name: request.query_params.getlist(name) for name in ("state", "code", "error", "iss")}
        if any(len(values) > 1 or len("".join(values)) > MAX_PARAMETER for values in given.values()):
            raise failed("a parameter is repeated or too long")
        sent = {name: values[0] for name, values in given.items() if values}
        kept = request.cookies.get(_cookie(request), "")
        state, nonce, verifier = made_from(kept, *_USES)
        begun_s, _dot, next_page = kept.partition(".")[2].partition(".")
        if not _SECONDS.fullmatch(begun_s) or not 0 <= self._now_s() - int(begun_s) <= LIFE_S:
            raise failed("it did not begin in this browser, or too long ago")
        if not hmac.compare_digest(sent.get("state", "").encode(), state.encode()):
            raise failed("the answer belongs to another sign-in")
        if sent.get("iss", provider.configured.issuer) != provider.configured.issuer:
            raise failed("the answer is of another provider")
        if "code" not in sent:
            raise failed("the provider has refused it", sent.get("error", "no code"))
        claims, id_token = await provider.claims(self._callback(request), sent["code"], nonce, verifier)
        caller = provider.configured.caller(claims)
        return await self._begun(request, caller, state, id_token, own_path(request, unquote(next_page)))

    async def _begun(self, request: Request, caller: Caller, state: str, id_token: str, next_page: str) -> Response:
        """Begin the session of a caller and lead the browser to ``next_page``; each ``state`` is valid once."""
        from lodger.engine.features.openid.provider import failed

        provider = self._configured()

        def use_up_state(connection: Connection) -> Caller:
            """Use up the sign-in's state, which holds once; return the caller."""
            if not sessions.spend_state(connection, state, self._api.engine.context.clock.now_us()):
                raise failed("it was completed before")
            if caller.tenant_id is not None:
                tenants.get(connection, caller.tenant_id)
            return caller

        life_us = provider.configured.session_minutes * 60_000_000
        answer = await self._pages.begin(
            request, use_up_state, "OpenID Connect", of=caller, next_page=next_page, life_us=life_us, id_token=id_token
        )
        assert answer is not None
        return answer

    async def _signed_out(self, request: Request, id_token: str) -> str | None:
        """Return the provider's page that signs the user out there, too."""
        try:
            provider = self._configured()
        except Explained:
            return None
        return await provider.end_session_url(id_token, self._address(request, "/sign-in"))

    def _callback(self, request: Request) -> str:
        """Return the address that the provider sends browsers back to."""
        return self._configured().configured.callback or self._address(request, CALLBACK)

    def _address(self, request: Request, path: str) -> str:
        """Return the absolute URL of a path of this server, as the request reached it."""
        return str(request.base_url).rstrip("/") + path

    def _now_s(self) -> int:
        """Seconds since 1970 by the engine's clock."""
        return self._api.engine.context.clock.now_us() // 1_000_000


def _cookie(request: Request) -> str:
    """Return the name of the cookie that binds a sign-in to its browser."""
    return cookie_name(request.url.scheme == "https") + "-sign-in"


def _add(pages: Dashboard) -> None:
    """Add the sign-in by a provider to the dashboard."""
    if pages.api.authentication.by_platform is None:
        OpenIdPages(pages).add()


dashboard.EXTENSIONS.append(_add)
