"""WebAssembly commands for attacks: assembled from text by the pinned wasmtime, or built from bytes where text is not possible."""

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal

from lodger.engine.core.settings import load
from lodger.escape.attack_files import cases_of, texts
from lodger.escape.case import COMMANDS, Case
from lodger.sandbox.errors import SandboxError
from lodger.sandbox.runtimes.command.wasi import SIGNATURES, SPACE
from lodger.sandbox.runtimes.command.wasm_engine import MAGIC
from lodger.sandbox.runtimes.js.artefact import find_library, writable_folder
from lodger.sandbox.runtimes.js.rejections import leb

_COMPILE_S = 60
_MEMORY = '(memory (export "memory") 1)'
_TYPES = {"i": "i32", "I": "i64"}
_NAMED = re.compile(r"\$([a-z_]+)\b")

#: $out writes bytes to a stream, $say writes one number as JSON, $in reads the input to an address and returns its length,
#: $hold logs "hold" and sleeps for 0.4 seconds.
_HELPERS = texts(__file__, "helpers", ".wat")


def wat(body: str, *, memory: str = _MEMORY, extra: str = "", locals_: str = "", imports: str = "") -> str:
    """Return the text of a command with ``body`` as its _start; it may call WASI's functions and the helpers above."""
    text = body + extra
    helpers = ""
    for name, helper in _HELPERS.items():
        if f"${name}" in _words(text + helpers):
            helpers += helper
    named = _words(text + helpers)
    granted = "".join(importing(SPACE, name, *SIGNATURES[name]) for name in SIGNATURES if f"${name}" in named)
    return f'(module {imports} {granted} {memory} {helpers} {extra} (func $start (export "_start") {locals_} {body}))'


def _words(text: str) -> set[str]:
    """Return the names that a module's text uses."""
    return {f"${name}" for name in _NAMED.findall(text)}


def importing(space: str, name: str, parameters: str, results: str) -> str:
    """Return the text that imports a function; each character of a signature stands for a type: i for i32, I for i64."""
    given, answered = ("".join(f" {_TYPES[letter]}" for letter in types) for types in (parameters, results))
    return f'(import "{space}" "{name}" (func ${name} (param{given}) (result{answered})))'


@lru_cache(maxsize=1024)
def assemble(text: str) -> bytes:
    """Return the module assembled from a text."""
    from wasmtime import wat2wasm

    return bytes(wat2wasm(text))


def command(body: str, *, memory: str = _MEMORY, extra: str = "", locals_: str = "", imports: str = "") -> bytes:
    """Return an assembled command with ``body`` as its _start."""
    return assemble(wat(body, memory=memory, extra=extra, locals_=locals_, imports=imports))


def commands_of(
    module: str, *, checks: Mapping[str, Any] | None = None, **made: Callable[..., dict[str, Any]]
) -> Iterator[Case]:
    """Yield the cases of a module's file of WebAssembly text.

    A row's text is the body of a command, unless ``made`` says otherwise, and its parts are arguments of :func:`command`.
    """
    common = {"runtimes": COMMANDS, "made": "command"}
    made = {"command": lambda body, **parts: {"wasm": partial(command, body, **parts)}} | made
    return cases_of(module, ".wat", checks=checks, common=common, **made)


_BEGIN = "import sys\nsys.path.insert(0, {root!r})\n"
_COMPILER = """
from ctypes import string_at
from lodger.sandbox.runtimes.command.wasm_engine import COMMANDS
from lodger.sandbox.runtimes.libwasmtime import GUEST, Library
library = Library(sys.argv[1])
code = library.machine_code(library.module(library.engine(ENGINE), sys.stdin.buffer.read()))
sys.stdout.buffer.write(string_at(code.data, code.size))
"""


def compile_module(module: bytes, engine: Literal["COMMANDS", "GUEST"] = "COMMANDS") -> bytes:
    """Return a module's machine code for one of the two engines, compiled in a process of its own. Raises SandboxError."""
    import lodger

    program = _BEGIN.format(root=str(Path(lodger.__file__).parents[1])) + _COMPILER.replace("ENGINE", engine)
    command = [sys.executable, "-I", "-S", "-c", program, str(find_library())]
    done = subprocess.run(command, input=module, capture_output=True, timeout=_COMPILE_S, check=False, cwd="/")  # noqa: S603 - our own interpreter
    if done.returncode:
        raise SandboxError("compile_failed", "an attack could not be compiled", why=done.stderr.decode()[-300:])
    return done.stdout


def write_cached(name: str, content: bytes) -> Path:
    """Write a file into the cache of realms, whole or not at all, and return its path."""
    place = writable_folder(load().cache_dir) / name
    with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as fresh:
        fresh.write(content)
    return Path(fresh.name).replace(place)


def data(at: int, text: str) -> str:
    """Return a data segment; ``text`` uses the assembler's escapes."""
    return f'(data (i32.const {at}) "{text}")'


def escaped(text: str) -> str:
    """Return a text with every byte as an escape of the assembler."""
    return "".join(f"\\{byte:02x}" for byte in text.encode())


def text_bytes(text: str) -> int:
    """Return the number of bytes of an assembler text: an escape is a backslash and two digits, or a backslash and n."""
    return len(text) - 2 * text.count("\\") + text.count("\\n")


def section(kind: int, content: bytes) -> bytes:
    """Return one section of the binary format."""
    return bytes((kind,)) + leb(len(content)) + content


def functions(*bodies: bytes, times: int = 1) -> bytes:
    """Return a command of functions without parameters, with the bodies repeated ``times``; the first is _start."""
    count = leb(len(bodies) * times)
    code = b"".join(leb(len(body)) + body for body in bodies) * times
    types, memory = section(1, b"\1\x60\0\0"), section(5, b"\1\0\1")
    declared = section(3, count + bytes(len(bodies) * times))
    exported = section(7, b"\2\x06memory\2\0\x06_start\0\0")
    return MAGIC + types + declared + memory + exported + section(10, count + code)


def neighbour() -> bytes:
    """Return the benign command of another tenant."""
    # Returns its input, and what WASI reports of folders, arguments and environment, which must be empty.
    return command(texts(__file__, "neighbour", ".wat")["body"], extra=data(1024, "[,]"), locals_="(local $n i32)")
