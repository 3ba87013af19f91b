"""Attacking clients of a server in a process of their own: a crowd, slow clients, endless uploads, hostile requests.

Reads one line of JSON (address and tokens), sends its requests, writes one line of JSON (the answers).
"""

import argparse
import asyncio
import contextlib
import json
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Target:
    """The attacked server and the tokens to use; token ``n`` belongs to tenant ``tn``."""

    port: int
    tokens: list[str]


@dataclass
class Tally:
    """The answers by status, and the time of each."""

    answers: Counter[str] = field(default_factory=Counter)
    took_ms: list[float] = field(default_factory=list)


def request(method: str, path: str, token: str, body: bytes = b"", *headers: str) -> bytes:
    """Return the bytes of one request."""
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

    def __init__(self, target: Target) -> None:
        self._target = target
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, sent: bytes) -> str:
        try:
            if self._streams is None:
                self._streams = await asyncio.open_connection("127.0.0.1", self._target.port)
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


async def quiet(_target: Target, _tally: Tally, _clients: int, end: float) -> None:
    await asyncio.sleep(max(0.0, end - time.perf_counter()))


async def crowd(target: Target, tally: Tally, clients: int, end: float) -> None:
    """Every client asks for a schedule, and each tenth time for a run, as fast as it is answered."""

    async def one(number: int) -> None:
        tenant = number % len(target.tokens)
        token, client = target.tokens[tenant], Client(target)
        reads = request("GET", f"/tenants/t{tenant}/schedules/s", token)
        writes = request("POST", f"/tenants/t{tenant}/schedules/s/run-now", token, b"{}")
        turn = number
        while time.perf_counter() < end:
            begun = time.perf_counter()
            tally.answers[await client.ask(writes if turn % 10 == 0 else reads)] += 1
            tally.took_ms.append((time.perf_counter() - begun) * 1000)
            turn += 1
        client.close()

    await asyncio.gather(*(one(number) for number in range(clients)))


async def slow(target: Target, tally: Tally, clients: int, end: float) -> None:
    """A third sends its headers letter by letter, a third a body that does not come, a third reads nothing."""

    async def one(number: int) -> None:
        token, tenant = target.tokens[number % len(target.tokens)], f"t{number % len(target.tokens)}"
        with contextlib.suppress(OSError):
            _reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
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
        tally.answers["slow"] += 1

    await asyncio.gather(*(one(number) for number in range(clients)))


async def uploads(target: Target, tally: Tally, _clients: int, end: float) -> None:
    """Bodies of a gigabyte, with their length header or in chunks without end."""
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"

    async def one(number: int) -> None:
        head = f"PUT /api/v1/tenants/t{number % len(target.tokens)}/scripts/x HTTP/1.1\r\nHost: b\r\nContent-Type: application/json\r\n"
        head += f"Authorization: Bearer {target.tokens[number % len(target.tokens)]}\r\n"
        header = "Content-Length: 1073741824" if number % 2 else "Transfer-Encoding: chunked"
        while time.perf_counter() < end:
            status = "cut"
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
                answered = asyncio.create_task(answer(reader))
                writer.write(f"{head}{header}\r\n\r\n".encode())
                with contextlib.suppress(OSError):
                    while not answered.done():
                        writer.write(chunk)
                        await writer.drain()
                status, _ = await answered
                writer.close()
            tally.answers[status] += 1

    await asyncio.gather(*(one(number) for number in range(20)))


async def hostile(target: Target, tally: Tally, _clients: int, end: float) -> None:
    """Deep and heavy JSON, tricks in paths, other people's things, guessed tokens, smuggled and endless headers."""
    deep = b'{"source": ' + b"[" * 500_000 + b"]" * 500_000 + b"}"
    heavy = b'{"params": [' + b'{"a":1},' * 120_000 + b"1]}"

    async def one(number: int) -> None:
        tenant = number % len(target.tokens)
        token, client = target.tokens[tenant], Client(target)
        sent = [
            request("PUT", f"/tenants/t{tenant}/scripts/x", token, deep),
            request("POST", f"/tenants/t{tenant}/schedules/s/run-now", token, heavy),
            request("GET", f"/tenants/t{tenant}/scripts/..%2f..%2ft0", token),
            request("GET", f"/tenants/t{(tenant + 1) % len(target.tokens)}/scripts", token),
            request("GET", "/tenants/" + "x" * 20_000, token),
            request("GET", f"/tenants/t{tenant}/schedules?cursor=" + "A" * 4000, token),
            request("GET", "/me", "lodger_" + "a" * 54),
            b"POST /api/v1/session HTTP/1.1\r\nHost: b\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
            b"GET /api/v1/me HTTP/1.1\r\nHost: b\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
        ]
        turn = number
        while time.perf_counter() < end:
            begun = time.perf_counter()
            tally.answers[await client.ask(sent[turn % len(sent)])] += 1
            tally.took_ms.append((time.perf_counter() - begun) * 1000)
            turn += 1
        client.close()

    await asyncio.gather(*(one(number) for number in range(20)))


Work = Callable[[Target, Tally, int, float], Coroutine[Any, Any, None]]
WORK: dict[str, Work] = {"quiet": quiet, "crowd": crowd, "slow": slow, "uploads": uploads, "hostile": hostile}


async def work(name: str, clients: int, begin: float, end: float, target: Target) -> Tally:
    """Carry out one kind of attack from ``begin`` to ``end``, instants of the machine's clock."""
    tally = Tally()
    await asyncio.sleep(max(0.0, begin - time.perf_counter()))
    await WORK[name](target, tally, clients, end)
    return tally


def main() -> None:
    """Attack."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=[*WORK])
    parser.add_argument("--clients", type=int)
    parser.add_argument("--begin", type=float)
    parser.add_argument("--end", type=float)
    arguments = parser.parse_args()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(files[1], arguments.clients * 2 + 5000), files[1]))
    target = Target(**json.load(sys.stdin))
    tally = asyncio.run(work(arguments.kind, arguments.clients, arguments.begin, arguments.end, target))
    sys.stdout.write(json.dumps({"answers": tally.answers, "took_ms": tally.took_ms}))


if __name__ == "__main__":
    main()
