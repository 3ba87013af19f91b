"""Exceptions that end an attempt inside the worker, and text helpers that do without the json module."""


class Answered(Exception):
    """The answer was sent; the guest must not run again."""


class Stopped(Exception):
    """The attempt ends with this outcome."""

    def __init__(self, outcome: str, name: str, message: str, details: bytes = b"") -> None:
        self.outcome = outcome
        self.error_name = name
        self.message = message
        self.details = details


def quoted(text: str) -> str:
    """Return text as a JSON string, without the json module."""
    out = []
    for character in text:
        code = ord(character)
        if character in '"\\':
            out.append("\\" + character)
        elif code < 32 or 0xD800 <= code < 0xE000:
            out.append(f"\\u{code:04x}")
        else:
            out.append(character)
    return '"' + "".join(out) + '"'


def cut(text: bytes, maximum: int) -> bytes:
    """Return UTF-8 text cut to a maximum of bytes, with a mark if it was cut."""
    if len(text) <= maximum:
        return text
    mark = "…".encode()
    return text[: max(maximum - len(mark), 0)].decode("utf-8", "ignore").encode() + mark
