"""What the launcher tells the zygote: names and texts in one message, no secret, nothing of a tenant."""

#: How often a path is walked before any worker is born: the interpreter specialises code that ran eight times, and then again where
#: that failed.
REHEARSALS = 24


def encode(settings: "dict[str, str]") -> bytes:
    """Give the message: name, NUL, text, NUL, …"""
    for name, text in settings.items():
        if "\0" in name or "\0" in text:
            raise ValueError(f"setting {name!r} holds a NUL")
    return b"".join(f"{name}\0{text}\0".encode() for name, text in settings.items())


def decode(message: bytes) -> "dict[str, str]":
    """Read the message back."""
    words = message.decode().split("\0")[:-1]
    return dict(zip(words[0::2], words[1::2], strict=True))
