"""Helpers that run a snippet in a worker of the probe runtime, without some walls."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.escape.matrix.pools import WeakPool

from lodger.escape.runner import started
from lodger.sandbox import Bundle, Job, Limits, Report
from lodger.sandbox.job import LogLine, Reply

PROBE = str(Path(__file__).with_name("probe_runtime.py"))


class Echo:
    """Host that answers every call with its name and keeps log lines."""

    def __init__(self) -> None:
        self.lines: list[LogLine] = []
        self.asked: list[tuple[str, str]] = []

    async def call(self, name: str, arguments: str) -> Reply:
        self.asked.append((name, arguments))
        return Reply(True, f'"{name}"')

    def log(self, line: LogLine) -> None:
        self.lines.append(line)


def probe_pool(without: Iterable[str] = (), **other: Any) -> WeakPool:
    """Return a pool whose workers execute Python code, without some walls."""
    weak = {"runtime_path": PROBE, "without": " ".join(without), **other.pop("settings", {})}
    return WeakPool(weak, size=other.pop("size", 1), profile=other.pop("profile", "trusted"), **other)


def probe_job(code: str, context: str = "{}", **limits: int) -> Job:
    return Job(Bundle({"main.js": code}, context), Limits(**limits))


def probe(code: str, without: Iterable[str] = (), host: Any = None, context: str = "{}", **limits: int) -> Report:
    """Run Python code in a worker without some walls; return its report."""

    async def go() -> Report:
        async with started(probe_pool(without)) as pool:
            return await pool.run(probe_job(code, context, **limits), host or Echo())

    return asyncio.run(go())
