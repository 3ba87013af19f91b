"""Compare stock ASGI servers in front of one small application: slow headers, idle connections, large bodies, memory, requests a second.

``python bench/developer/http_servers.py [--server uvicorn-h11 --server uvicorn-httptools --server granian] [--seconds 5]``. Each
server runs in a process group of its own on the loopback; granian and httptools must be installed to be measured. The result is discussed
in ``docs/decisions/0002-http-server.md``.
"""

import argparse
import asyncio
import contextlib
import json
import os
import resource
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: The longest body that the application takes, bytes, and the body that it is sent.
MAX_BODY, HUGE = 4 * 1024 * 1024, 1 << 30
#: How long slow headers are watched, seconds.
SLOW_S = 45.0
IDLE = 1000

SERVERS = {
    "uvicorn-h11": ["uvicorn", "http_servers:app", "--http", "h11"],
    "uvicorn-httptools": ["uvicorn", "http_servers:app", "--http", "httptools"],
    "granian": ["granian", "--interface", "asgi", "http_servers:app", "--http", "1", "--workers", "1"],
}
EXTRA = {
    "uvicorn": ["--no-access-log", "--loop", "asyncio", "--lifespan", "off", "--log-level", "critical"],
    "granian": ["--no-access-log", "--loop", "asyncio", "--no-ws", "--log-level", "critical"],
}


async def app(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - as ASGI defines them
    """Answer 200 after the body, 413 as soon as it is longer than :data:`MAX_BODY`."""
    if scope["type"] != "http":
        return
    size, more = 0, True
    while more and size <= MAX_BODY:
        message = await receive()
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    status = 413 if size > MAX_BODY else 200
    headers = [(b"content-length", b"2"), *([(b"connection", b"close")] if status == 413 else [])]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"ok"})


def group_memory(group: int) -> int:
    """Return the resident memory of a process group, bytes."""
    total = 0
    for each in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.getpgid(int(each.name)) == group:
                total += int((each / "statm").read_text().split()[1]) * 4096
    return total


@contextlib.contextmanager
def serving(name: str) -> Iterator[tuple[int, int]]:
    """Yield the port and the process group of a running server."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", *SERVERS[name], "--host", "127.0.0.1", "--port", str(port)]
    command += EXTRA[SERVERS[name][0]]
    with subprocess.Popen(
        command, cwd=Path(__file__).parent, start_new_session=True, stderr=subprocess.DEVNULL
    ) as server:
        try:
            for _ in range(200):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5):
                    break
                time.sleep(0.05)
            yield port, server.pid
        finally:
            os.killpg(server.pid, signal.SIGKILL)


def ask(port: int) -> float:
    """Return the milliseconds of one request on a new connection."""
    begin = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port), 30) as one:
        one.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        while one.recv(4096):
            pass
    return (time.perf_counter() - begin) * 1000


def slow_headers(port: int) -> dict[str, Any]:
    """Send one letter of a header every second on 50 connections; return when the server ended them."""
    slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(50)]
    begin, ended = time.perf_counter(), []
    for each in slow:
        each.setblocking(False)
        each.sendall(b"GET / HTTP/1.1\r\nX-Slow: ")
    while slow and time.perf_counter() - begin < SLOW_S:
        time.sleep(1)
        for each in tuple(slow):
            try:
                each.sendall(b"a")
                closed = each.recv(4096) == b""
            except BlockingIOError:
                closed = False
            except OSError:
                closed = True
            if closed:
                ended.append(time.perf_counter() - begin)
                slow.remove(each)
    for each in slow:
        each.close()
    return {"slow_ended": len(ended), "slow_ended_s": round(statistics.median(ended), 1) if ended else None}


def idle(port: int, group: int) -> dict[str, Any]:
    """Open idle connections; return the memory that each costs and the time of a request beside them."""
    before = group_memory(group)
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(IDLE)]
    took = [ask(port) for _ in range(50)]
    held = group_memory(group) - before
    for each in silent:
        each.close()
    return {"idle_kib_each": round(held / IDLE / 1024, 1), "beside_idle_p50_ms": round(statistics.median(took), 2)}


def huge(port: int, group: int, *, chunked: bool) -> dict[str, Any]:
    """Send 1 GiB; return how much was taken and by how much the server's memory grew."""
    name = "chunked" if chunked else "length"
    before = peak = group_memory(group)
    length = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % HUGE
    piece = (b"10000\r\n" + b"x" * 65536 + b"\r\n") if chunked else b"x" * 65536
    sent, answer, looked = 0, b"", time.perf_counter()
    with socket.create_connection(("127.0.0.1", port), 30) as one:
        one.sendall(b"POST / HTTP/1.1\r\nHost: a\r\n" + length + b"\r\n\r\n")
        with contextlib.suppress(OSError):
            while sent < HUGE:
                one.sendall(piece)
                sent += 65536
                if time.perf_counter() - looked > 0.05:
                    peak, looked = max(peak, group_memory(group)), time.perf_counter()
        with contextlib.suppress(OSError):
            answer = one.recv(4096)
    peak = max(peak, group_memory(group))
    return {
        f"huge_{name}_sent_mib": sent >> 20,
        f"huge_{name}_grew_mib": round((peak - before) / 2**20, 1),
        f"huge_{name}_answer": answer[9:12].decode(),
    }


async def throughput(port: int, seconds: float) -> dict[str, Any]:
    """Ask on 50 kept connections for a while."""
    end, done = time.perf_counter() + seconds, 0

    async def client() -> None:
        nonlocal done
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() < end:
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await reader.readuntil(b"ok")
            done += 1
        writer.close()

    await asyncio.gather(*(client() for _ in range(50)))
    return {"requests_per_s": round(done / seconds)}


def measure(name: str, seconds: float) -> dict[str, Any]:
    """Return all figures of one server."""
    found: dict[str, Any] = {"server": name}
    with serving(name) as (port, group):
        ask(port)
        found["resident_mib"] = round(group_memory(group) / 2**20, 1)
        found |= asyncio.run(throughput(port, seconds))
        found |= idle(port, group)
        found |= huge(port, group, chunked=False)
        found |= huge(port, group, chunked=True)
        found |= slow_headers(port)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--server", action="append", choices=[*SERVERS])
    parser.add_argument("--seconds", type=float, default=5)
    arguments = parser.parse_args()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    for name in arguments.server or SERVERS:
        sys.stdout.write(json.dumps(measure(name, arguments.seconds)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
