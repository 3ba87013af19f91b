"""Load and abuse of the HTTP API: a server in a process of its own, a thousand clients in another, hostile ones, and a neighbour.

``python bench/developer/api.py [--proxy] [--clients 1000] [--seconds 10] [--json] [--check]``; talks to the loopback only.
With ``--proxy`` nginx stands before the server, with ``deploy/nginx.conf`` on plain HTTP; the attackers share an address, the neighbours
have another.

A machine of two cores is slower for everybody while a thousand clients compute on it. So each attack is carried out twice: on a server
that does next to nothing (``sink``), while the neighbour asks its own quiet server, and on the neighbour's server.

``--check`` ends with 1 when a promise does not hold: an answer of 5xx that is no refusal, memory beyond its bound, and behind the proxy a
neighbour that waits much longer than beside the same attack on the sink.
"""

import argparse
import asyncio
import contextlib
import json
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from attackers import WORK, request
from neighbour import waited_ms

from lodger.engine.sync import Engine

#: Tenants that are many clients, and those that are a neighbour.
TENANTS, NEIGHBOURS = 20, 5
#: Promises: the memory of the server in any phase, and behind the proxy how many times as long as beside the sink, or quietly where that
#: is longer, a neighbour waits at most (p50, p99); what is below the floor, ms, is quick enough.
MEMORY_BYTES = 200 * 1024 * 1024
SLOWED = {50: 4.0, 99: 4.0}
FLOOR_MS = {50: 50.0, 99: 100.0}
#: Seconds that the processes of a phase have to start in.
START_S = 2.5


@dataclass
class Server:
    """Where a server answers, and tokens of several tenants."""

    port: int
    pid: int
    tokens: list[str]
    neighbours: list[str]

    def resident(self) -> int:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * 4096

    def cpu_ms(self) -> float:
        """CPU time of the process so far, milliseconds."""
        of = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(of[11]) + int(of[12])) * 1000 / os.sysconf("SC_CLK_TCK")


@dataclass
class Phase:
    """Measurements of one phase: the attacked server, and the answer times of a neighbour of ``server``."""

    name: str
    aim: str
    answers: Counter[str] = field(default_factory=Counter)
    took_ms: list[float] = field(default_factory=list)
    seconds: float = 0.0
    memory: int = 0
    cpu_ms: float = 0.0
    neighbour_ms: list[float] = field(default_factory=list)
    #: For how long the processes of the neighbour and of the server could not run because others did, all questions together.
    neighbour_waited_ms: float = 0.0
    server_waited_ms: float = 0.0

    def neighbour(self, percent: int) -> float:
        return _at(self.neighbour_ms, percent) or 0.0

    def as_dict(self) -> dict[str, Any]:
        return {
            "phase": self.name,
            "aim": self.aim,
            "answers": dict(self.answers),
            "per_s": round(sum(self.answers.values()) / self.seconds, 1) if self.seconds else 0,
            "p50_ms": _at(self.took_ms, 50),
            "p99_ms": _at(self.took_ms, 99),
            "memory_mib": round(self.memory / 2**20, 1),
            "cpu_ms": round(self.cpu_ms),
            "neighbour_p50_ms": self.neighbour(50),
            "neighbour_p99_ms": self.neighbour(99),
            "neighbour_asked": len(self.neighbour_ms),
            "neighbour_waited_ms": round(self.neighbour_waited_ms),
            "server_waited_ms": round(self.server_waited_ms),
        }


def _at(values: list[float], percent: int) -> float | None:
    if len(values) < 2:
        return values[0] if values else None
    return round(statistics.quantiles(values, n=100, method="inclusive")[percent - 1], 2)


@contextlib.contextmanager
def served() -> Iterator[Server]:
    """Furnish a ledger, serve it in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        place, tokens = f"{folder}/ledger.db", []
        with Engine.open(place) as engine:
            for number in range(TENANTS + NEIGHBOURS):
                tenant = f"t{number}"
                engine.tenants.create(tenant)
                engine.scripts.put(tenant, "job", "export default () => 1", force=True)
                engine.schedules.create(tenant, "s", script="job", rules="every 1h")
                tokens.append(engine.tokens.create(tenant, "editor", tenant_id=tenant).text)
        settings = {
            "PORT": "0",
            "CONNECTIONS": "4000",
            "REQUESTS_PER_MINUTE": "1000000",
            "TENANT_REQUESTS_PER_MINUTE": "1000000",
            "FAILURES_PER_MINUTE": "10000",
        }
        env = os.environ | {f"LODGER_API_{name}": value for name, value in settings.items()}
        env |= {"LODGER_TRUSTED_PROXIES": "127.0.0.1"}
        command = [sys.executable, "-m", "lodger.engine.cli", "up", "--role", "api", "--db", place, "--json"]
        log = subprocess.DEVNULL
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=log, text=True) as process:
            assert process.stdout is not None
            try:
                lines = (json.loads(line) for line in process.stdout)
                url = next(line["url"] for line in lines if line.get("kind") == "listening")
                yield Server(int(url.rpartition(":")[2]), process.pid, tokens[:TENANTS], tokens[TENANTS:])
            finally:
                process.terminate()


@contextlib.contextmanager
def proxied(server: Server) -> Iterator[Server]:
    """Put nginx before a server."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        site = (Path(__file__).parents[2] / "deploy" / "nginx.conf").read_text()
        site = site.replace("listen 443 ssl;", f"listen 127.0.0.1:{port} backlog=4096;").replace(
            "127.0.0.1:8750", f"127.0.0.1:{server.port}"
        )
        site = "".join(line for line in site.splitlines(keepends=True) if not line.lstrip().startswith("ssl_"))
        kept = "".join(
            f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        user = "user root;" if os.geteuid() == 0 else ""
        main = (
            f"{user} daemon off; pid {folder}/pid; error_log /dev/null; worker_processes 1; worker_rlimit_nofile 20000;"
        )
        main += f"events {{ worker_connections 8192; }} http {{ access_log off; {kept} {site} }}"
        Path(folder, "nginx.conf").write_text(main)
        with subprocess.Popen(["nginx", "-p", folder, "-c", f"{folder}/nginx.conf"]) as process:
            try:
                while process.poll() is None:
                    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                        break
                yield replace(server, port=port)
            finally:
                process.terminate()


@contextlib.contextmanager
def sink() -> Iterator[Server]:
    """Serve next to nothing in a process of its own."""
    command = [sys.executable, str(Path(__file__).with_name("bystander.py"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Server(int(process.stdout.readline()), process.pid, ["lodger_" + "b" * 54] * TENANTS, [])
        finally:
            process.terminate()


async def phase(server: Server, aim: tuple[str, Server], name: str, clients: int, seconds: float) -> Phase:
    """Attack ``aim`` from one process while a neighbour asks ``server`` from another, and the memory of the server is looked at."""
    made, over = Phase(name, aim[0]), asyncio.Event()
    begin = time.perf_counter() + START_S
    end = begin + seconds
    asks = [
        request("GET", f"/tenants/t{TENANTS + number}/schedules", token, b"", "Connection: close").decode("latin-1")
        for number, token in enumerate(server.neighbours)
    ]
    folder = Path(__file__).parent
    attack = [str(folder / "attackers.py"), "--kind", name, "--clients", str(clients), "--begin", str(begin)]

    async def watch() -> None:
        while not over.is_set():
            made.memory = max(made.memory, server.resident())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), 0.05)

    watching, before, computed = asyncio.create_task(watch()), waited_ms(server.pid), server.cpu_ms()
    attacked, beside = await asyncio.gather(
        _child([sys.executable, *attack, "--end", str(end)], {"port": aim[1].port, "tokens": aim[1].tokens}),
        _child(
            [sys.executable, str(folder / "neighbour.py")],
            {"port": server.port, "begin": begin, "end": end, "sent": asks},
        ),
    )
    made.seconds, made.server_waited_ms = time.perf_counter() - begin, waited_ms(server.pid) - before
    made.cpu_ms = server.cpu_ms() - computed
    over.set()
    await watching
    made.answers.update(attacked["answers"])
    made.took_ms = attacked["took_ms"]
    made.neighbour_ms, made.neighbour_waited_ms = beside["took_ms"], beside["waited_ms"]
    made.answers.update(
        {f"neighbour {status}": count for status, count in beside["answers"].items() if status != "200"}
    )
    return made


async def _child(command: list[str], request: dict[str, Any]) -> dict[str, Any]:
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    out, _ = await child.communicate(json.dumps(request).encode())
    found: dict[str, Any] = json.loads(out)
    return found


def compared(phases: list[Phase]) -> list[dict[str, Any]]:
    """Return for each attack the neighbour's wait as a multiple of the quiet one and of the one beside the same attack on ``sink``."""
    of = {(each.name, each.aim): each for each in phases}
    quiet = of["quiet", "server"]
    ratios = []
    for each in phases:
        if each.aim != "server" or each is quiet:
            continue
        beside = {"quiet": quiet, "sink": of[each.name, "sink"]}
        ratios.append(
            {"phase": each.name}
            | {
                f"p{percent}_to_{aim}": round(each.neighbour(percent) / max(0.1, other.neighbour(percent)), 2)
                for aim, other in beside.items()
                for percent in (50, 99)
            }
        )
    return ratios


def broken(phases: list[Phase], *, proxy: bool) -> list[str]:
    """Return the promises that did not hold, one sentence each."""
    found = []
    of = {(each.name, each.aim): each for each in phases}
    quiet = of["quiet", "server"]
    for each in phases:
        for percent, times in SLOWED.items() if proxy and each.aim == "server" else ():
            beside = max(quiet.neighbour(percent), of.get((each.name, "sink"), quiet).neighbour(percent))
            bound, waited = max(FLOOR_MS[percent], beside * times), each.neighbour(percent)
            if waited > bound:
                found.append(f"{each.name}: the neighbour's p{percent} is {waited:.0f} ms, above {bound:.0f}")
        if each.memory > MEMORY_BYTES:
            found.append(f"{each.name}: the server held {each.memory / 2**20:.0f} MiB")
        found += [
            f"{each.name}: {number} answers {status}"
            for status, number in each.answers.items()
            if (status.startswith("5") and status != "503") or status.startswith("neighbour")
        ]
    return found


async def measure(clients: int, seconds: float, names: list[str], *, proxy: bool) -> list[Phase]:
    """Carry out each attack on the sink and on the server, the quiet phase first."""
    found = []
    with served() as bare, sink() as trivial, proxied(bare) if proxy else contextlib.nullcontext(bare) as server:
        found.append(await phase(server, ("server", server), "quiet", clients, seconds))
        for name in names:
            for aim, target in (("sink", trivial), ("server", server)):
                found.append(await phase(server, (aim, target), name, clients, seconds))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", action="store_true", help="end with 1 when a promise does not hold")
    parser.add_argument("--only", action="append", choices=[*WORK], help="only this attack, beside the quiet phase")
    parser.add_argument("--proxy", action="store_true", help="put nginx before the server")
    arguments = parser.parse_args()
    if arguments.proxy and shutil.which("nginx") is None:
        parser.error("nginx is not installed")
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(files[1], arguments.clients * 2 + 5000), files[1]))
    names = [name for name in arguments.only or WORK if name != "quiet"]
    phases = asyncio.run(measure(arguments.clients, arguments.seconds, names, proxy=arguments.proxy))
    wrong, ratios = broken(phases, proxy=arguments.proxy), compared(phases)
    if arguments.json:
        report = {"phases": [each.as_dict() for each in phases], "compared": ratios, "broken": wrong}
        sys.stdout.write(json.dumps(report) + "\n")
    else:
        for row in [*(each.as_dict() for each in phases), *ratios]:
            sys.stdout.write("  ".join(f"{name} {value}" for name, value in row.items()) + "\n")
        sys.stdout.write("\n".join(wrong or ["every promise held"]) + "\n")
    return 1 if wrong and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
