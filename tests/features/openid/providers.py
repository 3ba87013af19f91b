"""OpenID Connect providers on loopback: the published mock in a process of its own, and one that misbehaves as a test says."""

import base64
import hashlib
import hmac
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from joserfc import jws
from joserfc.jwk import RSAKey
from tests.api.running_api import RunningApi
from tests.guides import steps

from lodger.engine.service.platform_file import PlatformFile

CLIENT = "lodger"
#: Users of the mock: what the provider says about them.
USERS: dict[str, dict[str, Any]] = {
    "ann": {"email": "ann@shop.example", "email_verified": True, "groups": ["staff", "lodger-admins"]},
    "bob": {"email": "bob@acme.example", "groups": ["developers"], "org": ["acme"]},
    "eve": {"org": "acme"},
    "zoe": {"groups": ["developers"]},
}
#: The file of the guide, for a provider that is yet to be named.
GUIDE = Path(__file__).parents[3] / "docs" / "how-to" / "sign-in-with-openid-connect.md"
(RULES,) = (
    step.text.replace("https://login.example.com", "{issuer}") for step in steps(GUIDE.read_text()) if step.title
)


def configure(lodge: RunningApi, folder: Path, text: str) -> None:
    """Write a platform file and apply it."""
    place = folder / "lodger.toml"
    place.write_text(text)
    PlatformFile(place).apply(lodge.engine)


@contextmanager
def mock_provider() -> Iterator[str]:
    """Run the published mock provider; yields its issuer."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    users = [part for sub, claims in USERS.items() for part in ("--user-claims", json.dumps({"sub": sub} | claims))]
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "oidc_provider_mock",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        *users,
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert process.poll() is None, "the mock provider has ended"
                time.sleep(0.05)  # nothing tells when another process listens
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _base64(raw: bytes) -> bytes:
    return base64.urlsafe_b64encode(raw).rstrip(b"=")


@cache
def signing_key(name: str) -> Any:
    """Return the key of this name: making one takes as long as thirty sign-ins."""
    return RSAKey.generate_key(2048, {"kid": name, "use": "sig"})


class Provider:
    """A provider whose parts a test replaces.

    Attributes:
        key: signs ID tokens; ``published`` are the keys that it shows.
        about: replaces fields of its description.
        claims: replaces claims of the next ID token; None removes one.
        algorithm: of the next ID token.
        codes: the challenge and the nonce of each code; a code is used once.
    """

    def __init__(self) -> None:
        self.key = signing_key("first")
        self.published: list[Any] = [self.key]
        self.about: dict[str, Any] = {}
        self.claims: dict[str, Any] = {}
        self.more: dict[str, Any] = {}
        self.algorithm = "RS256"
        self.codes: dict[str, tuple[str, str]] = {}
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.issuer = f"http://127.0.0.1:{self.server.server_port}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        """Return the class that answers HTTP requests as this provider."""
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = urlsplit(self.path).path
                answers = {
                    "/.well-known/openid-configuration": provider.described,
                    "/keys": lambda: {"keys": [key.as_dict(private=False) for key in provider.published]},
                    "/userinfo": lambda: {"sub": "ann"} | provider.more,
                }
                self._answer(200, answers[path]())

            def do_POST(self) -> None:
                sent = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
                self._answer(*provider.exchange({name: values[0] for name, values in sent.items()}))

            def _answer(self, status: int, body: Any) -> None:
                raw = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: object) -> None:
                """Keep the output of the tests clean."""

        return Handler

    def described(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer, "authorization_endpoint": f"{self.issuer}/authorize", "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys", "userinfo_endpoint": f"{self.issuer}/userinfo",
            "end_session_endpoint": f"{self.issuer}/end",
        } | self.about  # fmt: skip

    def exchange(self, sent: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """Return status and body of the answer to a code."""
        expected = self.codes.pop(sent.get("code", ""), None)
        verifier = sent.get("code_verifier", "").encode()
        proved = _base64(hashlib.sha256(verifier).digest()).decode()
        if expected is None or expected[0] != proved:
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        claims = {
            "iss": self.issuer, "aud": CLIENT, "sub": "ann", "nonce": expected[1], "iat": now, "exp": now + 300, "org": "acme",
        } | self.claims  # fmt: skip
        claims = {name: value for name, value in claims.items() if value is not None}
        return 200, {"access_token": "a", "token_type": "Bearer", "id_token": self.signed(claims)}

    def signed(self, claims: dict[str, Any]) -> str:
        """Return claims as a token, signed as the test wants it."""
        header = {"alg": self.algorithm, "kid": self.key.kid}
        if self.algorithm in {"none", "HS256"}:  # the public key as a shared secret
            signed = b".".join(
                map(_base64, (json.dumps({"alg": self.algorithm}).encode(), json.dumps(claims).encode()))
            )
            mac = hmac.digest(self.key.as_pem(private=False), signed, "sha256") if self.algorithm == "HS256" else b""
            return (signed + b"." + _base64(mac)).decode()
        text = json.dumps(claims).replace('"nested"', "[" * 20_000 + "]" * 20_000)
        return jws.serialize_compact(header, text, self.key, algorithms=[self.algorithm])


@contextmanager
def provider() -> Iterator[Provider]:
    made = Provider()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield made
    finally:
        made.server.shutdown()
        made.server.server_close()
        thread.join()
