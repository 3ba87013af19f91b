"""The host of the suite: a table of harmless calls, and what a careless host would do in its place."""

import asyncio
import json
import traceback
import unicodedata
from typing import Any

from lodger.sandbox import prescan
from lodger.sandbox.job import LogLine, Reply
from lodger.sandbox.limits import Limits

#: Stands for everything of the host that a script must not see; the runner makes a new one for each run.
SECRET_NAME = "LODGER_ESCAPE_CANARY"  # noqa: S105 - a name, and no real secret


class Switchboard:
    """Answers ``echo``, ``hold``, ``nothing``, ``late``, ``large``, ``whoami``; everything else is an unknown call.

    Attributes:
        asked: every call as it came.
        facts: how many of them were answered.
        held: set when a script waits in ``hold``.
        release: lets it go on.
    """

    #: Never said to a script by an honest host.
    _private = "a private attribute of the host"

    def __init__(self, limits: Limits, *, naive: bool = False) -> None:
        self._limits = limits
        self._naive = naive
        self.asked: list[tuple[str, str]] = []
        self.facts: dict[str, str] = {"answered": "0"}
        self.lines: list[LogLine] = []
        self.held = asyncio.Event()
        self.release = asyncio.Event()

    def log(self, line: LogLine) -> None:
        """Keep a bounded number of lines; ``hold`` is how a command, which can call nobody, says that it waits."""
        if len(self.lines) < 10_000:
            self.lines.append(line)
        if line.text == "hold":
            self.held.set()

    async def call(self, name: str, arguments: str) -> Reply:
        """Answer one call."""
        if len(self.asked) < 10_000:
            self.asked.append((name, arguments[:4096]))
        reply = await (self._careless if self._naive else self._careful)(name, arguments)
        self.facts["answered"] = str(int(self.facts["answered"]) + reply.ok)
        return reply

    async def _careful(self, name: str, arguments: str) -> Reply:
        answer = {
            "echo": self._echo,
            "hold": self._hold,
            "nothing": self._nothing,
            "late": self._late,
            "large": self._large,
            "whoami": self._whoami,
        }.get(name)
        if answer is None:
            return _refusal("unknown_call", "there is no such call")
        try:
            value = prescan.parse(
                arguments.encode(), max_bytes=self._limits.frame_bytes, max_depth=self._limits.json_depth
            )
        except prescan.JsonRefused as refused:
            return _refusal("bad_request", str(refused))
        return await answer(value)

    async def _echo(self, value: Any) -> Reply:  # noqa: ANN401 - any JSON value
        return Reply(True, json.dumps(value))

    async def _nothing(self, _value: Any) -> Reply:  # noqa: ANN401 - any JSON value
        return Reply(True, "null")

    async def _hold(self, _value: Any) -> Reply:  # noqa: ANN401 - any JSON value
        self.held.set()
        await self.release.wait()
        return Reply(True, "null")

    async def _late(self, _value: Any) -> Reply:  # noqa: ANN401 - any JSON value
        await asyncio.Event().wait()
        raise AssertionError

    async def _large(self, value: Any) -> Reply:  # noqa: ANN401 - any JSON value
        size = value if isinstance(value, int) and 0 <= value <= 16 << 20 else 0
        return Reply(True, json.dumps("x" * size))

    async def _whoami(self, _value: Any) -> Reply:  # noqa: ANN401 - any JSON value
        return Reply(True, '"escape"')

    async def _careless(self, name: str, arguments: str) -> Reply:
        """Attribute by name, lenient parser, exception text in the answer: the mistakes that the real side does not make."""
        try:
            value = self._bound(json.loads(arguments))
            if name == "whoami" and isinstance(value, dict):
                return Reply(True, json.dumps(value.get("tenant")))
            method = getattr(self, f"_{name}", None) or getattr(self, name)
            if callable(method):
                answer = method(value)
                return await answer if asyncio.iscoroutine(answer) else Reply(True, json.dumps(repr(answer)))
            return Reply(True, json.dumps(repr(method)))
        except Exception:  # noqa: BLE001 - the point of it
            return Reply(False, json.dumps({"code": "error", "message": traceback.format_exc()}))

    def _bound(self, value: Any) -> Any:  # noqa: ANN401 - any JSON value
        """What a binding of another engine did to values: 32-bit integers, texts to their NUL, one normal form, formats filled in."""
        if isinstance(value, bool):
            return value
        if isinstance(value, int):
            return (value + 2**31) % 2**32 - 2**31
        if isinstance(value, str):
            text = unicodedata.normalize("NFKC", value.partition("\0")[0].encode("utf-8", "replace").decode())
            if text.isdigit():
                return str(int(float(text)))
            return text % (self, self, self, 0) if text.count("%") == 4 else text.format(self)
        if isinstance(value, list):
            return [self._bound(item) for item in value]
        if isinstance(value, dict):
            return {self._bound(key): self._bound(item) for key, item in value.items() if key != "__proto__"}
        return value


def _refusal(code: str, message: str) -> Reply:
    return Reply(False, json.dumps({"code": code, "message": message}))
