"""How an attempt ends inside the worker, and the few shapes of text that the host writes without the json module."""


class Over(Exception):
    """The answer left; nothing of the guest may run any more."""


class Stopped(Exception):
    """The attempt ends here with an outcome that the host found."""

    def __init__(self, outcome: str, name: str, message: str, about: bytes = b"") -> None:
        self.outcome = outcome
        self.error_name = name
        self.message = message
        self.about = about


def quoted(text: str) -> str:
    """Write text as a JSON string, without the json module."""
    out = []
    for letter in text:
        code = ord(letter)
        if letter in '"\\':
            out.append("\\" + letter)
        elif code < 32 or 0xD800 <= code < 0xE000:
            out.append(f"\\u{code:04x}")
        else:
            out.append(letter)
    return '"' + "".join(out) + '"'


def cut(text: bytes, maximum: int) -> bytes:
    """Give the longest start of UTF-8 text that fits, with a mark when something was cut."""
    if len(text) <= maximum:
        return text
    mark = "…".encode()
    return text[: max(maximum - len(mark), 0)].decode("utf-8", "ignore").encode() + mark
