"""One OpenID Connect provider: its description, where browsers are sent, and what it says about a user for a code."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from authlib.integrations.base_client import OAuthError
from authlib.integrations.httpx_client import AsyncOAuth2Client
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from lodger.engine.core.errors import Unavailable
from lodger.engine.features.openid.configuration import SignIn, secure
from lodger.engine.server.problems import Refused

#: Seconds for one exchange with the provider, and for which its description is kept.
PATIENCE_S, KEPT_S = 10.0, 600.0
#: Difference of clocks that is forgiven, seconds.
LEEWAY_S = 60
MAX_ID_TOKEN = 65_536
#: Signatures by the provider's private key; neither none nor a shared secret.
ALGORITHMS = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA"}
)


class Provider:
    """The provider of a configuration. Belongs to one event loop."""

    def __init__(self, configured: SignIn) -> None:
        self.configured = configured
        self._described: tuple[float, dict[str, Any]] | None = None

    async def _description(self, client: AsyncOAuth2Client) -> dict[str, Any]:
        """Return the provider's description of itself.

        Raises:
            Unavailable: signin_unreachable.
        """
        if self._described is None or self._described[0] + KEPT_S < time.monotonic():
            found = await self._get(client, self.configured.issuer.rstrip("/") + "/.well-known/openid-configuration")
            if found.get("issuer") != self.configured.issuer:
                raise self._unreachable("its description is of another issuer")
            try:
                for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
                    secure(found[name])
                secure(found.get("userinfo_endpoint", found["token_endpoint"]))
            except (KeyError, ValueError, TypeError, AttributeError):
                raise self._unreachable(
                    "its description is incomplete, or names an address that is not encrypted"
                ) from None
            self._described = time.monotonic(), found
        return self._described[1]

    async def authorization_url(self, callback: str, state: str, nonce: str, verifier: str) -> str:
        """Return the provider's page that a browser is sent to."""
        async with self._session(callback) as client:
            place = (await self._description(client))["authorization_endpoint"]
            url, _ = client.create_authorization_url(place, state=state, nonce=nonce, code_verifier=verifier)
            return str(url)

    async def claims(self, callback: str, code: str, nonce: str, verifier: str) -> tuple[Mapping[str, Any], str]:
        """Exchange a code for the checked claims about the user, and the ID token.

        Keys are read anew each time, so that a provider may change them at any time.

        Raises:
            Refused: signin_failed. Unavailable: signin_unreachable.
        """
        async with self._session(callback) as client:
            described = await self._description(client)
            try:
                token = await client.fetch_token(described["token_endpoint"], code=code, code_verifier=verifier)
            except OAuthError as error:
                raise failed("the provider did not accept the code", error.error) from None
            except ValueError as error:
                raise self._unreachable(str(error)) from None
            text = token.get("id_token")
            if not isinstance(text, str) or len(text) > MAX_ID_TOKEN:
                raise failed("the provider sent no ID token, or one that is too large")
            keys = await self._get(client, described["jwks_uri"])
            claims = self._checked(text, keys, nonce, token.get("access_token"))
            if not self.configured.claims <= claims.keys() and "userinfo_endpoint" in described:
                more = await self._get(client, described["userinfo_endpoint"], withhold_token=False)
                if more.get("sub") == claims["sub"]:
                    claims = more | claims
            return claims, text

    async def end_session_url(self, id_token: str, back: str) -> str | None:
        """Return the provider's page that signs the user out there; None if it has none, or cannot be asked."""
        try:
            async with self._session(back) as client:
                place = (await self._description(client)).get("end_session_endpoint")
            if place is None:
                return None
            query = {
                "id_token_hint": id_token,
                "client_id": self.configured.client_id,
                "post_logout_redirect_uri": back,
            }
            return str(httpx2.URL(secure(place)).copy_merge_params(query))
        except (Unavailable, ValueError):
            return None

    def _checked(self, text: str, keys: Any, nonce: str, access_token: Any) -> dict[str, Any]:
        """Return the claims of an ID token, once its signature and claims such as issuer, audience and nonce are checked."""
        mine = self.configured
        try:
            token = jwt.decode(
                text,
                KeySet.import_key_set(keys),
                registry=JWSRegistry(algorithms=sorted(ALGORITHMS), strict_check_header=False),
            )
            claims = CodeIDToken(
                token.claims, token.header,
                {"iss": {"essential": True, "value": mine.issuer}, "aud": {"essential": True, "value": mine.client_id}},
                {"nonce": nonce, "client_id": mine.client_id, "access_token": access_token},
            )  # fmt: skip
            claims.validate(leeway=LEEWAY_S)
        except (JoseError, ValueError, TypeError, KeyError, RecursionError) as error:
            raise failed("the ID token is not valid", str(error) or type(error).__name__) from None
        if not isinstance(claims["sub"], str) or not 0 < len(claims["sub"]) <= 255:
            raise failed("the ID token names no subject")
        return dict(claims)

    async def _get(self, client: AsyncOAuth2Client, url: str, *, withhold_token: bool = True) -> dict[str, Any]:
        """Return the JSON object at a URL of the provider; raises Unavailable (signin_unreachable)."""
        answer = await client.request("GET", url, withhold_token=withhold_token)
        try:
            answer.raise_for_status()
            found = answer.json()
        except (httpx2.HTTPStatusError, ValueError) as error:
            raise self._unreachable(str(error)) from None
        if not isinstance(found, dict):
            raise self._unreachable(f"{url} is no JSON object")
        return found

    def _client(self, callback: str) -> AsyncOAuth2Client:
        """Return an OAuth client for the provider's configuration."""
        mine = self.configured
        return AsyncOAuth2Client(
            mine.client_id, mine.client_secret, scope=" ".join({"openid": None} | dict.fromkeys(mine.scopes)), redirect_uri=callback,
            code_challenge_method="S256", token_endpoint_auth_method=None if mine.client_secret else "none",
            timeout=PATIENCE_S, follow_redirects=False,
        )  # fmt: skip

    @asynccontextmanager
    async def _session(self, callback: str) -> AsyncIterator[AsyncOAuth2Client]:
        """Open a client of the provider for one exchange, which ends after PATIENCE_S."""
        try:
            async with asyncio.timeout(PATIENCE_S), self._client(callback) as client:
                yield client
        except (TimeoutError, httpx2.HTTPError, httpx2.InvalidURL, RecursionError) as error:
            raise self._unreachable(str(error) or "it does not answer") from None

    def _unreachable(self, reason: str) -> Unavailable:
        """Return the error of a provider that does not answer as it should."""
        return Unavailable("signin_unreachable", issuer=self.configured.issuer, reason=reason)


def failed(reason: str, detail: str = "") -> Refused:
    """Return the refusal of a sign-in."""
    return Refused(401, "signin_failed", reason=f"{reason} ({detail[:200]})" if detail else reason)
