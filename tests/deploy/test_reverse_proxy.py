"""The shipped configurations of nginx and Caddy, each in front of a real API: what they let through, and what they stop.

Only addresses, ports, certificates and times are replaced, each of which has to stand in the file.
"""

import json
import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
import trustme
from tests.api.running_api import RunningApi, read_to_end, running_api
from tests.api.workers import worked

from lodger.sandbox.job import LogLine

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


@dataclass
class Proxy:
    """A running proxy in front of a running API."""

    lodge: RunningApi
    port: int
    trusting: ssl.SSLContext

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}/api/v1"

    def ask(self, path: str, token: str, address: str = "127.0.0.1", **more: object) -> httpx2.Response:
        transport = httpx2.HTTPTransport(local_address=address, verify=self.trusting)
        with httpx2.Client(transport=transport, timeout=60) as http:
            shown = {"authorization": f"Bearer {token}"} | more.pop("headers", {})  # type: ignore[operator]  # a mapping here
            return http.request(str(more.pop("method", "GET")), self.url + path, headers=shown, **more)  # type: ignore[arg-type]  # a mapping here

    def connect(self) -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", self.port), 60)
        return self.trusting.wrap_socket(plain, server_hostname="127.0.0.1")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def replace_all(text: str, *pairs: tuple[str, str]) -> str:
    """Return a text with each old part replaced by the new one; each must occur."""
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


Begin = Callable[[Path, int, int], list[str]]


def nginx(folder: Path, port: int, upstream: int) -> list[str]:
    """Write the configuration of nginx; return the command."""
    site = replace_all(
        (DEPLOY / "nginx.conf").read_text(),
        ("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;"),
        ("server 127.0.0.1:8750;", f"server 127.0.0.1:{upstream};"),
        ("/etc/ssl/lodger/", f"{folder}/"),
        ("client_header_timeout 10s;", "client_header_timeout 1s;"),
        ("client_body_timeout 10s;", "client_body_timeout 1s;"),
        ("limit_conn lodger_connections 50;", "limit_conn lodger_connections 5;"),
    )
    (folder / "site.conf").write_text(site)
    kept = "".join(
        f"{name}_temp_path {folder}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    main = f"""
{"user root;" if os.geteuid() == 0 else ""}
daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{ access_log {folder}/access.log; {kept} include {folder}/site.conf; }}
"""
    (folder / "nginx.conf").write_text(main)
    return ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")]


def caddy(folder: Path, port: int, upstream: int) -> list[str]:
    """Write the configuration of Caddy; return the command."""
    text = replace_all(
        (DEPLOY / "Caddyfile").read_text(),
        ("lodger.example.com {", f"https://127.0.0.1:{port} {{\n\ttls {folder}/cert.pem {folder}/key.pem"),
        ("127.0.0.1:8750", f"127.0.0.1:{upstream}"),
        ("read_header 10s", "read_header 1s"),
        ("\tgrace_period 5s", "\tadmin off\n\tauto_https disable_redirects\n\tgrace_period 1s"),
    )
    (folder / "Caddyfile").write_text(text)
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]


@contextmanager
def proxy_before_api(begin: Begin, folder: Path) -> Iterator[Proxy]:
    """Yield a proxy in front of a running API; ``begin`` writes the configuration and returns the command."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(folder / "key.pem")
    for part in issued.cert_chain_pems:
        part.write_to_path(folder / "cert.pem", append=True)
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(trusting)
    url = f"sqlite:///{folder / 'ledger.db'}"
    if begin.__name__ in broken:
        pytest.fail(broken[begin.__name__])
    with running_api(url, trusted_proxies="127.0.0.1", api_failures_per_minute=3) as lodge:
        lodge.furnish()
        port = free_port()
        command = begin(folder, port, lodge.port)
        home = os.environ | {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
        with subprocess.Popen(command, cwd=folder, env=home, stderr=subprocess.PIPE) as process:
            try:
                listens(process, port)
                yield Proxy(lodge, port, trusting)
            finally:
                process.terminate()
                process.communicate(timeout=60)


#: Programs that did not come up once: further tests do not wait for them again.
broken: dict[str, str] = {}


def listens(process: "subprocess.Popen[bytes]", port: int) -> None:
    """Return when the proxy accepts."""
    name, patience = str(process.args[0]), time.monotonic() + 30  # type: ignore[index]  # a list here
    while process.poll() is None and time.monotonic() < patience:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 5):
            return
    process.kill()
    assert process.stderr is not None
    broken[name] = f"{name} does not listen: {process.stderr.read().decode()}"
    pytest.fail(broken[name])


@pytest.fixture(params=[nginx, caddy], ids=lambda begin: begin.__name__)
def proxy(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Proxy]:
    name = request.param.__name__
    if shutil.which(name) is None:
        pytest.skip(f"NOT TESTED behind {name}: it is not installed (apt-get install {name})")
    with proxy_before_api(request.param, tmp_path) as made:
        yield made


@pytest.fixture
def behind_nginx(tmp_path: Path) -> Iterator[Proxy]:
    if shutil.which("nginx") is None:
        pytest.skip("NOT TESTED behind nginx: it is not installed (apt-get install nginx)")
    with proxy_before_api(nginx, tmp_path) as made:
        yield made


def test_requests_pass_with_the_address_and_scheme_of_their_client(proxy: Proxy) -> None:
    right = proxy.lodge.token("viewer", "acme")
    answer = proxy.ask("/me", right)
    assert answer.status_code == 200
    assert "strict-transport-security" in answer.headers, "Lodger knows that it was TLS"
    forged = {"x-forwarded-for": "192.0.2.7", "forwarded": "for=192.0.2.7"}
    guesses = [proxy.ask("/me", f"lodger_{number}", "127.0.0.2", headers=forged).status_code for number in range(12)]
    assert 429 in guesses, "what a client says of its address is not believed"
    assert proxy.ask("/me", "lodger_x", "127.0.0.3").status_code == 401, "another address is counted by itself"
    assert proxy.ask("/me", right, "127.0.0.2").status_code == 200


def test_the_path_of_a_scripts_url_is_in_no_log(behind_nginx: Proxy, tmp_path: Path) -> None:
    for path in ("/in/a-credential", "/me"):
        assert behind_nginx.ask(path, "none").status_code in {401, 404, 405}
    for path in ("/in/a-credential", "/me"):
        answer = behind_nginx.ask(path, "none", method="POST", content=b"x" * 5_000_000)
        assert answer.status_code == 413, "which nginx writes to its log of errors"
    logs = {name: (tmp_path / f"{name}.log").read_text() for name in ("access", "error")}
    assert all("/api/v1/me" in text and "a-credential" not in text for text in logs.values()), logs


def test_slow_headers_end_at_the_proxy(proxy: Proxy) -> None:
    with proxy.connect() as slow:
        slow.sendall(b"GET /api/v1/me HTTP/1.1\r\nHo")
        assert b"200" not in read_to_end(slow), "the connection ends"
    with proxy.connect() as silent:
        assert b"200" not in read_to_end(silent)


def test_a_gigabyte_is_refused(proxy: Proxy) -> None:
    token = proxy.lodge.token("admin")
    for path in ("scripts/x", "scripts/x/module"):
        with proxy.connect() as one:
            head = [f"PUT /api/v1/tenants/acme/{path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {token}",
                    "Content-Type: application/json", f"Content-Length: {1 << 30}", "Connection: close", "", ""]  # fmt: skip
            with suppress(OSError):
                one.sendall("\r\n".join(head).encode() + b"x" * 65536)
            answer = read_to_end(one)
        assert answer == b"" or b" 413 " in answer.split(b"\r\n")[0], answer[:200]
    module = proxy.ask("/tenants/acme/scripts/x/module", token, method="PUT", content=b"\0asm" + b"x" * 5_000_000,
                       headers={"content-type": "application/wasm"})  # fmt: skip
    assert (module.status_code, module.json()["code"]) == (422, "module_refused"), "5 MB of a module reach Lodger"


def test_a_live_stream_passes_as_it_is_written(proxy: Proxy) -> None:
    shown = {"authorization": f"Bearer {proxy.lodge.token('viewer', 'acme')}"}
    with (
        httpx2.Client(verify=proxy.trusting, trust_env=False, timeout=60) as http,
        http.stream("GET", f"{proxy.url}/tenants/acme/live", headers=shown) as answer,
    ):
        lines = answer.iter_lines()
        assert next(lines).startswith(":")
        proxy.lodge.engine.actions.run_now("acme", "s")
        assert any(line == "event: action" for line in lines)


def test_a_live_stream_continues_through_a_proxy_after_its_last_event(proxy: Proxy) -> None:
    """A connection that is cut in the middle of a log repeats no line and leaves none out when it is opened again."""
    asked = proxy.lodge.engine.actions.run_now("acme", "s")
    worked(proxy.lodge, logs=tuple(LogLine("info", str(number), number) for number in range(6)))
    shown = {"authorization": f"Bearer {proxy.lodge.token('viewer', 'acme')}"}
    texts: list[str] = []
    with httpx2.Client(verify=proxy.trusting, trust_env=False, timeout=60) as http:
        while True:
            with http.stream("GET", f"{proxy.url}/tenants/acme/actions/{asked.id}/live", headers=shown) as answer:
                if answer.status_code == 204:
                    break
                events = 0
                for line in answer.iter_lines():
                    name, _, value = line.partition(": ")
                    if name == "id":
                        shown["last-event-id"] = value
                    elif name == "data":
                        events += 1
                        texts.append(json.loads(value).get("text", "the end"))
                        if events == 2:
                            break
    assert texts == ["0", "1", "2", "3", "4", "5", "the end"]


def test_one_address_holds_no_more_than_its_share(behind_nginx: Proxy) -> None:
    proxy, token = behind_nginx, behind_nginx.lodge.token("viewer", "acme")
    request = f"GET /api/v1/tenants/acme/live HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n"
    with ExitStack() as streams:
        for _ in range(5):
            stream = streams.enter_context(proxy.connect())
            stream.sendall(request.encode())
            assert b"200" in stream.recv(4096)
        assert proxy.ask("/me", token).status_code == 429
        assert proxy.ask("/me", token, "127.0.0.2").status_code == 200, "another address is served"
