"""A rehearsal: a fixed script run in a spare realm, so that lazily created state exists before the first job."""

from lodger.sandbox.child.settings import REHEARSALS
from lodger.sandbox.frames import BUNDLE_PART, HEADER_FIELDS, SEED_FIELDS

LIMITS = dict.fromkeys(HEADER_FIELDS, 1 << 20) | {
    "cpu_ms": 1000,
    "memory_bytes": 16 << 20,
    "now_us": 1,
    "replays": 0,
    **dict.fromkeys(SEED_FIELDS, 1),
}
_TEXT = b"""export default async ({ action }) => {
  console.log("rehearsal", { action });
  const parts = [];
  for (const n of [1, 2, 3]) parts.push({ n, text: `${n * 1.5}` });
  await null;
  try { throw new Error("rehearsed"); } catch (error) { console.error(error); }
  return { parts, at: new Date() };
}
"""
SCRIPT = b"".join(
    BUNDLE_PART.pack(len(name), len(text)) + name + text for name, text in ((b"", b"{}"), (b"main.js", _TEXT))
)

__all__ = ["LIMITS", "REHEARSALS", "SCRIPT", "NullChannel"]


class NullChannel:
    """A channel that discards every frame."""

    def send(self, kind: int, payload: bytes) -> None:
        """Discard the frame."""

    def answer(self, kind: int, payload: bytes) -> None:
        """Discard the frame."""

    def receive(self) -> "tuple[int, bytes]":
        """Raise RuntimeError: a rehearsal makes no calls."""
        raise RuntimeError("a rehearsal makes no calls")

    def wait(self, timeout_ms: int) -> bool:
        """Return False: no frame arrives."""
        return False
