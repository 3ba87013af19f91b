"""Classes 4 and 12: modules that are not part of the script, and code that is not source text.

The loader knows only the bundle. The matrix replaces it by one that reads any file; then the walls of the process must hold, and the attack
may succeed only without those.
"""

import json

from lodger.escape.case import GUEST, Case, cases
from lodger.escape.evidence import all_different, answers, where
from lodger.sandbox.outcome import Outcome

_PROCESS = ("seccomp", "landlock", "root", "namespaces", "uid")
_REFUSED = (Outcome.COMPILE_ERROR, Outcome.SCRIPT_ERROR)
_STORY = "A module specifier names a file of the host."

#: Spellings of the name; PATH is the canary file or a system file.
_WAYS = (
    ("static", "a static import", "import text from 'PATH';\nexport default () => text;", _REFUSED),
    (
        "static-attribute",
        "a static import with a type",
        "import text from 'PATH' with { type: 'json' };\nexport default () => text;",
        _REFUSED,
    ),
    ("star", "a star export", "export * from 'PATH';\nexport default () => 1;", _REFUSED),
    ("dynamic", "import()", "return (await import('PATH')).default;", _REFUSED),
    (
        "dynamic-caught",
        "import() whose refusal is caught",
        "try { return (await import('PATH')).default; } catch { return 'refused'; }",
        (Outcome.OK,),
    ),
    (
        "eval",
        "import() inside eval",
        "try { return (await (0, eval)(`import('PATH')`)).default; } catch { return 'refused'; }",
        (Outcome.OK,),
    ),
    (
        "function",
        "import() inside a made function",
        "try { return (await new Function(`return import('PATH')`)()).default; } catch { return 'refused'; }",
        (Outcome.OK,),
    ),
    (
        "timer",
        "import() from a timer",
        "return await new Promise((r) => setTimeout(() => import('PATH').then((m) => r(m.default), () => r('refused')), 1));",
        (Outcome.OK,),
    ),
    (
        "computed",
        "import() of a computed name",
        "try { return (await import(['', ...'PATH'.split('/').slice(1)].join('/'))).default; } catch { return 'refused'; }",
        (Outcome.OK,),
    ),
)
_FILES = (
    ("canary", "CANARY_PATH", "the canary file"),
    ("passwd", "/etc/passwd", "a file of the system"),
)
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


def _file_case(way: tuple[str, str, str, tuple[Outcome, ...]], file: tuple[str, str, str]) -> Case:
    """Return the case in which a script imports a file of the host in one way."""
    name, mechanism, script, expect = way
    mark, path, what = file
    return Case(
        f"A4-{mark}-{name}",
        "loader",
        f"{mechanism} of {what}",
        script.replace("PATH", path),
        expect,
        seen=answers("refused"),
        story=_STORY,
        behind=_PROCESS,
        runtimes=GUEST,
    )


_TRY = """
try {{
  const found = await import({name});
  const names = Object.getOwnPropertyNames(found).filter((n) => n !== 'default');
  return names.length === 0 && (found.default === undefined || typeof found.default === 'function' && String(found.default).includes('own main')) ? 'refused' : names;
}} catch {{ return 'refused'; }}
/* own main */
"""
_BYTES = (
    ("bytecode", "a module that begins like engine bytecode", "\x01\x02\x43\x02\x00export default 1"),
    ("wasm", "a module that begins like WebAssembly", "\x00asm\x01\x00\x00\x00"),
    ("elf", "a module that begins like a program", "\x7fELF\x02\x01\x01"),
    ("bytecode-old", "a module that begins like bytecode of another engine", "\x02\x01export default 1"),
)

CASES = [
    *(_file_case(way, file) for way in _WAYS for file in _FILES),
    *(
        Case(
            f"A4-name-{mark}",
            "loader",
            f"import() of the name {mark}",
            _TRY.format(name=f'"{name}"' if "\\u" in name else json.dumps(name)),
            seen=answers("refused"),
            story="Names of built-in modules of other hosts, and of the glue, cannot be imported.",
            behind=_PROCESS,
            runtimes=GUEST,
        )
        for mark, name in _NAMES
    ),
    Case(
        "A4-meta",
        "empty_meta",
        "import.meta",
        "export default () => Object.getOwnPropertyNames(import.meta).concat(Object.values(import.meta).map(String));",
        seen=where("nothing of the host", lambda names: not any("/" in str(name) for name in names)),
        story="A module learns no path about itself.",
        runtimes=GUEST,
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
    Case(
        "A14-random",
        "reseed",
        "the first random number of twenty workers",
        "return Math.random();",
        seen=all_different,
        story="Forks of one process draw the same numbers unless each is seeded again.",
        tries=20,
    ),
    Case(
        "A14-random-late",
        "reseed",
        "the hundredth random number of ten workers",
        "for (let i = 0; i < 99; i++) Math.random(); return Math.random();",
        seen=all_different,
        story="Forks of one process draw the same numbers unless each is seeded again.",
        tries=10,
    ),
]
