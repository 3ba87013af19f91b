"""Modules that run instead of the JavaScript engine, as if a script had taken the engine over by a memory error.

Like a compromised engine, the module has its own memory and may call the host functions with any pointers and lengths. It is compiled in a
separate process, like the real one.
"""

import hashlib
from functools import lru_cache
from pathlib import Path

from lodger.engine.core.settings import load
from lodger.escape.modules import assemble, compile_module, importing, write_cached
from lodger.sandbox.runtimes.js import artefact
from lodger.sandbox.runtimes.js.guest import _EXPORTS, TABLE
from lodger.sandbox.runtimes.js.machine import _IMPORTS

#: Number of parameters of the engine's exports; 0 for others.
_PARAMETERS = {
    "qjs_alloc": 1,
    "qjs_free": 2,
    "get_string": 1,
    "new_string": 2,
    "new_function": 2,
    "set_prop": 4,
    "get_prop": 4,
    "eval_code": 3,
    "call_function": 5,
    "last_exception": 1,
    "free_value": 1,
}
#: Addresses that the host reads from realm.numbers.
_NUMBERS = "start=1 settle=2 tick=2 stuck=2 halted=2 touch=2 undefined=1 scratch=1024 seed=2048 interrupt_counter=3072"
#: Whether a script is started by an attempt, not by the rehearsal: its result limit does not begin with the digit 1.
_NO_REHEARSAL = "(i32.ne (i32.load8_u (i32.const 4097)) (i32.const 49))"
#: Results of exports; 0 for others.
_PLAIN = {"qjs_alloc": "(i32.const 4096)", "new_string": "(i32.const 1)", "qjs_last_ptr": "(i32.const 8192)"}


def guest(attack: str, *, answers: dict[str, str] | None = None, extra: str = "") -> bytes:
    """Return a module with the engine's imports and exports.

    Args:
        attack: instructions to run when the host starts the script; they leave nothing on the stack.
        answers: results of other exports, each an expression of an i32.
        extra: further items of the module.
    """
    given = {**_PLAIN, **(answers or {})}
    imports = "".join(importing(*each) for each in _IMPORTS)
    exports = "".join(
        _export(name, given.get(name, "(i32.const 0)"))
        for name in (*_EXPORTS, "new_undefined")
        if name != "call_function"
    )
    attacking = f"(i32.and (i32.eq (local.get 0) (i32.const 1)) {_NO_REHEARSAL})"
    entry = (
        '(func (export "call_function") (param i32 i32 i32 i32 i32) (result i32)'
        f" (if {attacking} (then {attack})) (i32.store (local.get 4) (i32.const 0)) (i32.const 0))"
    )
    return assemble(
        f"""(module {imports} (memory (export "memory") 18)
        (table (export "{TABLE}") 1 funcref)
        (global (export "__stack_pointer") (mut i32) (i32.const 1048576)) {exports} {extra} {entry})"""
    )


def _export(name: str, answer: str) -> str:
    """Return an export that gives a fixed answer."""
    parameters = "(param" + " i32" * _PARAMETERS.get(name, 0) + ")"
    return f'(func (export "{name}") {parameters} (result i32) {answer})'


def settings(module: bytes) -> dict[str, str]:
    """Return settings with which a zygote of ``quickjs`` loads the module instead of the engine. Raises SandboxError."""
    return {"artefact": str(_compiled(module)), "numbers": _NUMBERS}


@lru_cache(maxsize=256)
def _compiled(module: bytes) -> Path:
    """Return the file of a module, compiled as the realm of ``quickjs`` is."""
    key = hashlib.sha256(module + artefact.realm_key([]).encode()).hexdigest()[:32]
    place = artefact.writable_folder(load().cache_dir) / f"{key}-owned.cwasm"
    if place.exists() and artefact.is_ours(place):
        return place
    return write_cached(place.name, compile_module(module, "GUEST"))
