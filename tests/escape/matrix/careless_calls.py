"""A careless host, for the matrix only: attribute lookup by name, a lenient parser, exception texts in replies."""

import asyncio
import json
import traceback
import unicodedata
from typing import Any

from lodger.escape.switchboard import Switchboard
from lodger.sandbox.job import Reply
from lodger.sandbox.limits import Limits


class CarelessSwitchboard(Switchboard):
    """A switchboard that calls any of its attributes by name."""

    _private = _careless = "a private attribute of the host"

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._limits = limits

    async def answer(self, name: str, arguments: str) -> Reply:
        """Answer a call by attribute lookup, with a lenient parser and exception texts."""
        try:
            value = self._bound(json.loads(arguments))
            if name == "whoami" and isinstance(value, dict):
                return Reply(True, json.dumps(value.get("tenant")))
            method = getattr(self, name)
            if callable(method):
                answer = method(value)
                return await answer if asyncio.iscoroutine(answer) else Reply(True, json.dumps(repr(answer)))
            return Reply(True, json.dumps(repr(method)))
        except Exception:
            return Reply(False, json.dumps({"code": "error", "message": traceback.format_exc()}))

    def _bound(self, value: Any) -> Any:
        """Return a value changed as by other engines' bindings: 32-bit integers, texts cut at NUL, normalised, with formats applied."""
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
