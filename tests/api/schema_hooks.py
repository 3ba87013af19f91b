"""What schemathesis is told about this API: how a WebAssembly module is sent."""

from typing import Any

import schemathesis


@schemathesis.serializer("application/wasm")
def as_bytes(_context: Any, value: Any) -> bytes:
    """Return a value as bytes, as schemathesis asks for the body of this media type."""
    return value if isinstance(value, bytes) else str(value).encode()
