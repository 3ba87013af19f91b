"""Redaction of secret values in texts for people and scripts, in their common encodings. Best effort.

A script that has a value can always write it backwards. Redaction catches accidents: the value itself, its base64, URL and JSON
encodings, inside longer texts.
"""

import base64
import json
from typing import Any
from urllib.parse import quote, quote_plus

#: Values that are shorter are in half of all texts; secrets are never so short.
SHORTEST = 8


class Redactor:
    """Removes a set of values; false while the set is empty."""

    def __init__(self) -> None:
        self._named: dict[str, str] = {}
        self._forms: list[tuple[bytes, bytes]] = []

    def add(self, name: str, value: str) -> None:
        """Add a secret's value to those that are removed from texts."""
        if self._named.get(name) == value or len(value) < SHORTEST:
            return
        self._named[name] = value
        mark = f"[secret {name}]".encode()
        known = {form for form, _ in self._forms}
        self._forms += [(form, mark) for form in _forms(value) if form not in known]
        # The longest first: a form may hold another.
        self._forms.sort(key=lambda pair: -len(pair[0]))

    def __bool__(self) -> bool:
        return bool(self._forms)

    def bytes(self, data: bytes) -> bytes:
        """Return bytes without the values of secrets."""
        for form, mark in self._forms:
            if form in data:
                data = data.replace(form, mark)
        return data

    def text(self, text: str) -> str:
        """Return a text without the values of secrets."""
        return (
            self.bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass") if self._forms else text
        )

    def value(self, value: Any) -> Any:
        """Return a JSON value without the values of secrets, in keys, texts and numbers; it stays a JSON value."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return [self.value(each) for each in value]
        if isinstance(value, dict):
            return {self.text(key): self.value(each) for key, each in value.items()}
        if isinstance(value, int | float) and not isinstance(value, bool):
            shown = json.dumps(value)
            return value if self.text(shown) == shown else self.text(shown)
        return value

    def json(self, text: str | None) -> str | None:
        """Return JSON text without the values of secrets. It is parsed, because removing a value from the text itself could break the
        JSON."""
        if text is None or not self._forms:
            return text
        found = json.dumps(self.value(json.loads(text)), ensure_ascii=False, separators=(",", ":"))
        return found.encode("utf-8", "backslashreplace").decode()  # halves of surrogate pairs stay, as escapes of JSON


def _forms(value: str) -> set[bytes]:
    """Return the encodings of a secret value that are redacted: as it is, for URLs, JSON, hexadecimal, base64."""
    raw = value.encode()
    found = {raw, quote(value, safe="").encode(), quote_plus(value).encode(), quote(value).encode(), raw.hex().encode()}
    found |= {
        json.dumps(value)[1:-1].encode(),
        json.dumps(value, ensure_ascii=False)[1:-1].encode(),
        raw.hex().upper().encode(),
    }
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for before in range(3):
            # Inside a longer text the value begins at any of three places of a group: what surrounds it changes only the ends.
            coded = encode(b"\0" * before + raw)
            found |= {coded[-(-before * 8 // 6) : (before + len(raw)) * 8 // 6], encode(raw)}
    return {form for form in found if len(form) >= SHORTEST}
