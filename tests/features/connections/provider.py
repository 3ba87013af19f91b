"""An OAuth 2 provider on loopback: consents, tokens, rotation, revocation, and answers as a test wants them."""

import asyncio
import base64
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote_plus

from tests.egress.peer import Asked, Peer, answer

CLIENT, PASSWORD = "me", "the client's own secret"


@dataclass
class Provider:
    """Serves ``/token`` and, as the API of the same provider, ``/deals``."""

    peer: Peer = field(default_factory=Peer)
    #: What ``/token`` answers instead: status and body, one each time.
    instead: list[tuple[str, bytes]] = field(default_factory=list)
    lasts: Any = 3600
    #: Challenge by code.
    codes: dict[str, str] = field(default_factory=dict)
    refresh: str | None = None
    access: set[str] = field(default_factory=set)
    asked: list[dict[str, str]] = field(default_factory=list)
    served: list[str] = field(default_factory=list)
    before: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        self.peer.paths["/token"] = self._token
        self.peer.paths["/deals"] = self._deals

    def consent(self, code: str, challenge: str) -> None:
        """Store a code, as if a person had consented."""
        self.codes[code] = challenge

    async def _token(self, asked: Asked, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer a request for a token."""
        fields = {name: values[0] for name, values in parse_qs(asked.body.decode()).items()}
        self.asked.append(fields)
        if self.before is not None:
            self.before()
        if self.instead:
            status, body = self.instead.pop(0)
        else:
            status, body = self._answer(asked, fields)
        writer.write(answer(body, status, "content-type: application/json"))

    def _answer(self, asked: Asked, fields: dict[str, str]) -> tuple[str, bytes]:
        scheme, _, pair = asked.headers.get("authorization", "").partition(" ")
        known = base64.b64decode(pair).decode().split(":") if scheme == "Basic" else ["", ""]
        if [unquote_plus(each) for each in known] != [CLIENT, PASSWORD]:
            return "401 Unauthorized", b'{"error":"invalid_client"}'
        if fields["grant_type"] == "authorization_code":
            verifier = hashlib.sha256(fields.get("code_verifier", "").encode()).digest()
            if self.codes.pop(fields["code"], None) != base64.urlsafe_b64encode(verifier).decode().rstrip("="):
                return "400 Bad Request", b'{"error":"invalid_grant"}'
        if fields["grant_type"] == "refresh_token" and fields["refresh_token"] != self.refresh:
            return "400 Bad Request", b'{"error":"invalid_grant","error_description":"<script>"}'
        number = len(self.asked)
        token = f"access-token-{number}"
        self.access.add(token)
        made = {"access_token": token, "token_type": "Bearer", "expires_in": self.lasts}
        if fields["grant_type"] != "client_credentials":
            made["refresh_token"] = self.refresh = f"refresh-token-{number}"
        return "200 OK", json.dumps({name: value for name, value in made.items() if value is not None}).encode()

    async def _deals(self, asked: Asked, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer a request to the API, and note its token."""
        token = asked.headers.get("authorization", "").removeprefix("Bearer ")
        self.served.append(token)
        writer.write(answer(f'"you said {token}"'.encode()))
