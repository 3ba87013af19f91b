"""The suite's host: a table of harmless calls."""

import asyncio
import json
from typing import Any

from lodger.sandbox import prescan
from lodger.sandbox.job import LogLine, Reply
from lodger.sandbox.limits import Limits

#: Environment variable with the canary secret of a run.
SECRET_NAME = "ESCAPE_CANARY"  # noqa: S105 - a name, and no real secret


class Switchboard:
    """Host of ``echo``, ``hold``, ``nothing``, ``late``, ``large`` and ``whoami``; any other call is unknown.

    Attributes:
        asked: all received calls.
        facts: the number of answered calls.
        held: set when a script waits in ``hold``.
        release: ends ``hold``.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.asked: list[tuple[str, str]] = []
        self.facts: dict[str, str] = {"answered": "0"}
        self.lines: list[LogLine] = []
        self.held = asyncio.Event()
        self.release = asyncio.Event()

    def log(self, line: LogLine) -> None:
        """Keep a bounded number of lines; a command, which has no calls, logs ``hold`` when it waits."""
        if len(self.lines) < 10_000:
            self.lines.append(line)
        if line.text == "hold":
            self.held.set()

    async def call(self, name: str, arguments: str) -> Reply:
        """Record and answer one call."""
        if len(self.asked) < 10_000:
            self.asked.append((name, arguments[:4096]))
        reply = await self.answer(name, arguments)
        self.facts["answered"] = str(int(self.facts["answered"]) + reply.ok)
        return reply

    async def answer(self, name: str, arguments: str) -> Reply:
        """Answer a call of the table; refuse any other."""
        answer = {
            "echo": self.echo,
            "hold": self.hold,
            "nothing": self.nothing,
            "late": self.late,
            "large": self.large,
            "whoami": self.whoami,
        }.get(name)
        if answer is None:
            return _refusal("unknown_call", "this host call does not exist")
        try:
            value = prescan.parse(
                arguments.encode(), max_bytes=self.limits.frame_bytes, max_depth=self.limits.json_depth
            )
        except prescan.JsonRefused as refused:
            return _refusal("bad_request", str(refused))
        return await answer(value)

    async def echo(self, value: Any) -> Reply:
        """Answer with the value itself."""
        return Reply(True, json.dumps(value))

    async def nothing(self, _value: Any) -> Reply:
        """Answer null."""
        return Reply(True, "null")

    async def hold(self, _value: Any) -> Reply:
        """Wait until the run is released."""
        self.held.set()
        await self.release.wait()
        return Reply(True, "null")

    async def late(self, _value: Any) -> Reply:
        """Never answer."""
        await asyncio.Event().wait()
        raise AssertionError

    async def large(self, value: Any) -> Reply:
        """Answer with a text of the given length."""
        size = value if isinstance(value, int) and 0 <= value <= 16 << 20 else 0
        return Reply(True, json.dumps("x" * size))

    async def whoami(self, _value: Any) -> Reply:
        """Answer with the script's own tenant."""
        return Reply(True, '"escape"')


def _refusal(code: str, message: str) -> Reply:
    """Return the reply of a refused call."""
    return Reply(False, json.dumps({"code": code, "message": message}))
