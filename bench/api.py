"""Load and abuse of the HTTP API: a server in a process of its own, a thousand clients in another, hostile ones, and a neighbour.

``PYTHONPATH=.dev python bench/api.py [--clients 1000] [--seconds 10] [--json]``; talks to the loopback only. Ends with 1 when a promise
does not hold: an answer of 5xx that is no refusal, memory beyond its bound, a neighbour who waits much longer than on a quiet server.
"""

import argparse
import asyncio
import contextlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neighbour import waited_ms

from lodger.engine.sync import Engine

#: Tenants that are many clients, and those that are a neighbour.
TENANTS, NEIGHBOURS = 20, 5
#: Promises: the memory of the server in any phase, and how many times the quiet p99 a neighbour waits at most, or a quarter of a second.
MEMORY_BYTES, SLOWED = 300 * 1024 * 1024, 5
PATIENT_S = 0.25
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


@dataclass
class Phase:
    """What one phase found."""

    name: str
    answers: Counter[str] = field(default_factory=Counter)
    took_ms: list[float] = field(default_factory=list)
    seconds: float = 0.0
    memory: int = 0
    neighbour_ms: list[float] = field(default_factory=list)
    #: For how long the processes of the neighbour and of the server could not run because others did, all questions together.
    neighbour_waited_ms: float = 0.0
    server_waited_ms: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        return {
            "phase": self.name,
            "answers": dict(self.answers),
            "per_s": round(sum(self.answers.values()) / self.seconds, 1) if self.seconds else 0,
            "p50_ms": _at(self.took_ms, 50),
            "p99_ms": _at(self.took_ms, 99),
            "memory_mib": round(self.memory / 2**20, 1),
            "neighbour_p50_ms": _at(self.neighbour_ms, 50),
            "neighbour_p99_ms": _at(self.neighbour_ms, 99),
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
                engine.scripts.put(tenant, "job", "export default () => 1")
                engine.schedules.create(tenant, "s", script="job", rules="every 1h")
                tokens.append(engine.tokens.create(tenant, "editor", tenant).text)
        settings = {
            "PORT": "0",
            "CONNECTIONS": "4000",
            "REQUESTS_PER_MINUTE": "1000000",
            "FAILURES_PER_MINUTE": "10000",
        }
        env = os.environ | {f"LODGER_API_{name}": value for name, value in settings.items()}
        command = [sys.executable, "-m", "lodger.engine.cli", "up", "--role", "api", "--db", place, "--json"]
        log = subprocess.DEVNULL
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=log, text=True) as process:
            assert process.stdout is not None
            try:
                told = (json.loads(line) for line in process.stdout)
                url = next(said["url"] for said in told if said.get("kind") == "listening")
                yield Server(int(url.rpartition(":")[2]), process.pid, tokens[:TENANTS], tokens[TENANTS:])
            finally:
                process.terminate()


def request(method: str, path: str, token: str, body: bytes = b"", *headers: str) -> bytes:
    """Give the bytes of one request."""
    lines = [f"{method} /api/v1{path} HTTP/1.1", "Host: bench", f"Authorization: Bearer {token}", *headers]
    if body or method != "GET":
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def answer(reader: asyncio.StreamReader) -> tuple[str, bool]:
    """Read one answer; give its status, and whether the connection goes on."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = next((int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")), 0)
    await reader.readexactly(length)
    return head[9:12].decode(), b"connection: close" not in head


class Client:
    """One connection that asks again and again, and connects anew when it was ended."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, sent: bytes) -> str:
        try:
            if self._streams is None:
                self._streams = await asyncio.open_connection("127.0.0.1", self._server.port)
            reader, writer = self._streams
            writer.write(sent)
            status, goes_on = await answer(reader)
        except (OSError, asyncio.IncompleteReadError):
            status, goes_on = "cut", False
        if not goes_on:
            self.close()
        return status

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def phase(server: Server, name: str, clients: int, seconds: float) -> Phase:
    """Carry out a phase in one process and the neighbour in another, while the memory of the server is looked at from this one."""
    made, over = Phase(name), asyncio.Event()
    begin = time.perf_counter() + START_S
    told = {"port": server.port, "begin": begin, "end": begin + seconds}
    sent = [
        request("GET", f"/tenants/t{TENANTS + number}/schedules", token, b"", "Connection: close").decode("latin-1")
        for number, token in enumerate(server.neighbours)
    ]
    said = {"port": server.port, "pid": server.pid, "tokens": server.tokens, "neighbours": []}
    working = [__file__, "--work", name, "--clients", str(clients), "--seconds", str(seconds), "--at", str(begin)]

    async def watch() -> None:
        while not over.is_set():
            made.memory = max(made.memory, server.resident())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), 0.05)

    watching, before = asyncio.create_task(watch()), waited_ms(server.pid)
    worked, asked = await asyncio.gather(
        _child([sys.executable, *working], said),
        _child([sys.executable, str(Path(__file__).with_name("neighbour.py"))], told | {"sent": sent}),
    )
    made.seconds, made.server_waited_ms = time.perf_counter() - begin, waited_ms(server.pid) - before
    over.set()
    await watching
    made.answers.update(worked["answers"])
    made.took_ms = worked["took_ms"]
    made.neighbour_ms, made.neighbour_waited_ms = asked["took_ms"], asked["waited_ms"]
    made.answers.update({f"neighbour {status}": count for status, count in asked["answers"].items() if status != "200"})
    return made


async def _child(command: list[str], said: dict[str, Any]) -> dict[str, Any]:
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    out, _ = await child.communicate(json.dumps(said).encode())
    found: dict[str, Any] = json.loads(out)
    return found


async def quiet(_server: Server, _made: Phase, _clients: int, end: float) -> None:
    await asyncio.sleep(max(0.0, end - time.perf_counter()))


async def crowd(server: Server, made: Phase, clients: int, end: float) -> None:
    """Every client asks for a schedule, and each tenth time for a run, as fast as it is answered."""

    async def one(number: int) -> None:
        tenant = number % TENANTS
        token, client = server.tokens[tenant], Client(server)
        reads = request("GET", f"/tenants/t{tenant}/schedules/s", token)
        writes = request("POST", f"/tenants/t{tenant}/schedules/s/run-now", token, b"{}")
        turn = number
        while time.perf_counter() < end:
            begun = time.perf_counter()
            made.answers[await client.ask(writes if turn % 10 == 0 else reads)] += 1
            made.took_ms.append((time.perf_counter() - begun) * 1000)
            turn += 1
        client.close()

    await asyncio.gather(*(one(number) for number in range(clients)))


async def slow(server: Server, made: Phase, clients: int, end: float) -> None:
    """A third sends its headers letter by letter, a third a body that does not come, a third reads nothing."""

    async def one(number: int) -> None:
        token, tenant = server.tokens[number % TENANTS], f"t{number % TENANTS}"
        with contextlib.suppress(OSError):
            _reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            whole = request("PUT", f"/tenants/{tenant}/scripts/x", token, b"x" * 1000)
            if number % 3 == 2:
                writer.write(request("GET", f"/tenants/{tenant}/schedules", token) * 50)
            elif number % 3 == 1:
                writer.write(whole[:-990])
            for letter in whole:
                if time.perf_counter() > end or writer.is_closing():
                    break
                if number % 3 == 0:
                    writer.write(bytes([letter]))
                await asyncio.sleep(0.5)
            writer.close()
        made.answers["slow"] += 1

    await asyncio.gather(*(one(number) for number in range(clients)))


async def uploads(server: Server, made: Phase, _clients: int, end: float) -> None:
    """Bodies of a gigabyte, with their length told or in chunks without end."""
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"

    async def one(number: int) -> None:
        head = f"PUT /api/v1/tenants/t{number % TENANTS}/scripts/x HTTP/1.1\r\nHost: b\r\nContent-Type: application/json\r\n"
        head += f"Authorization: Bearer {server.tokens[number % TENANTS]}\r\n"
        told = "Content-Length: 1073741824" if number % 2 else "Transfer-Encoding: chunked"
        while time.perf_counter() < end:
            status = "cut"
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
                answered = asyncio.create_task(answer(reader))
                writer.write(f"{head}{told}\r\n\r\n".encode())
                with contextlib.suppress(OSError):
                    while not answered.done():
                        writer.write(chunk)
                        await writer.drain()
                status, _ = await answered
                writer.close()
            made.answers[status] += 1

    await asyncio.gather(*(one(number) for number in range(20)))


async def hostile(server: Server, made: Phase, _clients: int, end: float) -> None:
    """Deep and heavy JSON, tricks in paths, other people's things, guessed tokens, smuggled and endless headers."""
    deep = b'{"source": ' + b"[" * 500_000 + b"]" * 500_000 + b"}"
    heavy = b'{"params": [' + b'{"a":1},' * 120_000 + b"1]}"

    async def one(number: int) -> None:
        tenant = number % TENANTS
        token, client = server.tokens[tenant], Client(server)
        sent = [
            request("PUT", f"/tenants/t{tenant}/scripts/x", token, deep),
            request("POST", f"/tenants/t{tenant}/schedules/s/run-now", token, heavy),
            request("GET", f"/tenants/t{tenant}/scripts/..%2f..%2ft0", token),
            request("GET", f"/tenants/t{(tenant + 1) % TENANTS}/scripts", token),
            request("GET", "/tenants/" + "x" * 20_000, token),
            request("GET", f"/tenants/t{tenant}/schedules?cursor=" + "A" * 4000, token),
            request("GET", "/me", "lodger_" + "a" * 54),
            b"POST /api/v1/session HTTP/1.1\r\nHost: b\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
            b"GET /api/v1/me HTTP/1.1\r\nHost: b\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
        ]
        turn = number
        while time.perf_counter() < end:
            begun = time.perf_counter()
            made.answers[await client.ask(sent[turn % len(sent)])] += 1
            made.took_ms.append((time.perf_counter() - begun) * 1000)
            turn += 1
        client.close()

    await asyncio.gather(*(one(number) for number in range(20)))


Work = Callable[[Server, Phase, int, float], Coroutine[Any, Any, None]]
WORK: dict[str, Work] = {"quiet": quiet, "crowd": crowd, "slow": slow, "uploads": uploads, "hostile": hostile}


async def work(name: str, clients: int, at: float, seconds: float) -> None:
    """Carry out one phase's work, in the process that was made for it."""
    server, made = Server(**json.load(sys.stdin)), Phase(name)
    await asyncio.sleep(max(0.0, at - time.perf_counter()))
    await WORK[name](server, made, clients, at + seconds)
    sys.stdout.write(json.dumps({"answers": made.answers, "took_ms": made.took_ms}))


def broken(phases: list[Phase]) -> list[str]:
    """Say which promises did not hold."""
    found = []
    quiet = _at(phases[0].neighbour_ms, 99) or 0.0
    for each in phases:
        most = max(quiet * SLOWED, PATIENT_S * 1000)
        said = _at(each.neighbour_ms, 99) or 0.0
        if said > most:
            found.append(f"{each.name}: the neighbour's p99 is {said:.0f} ms, above {most:.0f}")
        if each.memory > MEMORY_BYTES:
            found.append(f"{each.name}: the server held {each.memory / 2**20:.0f} MiB")
        found += [
            f"{each.name}: {number} answers {status}"
            for status, number in each.answers.items()
            if (status.startswith("5") and status != "503") or status.startswith("neighbour")
        ]
    return found


async def measure(clients: int, seconds: float, names: list[str]) -> list[Phase]:
    """Carry out phases on one server, the quiet one first."""
    with served() as server:
        return [await phase(server, name, clients, seconds) for name in dict.fromkeys(["quiet", *names])]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", action="append", choices=[*WORK], help="only this phase, beside the quiet one")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--at", type=float, default=0.0, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(files[1], asked.clients * 2 + 5000), files[1]))
    if asked.work:
        asyncio.run(work(asked.work, asked.clients, asked.at, asked.seconds))
        return 0
    phases = asyncio.run(measure(asked.clients, asked.seconds, asked.only or [*WORK]))
    wrong = broken(phases)
    if asked.json:
        sys.stdout.write(json.dumps({"phases": [each.as_dict() for each in phases], "broken": wrong}) + "\n")
    else:
        for each in phases:
            sys.stdout.write("  ".join(f"{name} {value}" for name, value in each.as_dict().items()) + "\n")
        sys.stdout.write("\n".join(wrong or ["every promise held"]) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
