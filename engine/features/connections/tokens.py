"""Requests to the token endpoint of an OAuth 2 provider, and its answers, which may be hostile. Pure."""

import base64
import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_plus, urlencode

from lodger.engine.core.execution import Answer
from lodger.engine.egress.headers import is_value
from lodger.engine.egress.request import Redirect, Request
from lodger.engine.vault.redaction import SHORTEST

#: Seconds of one request, and bytes of its answer.
ANSWER_S, MAX_ANSWER = 10.0, 64 * 1024
#: Bytes of a token.
MAX_TOKEN = 16 * 1024
#: Seconds for which a token is used: without a word of the provider, at least, and at most.
USUAL_S, SHORTEST_S, LONGEST_S = 300, 60, 86_400
_WORD = re.compile(r"[a-z_]{1,40}", re.ASCII)
_LATER = frozenset({408, 425, 429})


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a provider has given.

    Attributes:
        refresh: None if the one before stays valid.
    """

    access: str = field(repr=False)
    refresh: str | None = field(repr=False)
    lasts_s: int


@dataclass(frozen=True, slots=True)
class NoTokens:
    """Why a provider has given none.

    Attributes:
        reason: for people; nothing of the provider but the code of its error.
        revoked: whether the grant is no longer valid.
        later: whether another try may succeed.
    """

    reason: str
    revoked: bool = False
    later: bool = False


def request(
    token_url: str, client_id: str, client_secret: str, auth: str, fields: dict[str, str], tenant_id: str
) -> Request:
    """Return a request for tokens; it goes to public addresses only and follows no redirect."""
    headers = [("content-type", "application/x-www-form-urlencoded"), ("accept", "application/json")]
    if auth == "basic" and client_secret:
        pair = f"{quote_plus(client_id)}:{quote_plus(client_secret)}".encode()
        headers.append(("authorization", "Basic " + base64.b64encode(pair).decode()))
    else:
        fields = fields | {"client_id": client_id} | ({"client_secret": client_secret} if client_secret else {})
    return Request(
        "POST", token_url, tuple(headers), urlencode(fields).encode(), Redirect.MANUAL, payer=tenant_id,
        total_s=ANSWER_S, max_body=MAX_ANSWER,
    )  # fmt: skip


def challenge(verifier: str) -> str:
    """Return the PKCE challenge (S256) of a verifier."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


def read(answer: Answer) -> Tokens | NoTokens:
    """Return the tokens of an answer, or why there are none."""
    body = _object(answer.body)
    if answer.status != 200:
        word = body.get("error")
        code = word if isinstance(word, str) and _WORD.fullmatch(word) else None
        reason = f"the provider answered {answer.status}" + (f", {code}" if code else "")
        later = answer.status >= 500 or answer.status in _LATER
        return NoTokens(reason, revoked=code == "invalid_grant" and not later, later=later)
    access, refresh, kind = body.get("access_token"), body.get("refresh_token"), body.get("token_type", "bearer")
    if not isinstance(access, str) or not _is_token(access) or not (refresh is None or _is_token(refresh)):
        return NoTokens("the provider's answer has no usable token")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        return NoTokens("the provider's token is no bearer token")
    return Tokens(access, refresh, _lasts_s(body.get("expires_in")))


def _object(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a body; empty for anything else."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_token(given: object) -> bool:
    """Whether a value is text that can be sent as a token in a header."""
    return isinstance(given, str) and SHORTEST <= len(given) <= MAX_TOKEN and given.isascii() and is_value(given)


def _lasts_s(given: object) -> int:
    """Return for how many seconds a token is used; some providers write the number as text, or none."""
    if isinstance(given, str) and given.isascii() and given.isdecimal() and len(given) < 12:
        given = int(given)
    if isinstance(given, bool) or not isinstance(given, int | float) or given != given:
        return USUAL_S
    return int(max(SHORTEST_S, min(given, LONGEST_S)))
