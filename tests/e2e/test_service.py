"""``lodger up`` whole: node and API in two processes, the first token, TLS, and what becomes of one when the other dies."""

import json
import os
import pty
import re
import resource
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
import trustme
from prometheus_client.parser import text_string_to_metric_families
from tests.e2e.command import ROOT
from tests.e2e.ready import CLI, Ready, lodger
from tests.e2e.serving import Up, read_until, up

from lodger.engine.cli.up import MAX_DESCRIPTORS


def first_token(service: Up, folder: Path) -> str:
    if "token_missing" not in {line["kind"] for line in service.seen}:
        service.kind("token_missing")
    made = lodger("token", "first", "--db", "ledger.db", "--json", cwd=folder).json
    return str(made["text"])


def of_api(folder: Path) -> list[int]:
    """Processes that serve this folder's API."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            command = (each / "cmdline").read_bytes()
            if b"--with-parent" in command and Path(os.readlink(each / "cwd")) == folder:
                found.append(int(each.name))
        except OSError:
            continue
    return found


def test_both_roles_from_the_first_token_to_a_run_and_its_figures_and_an_api_that_dies_comes_back(
    tmp_path: Path,
) -> None:
    with up(tmp_path, "--name", "first", LODGER_MIN_INTERVAL_S="1", LODGER_METRICS_PORT="0") as service:
        kinds = {"token_missing", "listening", "metrics", "dashboard"}
        service.until(lambda _line: kinds <= {line["kind"] for line in service.seen})
        reported = {line["kind"]: line for line in service.seen}
        token, url = first_token(service, tmp_path), reported["listening"]["url"]
        assert reported["dashboard"]["url"] == f"{url}/", "what a journal keeps holds no secret"
        linked = lodger("token", "link", "--url", url, "--db", "ledger.db", "--json", cwd=tmp_path)
        link = linked.json["url"]
        (child,) = of_api(tmp_path)
        assert child != service.process.pid
        with httpx2.Client(
            base_url=f"{url}/api/v1", headers={"authorization": f"Bearer {token}"}, trust_env=False, timeout=120
        ) as client:
            assert client.get("/me").json()["role"] == "admin"
            client.post("/tenants", json={"tenant_id": "acme"}).raise_for_status()
            client.put("/tenants/acme/scripts/job", json={"source": "export default () => 'ran'"}).raise_for_status()
            body = {"name": "s", "script": "job", "rules": "every 1s"}
            client.post("/tenants/acme/schedules", json=body).raise_for_status()
            finished = service.kind("finished")
            assert (finished["tenant_id"], finished["outcome"]) == ("acme", "ok")
            done = client.get("/tenants/acme/actions?state=done").json()["items"]
            assert done[0]["result"] == "ran"
            _figures(service, client, url, reported["metrics"]["url"])
        with httpx2.Client(
            headers={"accept": "text/html"}, trust_env=False, timeout=120, follow_redirects=True
        ) as browser:
            assert "Continue" in browser.get(link).text
            assert "Tenants" in browser.get(f"{url}/").text, "the link signs in"
            assert '<a href="/t/acme">' in browser.get(f"{url}/tenants").text
        (second,) = of_api(tmp_path)
        gone = os.pidfd_open(second)
        service.process.send_signal(signal.SIGKILL)
        assert service.process.wait(120) == -signal.SIGKILL
        _ends(gone, "the API outlived its parent")
    with up(tmp_path) as again:
        again.kind("listening")
        assert "token_missing" not in {line["kind"] for line in again.seen}
        os.kill(of_api(tmp_path)[0], signal.SIGKILL)
        assert again.kind("api_ended")["code"] == -9
        url = again.kind("listening")["url"]
        gone = os.pidfd_open(*of_api(tmp_path))
        again.process.send_signal(signal.SIGINT)  # SIGTERM: each test that ends a service
        assert again.process.wait(120) == 0
        _ends(gone, "the API outlived the node")
        with pytest.raises(httpx2.ConnectError):
            httpx2.get(f"{url}/healthz", trust_env=False)


def _ends(process: int, otherwise: str) -> None:
    """Wait until a process has ended, by its descriptor, which is closed."""
    try:
        assert select.select([process], [], [], 60)[0], otherwise
    finally:
        os.close(process)


SECRETS = re.compile(r"lodger_[a-z2-7]{10}_\S+|/sign-in\?code=\S+")


def test_secrets_that_were_not_asked_for_are_printed_to_a_terminal_only(tmp_path: Path) -> None:
    arguments = ["up", "--role", "api", "--port", "0", "--db", "ledger.db"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    with open(os.devnull) as nothing:
        reading, pipe = os.pipe()
        real = [sys.executable, "-m", CLI, *arguments]  # no process that copies a ledger
        with subprocess.Popen(real, stdin=nothing, stdout=pipe, stderr=pipe, env=env, cwd=tmp_path) as piped:
            os.close(pipe)
            text = read_until(reading, "lodger token link --db ledger.db --url http://127.0.0.1:")
            piped.send_signal(signal.SIGTERM)
            assert piped.wait(120) == 0
        os.close(reading)
        assert "the ledger is new and empty: ledger.db" in text
        assert "lodger token first --db ledger.db" in text
        assert SECRETS.findall(text) == []
        controlling, terminal = pty.openpty()
        with Ready(CLI, arguments, (nothing.fileno(), terminal, terminal), env, tmp_path) as shown:
            text = read_until(controlling, "/sign-in?code=")
            shown.send_signal(signal.SIGTERM)
            assert shown.wait(120) == 0
        os.close(terminal)
        os.close(controlling)
        assert len(SECRETS.findall(text)) == 2, "the first administrator's token, and the link"
        assert "is new and empty" not in text
    linked = lodger("token", "link", "--db", "ledger.db", cwd=tmp_path, LODGER_API_PORT="1")
    assert linked.out.startswith("http://127.0.0.1:1/sign-in?code="), linked


def _figures(service: Up, client: httpx2.Client, url: str, own: str) -> None:
    """Prometheus finds the node's figures at the node and at the API."""
    assert _value(httpx2.get(own, trust_env=False).text, "lodger_attempts_total", outcome="ok") >= 1
    for place in (url, own.removesuffix("/metrics")):
        for kind in ("live", "ready"):
            healthy = httpx2.get(f"{place}/health/{kind}", trust_env=False)
            assert (healthy.status_code, healthy.json()) == (200, {"ok": True})
    # A node writes its figures down every ten seconds; each run is a reason to look again.
    for _ in range(60):
        answer = client.get("/metrics/text")
        if _value(answer.text, "lodger_attempts_total", outcome="ok", node="first") >= 1:
            break
        service.kind("finished")
    else:
        raise AssertionError(answer.text)
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert _value(answer.text, "lodger_nodes", state="alive") == 1
    assert _value(answer.text, "process_resident_memory_bytes") > 0, "of the API's own process"
    assert httpx2.get(f"{url}/api/v1/metrics/text", trust_env=False).status_code == 401


def _value(text: str, name: str, **labels: str) -> float:
    samples = [each for family in text_string_to_metric_families(text) for each in family.samples]
    return sum(each.value for each in samples if (each.name, each.labels) == (name, labels))


@pytest.mark.parametrize(
    ("role", "code", "setting"),
    [
        ("all", "trusted_proxies_invalid", {"LODGER_TRUSTED_PROXIES": "my-proxy"}),
        ("all", "keys_missing", {"LODGER_SECRET_KEYS": "absent"}),
        ("node", "keys_missing", {"LODGER_SECRET_KEYS": "absent"}),
        ("node", "certificates_invalid", {"LODGER_EGRESS_CA": "absent"}),
        ("node", "dns_server_invalid", {"LODGER_EGRESS_DNS": "10.0.0.2 10.0.0.3:99999"}),
        ("node", "mail_password_unreadable", {"LODGER_MAIL_HOST": "localhost", "LODGER_MAIL_PASSWORD_FILE": "absent"}),
        ("api", "address_taken", {}),
    ],
)
def test_it_does_not_start_and_says_why(tmp_path: Path, role: str, code: str, setting: dict[str, str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = "0" if setting else str(taken.getsockname()[1])
        ran = lodger("up", "--role", role, "--port", port, "--db", "l.db", "--json", cwd=tmp_path, **setting)
    assert (ran.code, code in ran.out + ran.err) == (1, True)
    assert of_api(tmp_path) == []


def test_tls(tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(tmp_path / "key.pem")
    for part in issued.cert_chain_pems:
        part.write_to_path(tmp_path / "cert.pem", append=True)
    files = {"LODGER_TLS_CERT": str(tmp_path / "cert.pem"), "LODGER_TLS_KEY": str(tmp_path / "key.pem")}
    with up(tmp_path, "--role", "api", **files) as service:
        token = first_token(service, tmp_path)
        url = service.kind("listening")["url"]
        assert url.startswith("https://")
        _, maximum = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE)[0] >= min(MAX_DESCRIPTORS, maximum)
        import ssl

        trusting = ssl.create_default_context()
        authority.configure_trust(trusting)
        with httpx2.Client(verify=trusting, trust_env=False, timeout=120) as client:
            me = client.get(f"{url}/api/v1/me", headers={"authorization": f"Bearer {token}"})
            assert me.status_code == 200
            assert "max-age" in me.headers["strict-transport-security"]
            begun = client.post(f"{url}/api/v1/session", json={"token": token})
            assert begun.headers["set-cookie"].startswith("__Host-lodger=")
            assert "Secure" in begun.headers["set-cookie"]
        with pytest.raises(httpx2.ConnectError), httpx2.Client(trust_env=False) as client:
            client.get(f"{url}/healthz")
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as plain:
            plain.settimeout(120)
            plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
            assert b"200" not in plain.recv(100)
    for wrong in (
        {"LODGER_TLS_CERT": files["LODGER_TLS_CERT"]},
        files | {"LODGER_TLS_KEY": str(tmp_path / "cert.pem")},
    ):
        ran = lodger("up", "--role", "api", "--port", "0", "--db", "l.db", "--json", cwd=tmp_path, **wrong)
        assert ran.code == 1
        assert json.loads(ran.out.splitlines()[-1])["error"]["code"] in {"tls_incomplete", "tls_unreadable"}
