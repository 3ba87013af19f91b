"""Settings of the zygote as one message: names and texts without secrets or tenant data."""

#: Runs of a code path before any worker is forked: the interpreter specialises code after eight runs, and again where that failed.
REHEARSALS = 24


def encode(settings: "dict[str, str]") -> bytes:
    """Return settings as one message: name, NUL, text, NUL, …"""
    for name, text in settings.items():
        if "\0" in name or "\0" in text:
            raise ValueError(f"setting {name!r} has a NUL character")
    return b"".join(f"{name}\0{text}\0".encode() for name, text in settings.items())


def decode(message: bytes) -> "dict[str, str]":
    """Return the settings from a message that :func:`encode` has made."""
    words = message.decode().split("\0")[:-1]
    return dict(zip(words[0::2], words[1::2], strict=True))
