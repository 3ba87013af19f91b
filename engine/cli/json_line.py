"""One line of JSON as an answer to a program; nothing here imports more than that needs."""

from __future__ import annotations

import json
import re
import sys
from datetime import datetime

TYPE_CHECKING = False  # what typing.TYPE_CHECKING is, without importing typing
if TYPE_CHECKING:
    from typing import Any, TextIO

UNSEEN = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"


def write_json(body: Any, out: TextIO | None = None) -> None:  # noqa: ANN401 - anything that JSON can say
    """Write one line of JSON; with escapes where the stream's encoding lacks a letter, or it is half of a pair."""
    stream = out or sys.stdout
    text = json.dumps(body, ensure_ascii=False, default=_plain)
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(body, default=_plain)
    # A program reads the same letters; a terminal that shows the line to a person is not repainted by them.
    stream.write(re.sub(UNSEEN, _escaped, text) + "\n")


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _plain(value: object) -> Any:  # noqa: ANN401 - anything that JSON can say
    if isinstance(value, datetime):
        return zulu(value)
    for name in ("as_dict", "_asdict"):
        if hasattr(value, name):
            return getattr(value, name)()
    from dataclasses import asdict, is_dataclass

    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, set | frozenset | tuple):
        return sorted(value) if not isinstance(value, tuple) else list(value)
    return str(value)


def zulu(instant: datetime) -> str:
    """Write an aware instant as RFC 3339 with Z, without empty fractions."""
    from datetime import UTC

    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")
