"""Classes 4 and 12: modules that are not part of the script, and code that is not source text.

The loader knows only the bundle. The matrix replaces it by one that reads any file; then the walls of the process must hold, and the attack
may succeed only without those.
"""

import json

from lodger.escape.attack_files import attacks, cases_of
from lodger.escape.case import GUEST, Case, cases
from lodger.escape.evidence import answers, where
from lodger.sandbox.outcome import Outcome

_TRY = dict(attacks(__file__)["shared"])["try"]

_PROCESS = ("seccomp", "landlock", "root", "namespaces", "uid")
_STORY = "A module specifier names a file of the host."

_NAMES = (
    ("std", "std"),
    ("os", "os"),
    ("bjson", "bjson"),
    ("qjs-std", "qjs:std"),
    ("qjs-os", "qjs:os"),
    ("node-fs", "node:fs"),
    ("fs", "fs"),
    ("child-process", "child_process"),
    ("bun", "bun:ffi"),
    ("deno", "ext:core/mod.js"),
    ("file-url", "file:///etc/passwd"),
    ("http-url", "http://127.0.0.1/x.js"),
    ("https-url", "https://example.org/x.js"),
    ("data-url", "data:text/javascript,export default 'owned'"),
    ("blob-url", "blob:null/1"),
    ("up", "../../../../../../etc/passwd"),
    ("up-dots", "./../.././../etc/passwd"),
    ("encoded-up", "%2e%2e/%2e%2e/etc/passwd"),
    ("backslash", "..\\..\\etc\\passwd"),
    ("nul", "./other.js\\u0000.txt"),
    ("proc-self", "/proc/self/environ"),
    ("proc-root", "/proc/1/root/etc/passwd"),
    ("dev", "/dev/stdin"),
    ("dot", "."),
    ("slash", "/"),
    ("native", "./native.so"),
    ("json", "./package.json"),
    ("wasm", "./module.wasm"),
    ("eval-script", "eval_script"),
    ("input", "<input>"),
    ("self-query", "main.js?x"),
    ("self-hash", "main.js#x"),
    ("proto", "__proto__"),
    ("constructor", "constructor"),
)


_BYTES = (
    ("bytecode", "a module that begins like engine bytecode", "\x01\x02\x43\x02\x00export default 1"),
    ("wasm", "a module that begins like WebAssembly", "\x00asm\x01\x00\x00\x00"),
    ("elf", "a module that begins like a program", "\x7fELF\x02\x01\x01"),
    ("bytecode-old", "a module that begins like bytecode of another engine", "\x02\x01export default 1"),
)
_CHECKS = {
    "nothing_of_the_host": where("nothing of the host", lambda names: not any("/" in str(name) for name in names))
}

CASES = [
    *cases_of(__file__, checks=_CHECKS),
    *(
        Case(
            f"A4-name-{mark}",
            "loader",
            f"import() of the name {mark}",
            _TRY.replace("NAME", f'"{name}"' if "\\u" in name else json.dumps(name)),
            seen=answers("refused"),
            story="Names of built-in modules of other hosts, and of the glue, cannot be imported.",
            behind=_PROCESS,
            runtimes=GUEST,
        )
        for mark, name in _NAMES
    ),
    *cases(
        "A12",
        "source_text",
        _BYTES,
        lambda blob: {"modules": {"blob.js": blob}},
        script="try { return (await import('./blob.js')).default ?? 'refused'; } catch { return 'refused'; }",
        expect=(Outcome.OK, Outcome.BAD_REQUEST, Outcome.COMPILE_ERROR),
        seen=answers("refused"),
        story="Compiled code is not accepted: a module is source text.",
        runtimes=GUEST,
    ),
]
