"""The pages of a consent: the link leads the browser to the provider, and the provider back here."""

import asyncio
import hmac
import secrets
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Path
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from lodger.engine.core.errors import Unavailable
from lodger.engine.egress.way_out import WayOut
from lodger.engine.features.connections import connections, renewal
from lodger.engine.features.connections.connections import CONSENT_US, Opened
from lodger.engine.features.connections.tokens import NoTokens, challenge
from lodger.engine.server import app, auth
from lodger.engine.server.app import Api
from lodger.engine.server.auth import client, made_from
from lodger.engine.service.engine import Engine

#: Of all pages: nothing of an address, which holds a link or a code, is told to others or kept.
_HEADERS = {"Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_COOKIE, _PATH = "lodger_consent", "/oauth"
_WORDS = frozenset({"access_denied", "invalid_scope", "invalid_request", "server_error", "temporarily_unavailable",
                    "unauthorized_client", "unsupported_response_type"})  # fmt: skip


def _page(text: str, status: int = 200) -> Response:
    """Return a page with one sentence."""
    return PlainTextResponse(text + "\n", status, _HEADERS)


def _expired() -> Response:
    """Return the page for a link that is not valid, or no longer."""
    return _page("This link is not valid, or no longer: ask for a new one.", 404)


def _add(api: Api) -> None:
    """Add the routes by which a person consents to a connection."""
    engine = api.engine

    def find_consent(text: str, state: str | None = None) -> tuple[Engine, Opened] | None:
        """Return the connection of a link or a state, with its ledger; ``state`` is what follows a link."""

        def find_in_ledger(each: Engine) -> tuple[Engine, Opened] | None:
            """Return the connection if this ledger has it."""
            with each.context.database.write() as connection:
                now_us = each.context.clock.now_us()
                found = connections.of_consent(each.vault, connection, text, now_us, state)
            return None if found is None else (each, found)

        return engine.ask_each(find_in_ledger)

    async def start(request: Request, link: Annotated[str, Path(max_length=100)]) -> Response:
        """Send a person's browser to the provider, where they consent."""
        address, browser = client(request), secrets.token_urlsafe(32)
        state, verifier = made_from(browser, "state", "verifier")
        found = await api.lookups.run(address, lambda: find_consent(link, state))
        if found is None:
            api.limits.failure(address)
            return _expired()
        about = found[1].about
        asked = {
            "response_type": "code", "client_id": about.client_id, "redirect_uri": about.redirect_uri or "", "state": state,
            "code_challenge": challenge(verifier), "code_challenge_method": "S256",
        } | ({"scope": " ".join(about.scopes)} if about.scopes else {})  # fmt: skip
        url = str(about.authorize_url)
        answer = RedirectResponse(url + ("&" if "?" in url else "?") + urlencode(asked), 303, _HEADERS)
        secure = request.url.scheme == "https"
        answer.set_cookie(
            _COOKIE, browser, max_age=CONSENT_US // 1_000_000, path=_PATH, secure=secure, httponly=True, samesite="lax"
        )
        return answer

    async def callback(request: Request) -> Response:
        """Take the provider's answer to a consent, and store the tokens."""
        given, address = request.query_params, client(request)
        state, verifier = made_from(request.cookies.get(_COOKIE, "")[:200], "state", "verifier")
        mine = hmac.compare_digest(given.get("state", "").encode(), state.encode())
        found = await api.lookups.run(address, lambda: find_consent(state)) if mine else None
        if found is None:
            api.limits.failure(address)
            return _expired()
        there, opened = found
        code, problem = given.get("code", "")[:4096], given.get("error")
        if problem is not None or not code:
            word = problem if problem in _WORDS else "no code"
            return _page(f"Not connected: {word}.", 400)
        fields = {"grant_type": "authorization_code", "code": code, "redirect_uri": opened.about.redirect_uri or ""}
        way_out = WayOut(there.context.settings)
        try:
            answer = await renewal.ask(way_out, opened, fields | {"code_verifier": verifier})
        finally:
            await asyncio.to_thread(way_out.stop)
        if isinstance(answer, NoTokens):
            return _page(f"Not connected: {answer.reason}.", 502)
        try:
            await renewal.store(there.context, there.vault, opened, answer, consented=True)
        except Unavailable as error:
            return _page(f"Not connected: {error.code}.", 503)
        there.changed()
        done = _page("Connected. This window can be closed.")
        done.delete_cookie(_COOKIE, path=_PATH)
        return done

    for path, page in (("/oauth/start/{link}", start), ("/oauth/callback", callback)):
        api.framework.router.add_api_route(path, page, methods=["GET"], include_in_schema=False)


auth.OPEN_PREFIXES.append(_PATH + "/")
app.ROUTES.append(_add)
