"""Signatures of webhooks, after Standard Webhooks (standardwebhooks.com): HMAC-SHA256 over id, timestamp and body.

Senders of requests to URLs of scripts may also sign as GitHub does.

The receiver has the same secret and does the same as :func:`verify`: recompute, compare in constant time, refuse old messages, and
remember ids for as long, so that no message is processed twice.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping

PREFIX = "whsec_"
#: How senders may sign requests: Standard Webhooks, or as GitHub does (no timestamp).
STYLES = ("standard", "sha256")
#: Seconds by which a timestamp may be off.
TOLERANCE_S = 300


class NotVerified(Exception):
    """A webhook with a wrong signature, timestamp or body."""


def new_secret() -> str:
    """Make a secret: ``whsec_`` and 32 bytes in base64."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def headers(secret: str, identity: str, timestamp_s: int, body: bytes) -> tuple[tuple[str, str], ...]:
    """Return the headers of one delivery, signed with the secret."""
    return (
        ("webhook-id", identity),
        ("webhook-timestamp", str(timestamp_s)),
        ("webhook-signature", f"v1,{_signature(secret, identity, timestamp_s, body)}"),
    )


def verify(secret: str, given: Mapping[str, str], body: bytes, now_s: float, tolerance_s: int = TOLERANCE_S) -> str:
    """Verify a received webhook and return its id, which is the same for every delivery.

    Args:
        secret: as it was shown when the webhook was made.
        given: the request's headers, names in any case.
        body: the request's bytes, before anything has parsed them.
        now_s: seconds since 1970.

    Raises:
        NotVerified: it is not signed with this secret, or too old, or from the future.
    """
    lower = {name.lower(): value for name, value in given.items()}
    identity, stamp = lower.get("webhook-id", ""), lower.get("webhook-timestamp", "")
    if not identity or not stamp.isascii() or not stamp.isdigit() or len(stamp) > 12:
        raise NotVerified("webhook-id or webhook-timestamp is missing")
    if abs(now_s - int(stamp)) > tolerance_s:
        raise NotVerified("the timestamp is too old or in the future")
    wanted = _signature(secret, identity, int(stamp), body).encode()
    for each in lower.get("webhook-signature", "").split(" ")[:10]:
        version, _, signature = each.partition(",")
        if version == "v1" and hmac.compare_digest(signature.encode(), wanted):
            return identity
    raise NotVerified("no signature matches this secret")


def verify_request(style: str, secret: str, given: Mapping[str, str], body: bytes, now_s: float) -> str | None:
    """Verify a signed request and return the id of its delivery, if the signature covers one.

    ``standard``: see :func:`verify`. ``sha256``: ``X-Hub-Signature-256`` or ``X-Signature: sha256=HEX`` over the body.

    Args:
        given: the request's headers, names in lower case.

    Raises:
        NotVerified: as :func:`verify`.
    """
    if style == "standard":
        return verify(secret, given, body, now_s)
    sent = given.get("x-hub-signature-256") or given.get("x-signature", "")
    wanted = hmac.new(secret.encode("utf-8", "surrogatepass"), body, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(sent.encode(), f"sha256={wanted}".encode()):
        raise NotVerified("no signature matches this secret")
    return None


def _signature(secret: str, identity: str, timestamp_s: int, body: bytes) -> str:
    """Return the signature of a webhook in the Standard Webhooks format."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except ValueError as error:  # it is not ASCII, or not base64
        raise NotVerified("the secret is not whsec_ followed by base64") from error
    signed = f"{identity}.{timestamp_s}.".encode() + body
    return base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
