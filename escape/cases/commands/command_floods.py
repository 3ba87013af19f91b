"""Classes 24 and 27 for commands: floods of standard output and standard error, limited on both sides of the socket."""

from functools import partial
from typing import Any

from lodger.escape.modules import command, commands_of, data, text_bytes

_FLOOD = "(loop $l (call $out (i32.const {fd}) (i32.const 1024) (i32.const {size})) (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const {times}))))"


def _flood(text: str, times: str, stream: str = "1") -> dict[str, Any]:
    """Return a command that writes a text many times."""
    body = _FLOOD.format(fd=stream, size=text_bytes(text), times=times)
    return {"wasm": partial(command, body, extra=data(1024, text), locals_="(local $i i32)")}


CASES = [*commands_of(__file__, flood=_flood)]
