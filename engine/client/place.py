"""Where a client asks, and what it shows: given, or from the environment."""

import os
from urllib.parse import urlsplit

from lodger.engine.core.errors import InputError
from lodger.engine.core.version import VERSION

SERVER, TOKEN = "LODGER_SERVER", "LODGER_TOKEN"
#: Seconds for a connection, and for an answer; a dry run may take as long as its limits allow.
CONNECT_S, ANSWER_S = 10.0, 330.0


def found(url: str | None, token: str | None) -> tuple[str, dict[str, str]]:
    """Give the server's address and the headers of every request.

    Raises:
        InputError: server_missing, server_invalid, token_missing.
    """
    url = (url or os.environ.get(SERVER, "")).rstrip("/").removesuffix("/api/v1")
    token = token or os.environ.get(TOKEN, "")
    if not url:
        raise InputError("server_missing", "no server was named", fix=f"give its address, or set {SERVER}")
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.username:
        raise InputError(
            "server_invalid",
            f"{url!r} is no server's address",
            fix="such as https://lodger.example.com or http://127.0.0.1:8750",
        )
    if not token or not token.isascii() or not token.isprintable():
        raise InputError(
            "token_missing", "no token was given", fix=f"give one, or set {TOKEN}; lodger token create makes one"
        )
    return url, {"authorization": f"Bearer {token}", "user-agent": f"lodger/{VERSION}"}
