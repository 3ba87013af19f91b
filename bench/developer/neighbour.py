"""Neighbouring clients that send a request now and then, in a process of their own with a higher scheduling priority.

Each asks every :data:`EVERY_S` seconds whether the question before was answered or not, on a new connection, as a browser's first
is: an answer that takes a second is counted beside those that were asked meanwhile. The process says for how long it could itself not
run, because others held the processor: that much of the figure is not the server's.
"""

import asyncio
import contextlib
import json
import os
import sys
import time
from collections import Counter
from itertools import cycle
from pathlib import Path
from typing import Any

EVERY_S = 0.5
#: Not the attackers' address, by which a reverse proxy tells them apart.
ADDRESS = "127.0.0.9"
#: Ahead of the crowd's processes and of the server, where that is allowed: what is measured is the server.
NICE = -10


def waited_ms(pid: int | str = "self") -> float:
    """Milliseconds for which the main thread of a process was ready to run and did not."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e6


async def ask(port: int, sent: bytes) -> str:
    """Ask once on a connection of its own; give the status."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(ADDRESS, 0))
        writer.write(sent)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = next((int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")), 0)
        await reader.readexactly(length)
        writer.close()
    except (OSError, asyncio.IncompleteReadError):
        return "cut"
    return head[9:12].decode()


async def work(port: int, sent: list[bytes], begin: float, end: float) -> dict[str, Any]:
    """Ask in the name of each, in turn, from ``begin`` to ``end``, instants of the machine's clock."""
    took_ms: list[float] = []
    answers: Counter[str] = Counter()

    async def one(due: float, sent: bytes) -> None:
        answers[await ask(port, sent)] += 1
        took_ms.append((time.perf_counter() - due) * 1000)

    for each in sent:
        await ask(port, each)  # the first costs what is made once
    due, requests, turn = begin, [], cycle(sent)
    while due < end:
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        requests.append(asyncio.create_task(one(due, next(turn))))
        due += EVERY_S / len(sent)
    await asyncio.gather(*requests)
    return {"took_ms": took_ms, "answers": answers, "waited_ms": waited_ms()}


def main() -> None:
    """Take one line of JSON, ask, write one line of JSON."""
    with contextlib.suppress(OSError):
        os.nice(NICE)
    request = json.load(sys.stdin)
    done = asyncio.run(
        work(request["port"], [each.encode("latin-1") for each in request["sent"]], request["begin"], request["end"])
    )
    sys.stdout.write(json.dumps(done))


if __name__ == "__main__":
    main()
