"""Classes 3 and 13: the names of the global scope: no other than the declared ones.

Shared memory and precise clocks, which timing attacks need, do not exist, nor do names of host objects elsewhere.
"""

import json

from lodger.escape.case import NATIVE, SCRIPTS, Case
from lodger.escape.evidence import answers, where
from lodger.sandbox.source_names import LANGUAGE
from lodger.stdlib import declarations

_ABSENT = ("SharedArrayBuffer", "Atomics")
#: Names that the global scope may have: those of ECMAScript, those that authors are told of in the declarations, and the suite's
#: capability. Any other one came with the glue or the engine.
ALLOWED = sorted(
    (LANGUAGE - set(_ABSENT)) | declarations.global_names() | declarations.run_members() | {"bridge", "Intl"}
)

_NAMES = f"const frozen = new Set({json.dumps(ALLOWED)}); return Object.getOwnPropertyNames(globalThis).filter((name) => !frozen.has(name));"
_FINEST = "const clock = globalThis.performance?.now ? () => performance.now() : () => Date.now(); "
#: Names that exist in no realm but in other hosts.
_FOREIGN = [
    "process",
    "require",
    "module",
    "exports",
    "__dirname",
    "Buffer",
    "global",
    "window",
    "self",
    "document",
    "Deno",
    "Bun",
    "std",
    "os",
    "print",
    "scriptArgs",
    "WebAssembly",
    "importScripts",
    "load",
    "read",
]


CASES = [
    Case(
        "A3-globals",
        "removed_globals",
        "the list of global names",
        _NAMES,
        seen=answers([]),
        story="The global scope has no name but the declared ones.",
    ),
    Case(
        "A3-globals-host",
        "host_names",
        "the list of global names, for functions of the host",
        _NAMES,
        seen=answers([]),
        story="The glue's functions are removed from the global scope before a script starts.",
    ),
    *(
        Case(
            f"A13-no-{name.lower()}",
            "removed_globals",
            f"{name} as a clock or shared memory",
            f"return [typeof globalThis.{name}, typeof new Function('return this')().{name}, '{name}' in globalThis];",
            seen=answers(["undefined", "undefined", False]),
            story="Timing attacks need a counter in shared memory or a precise clock.",
            runtimes=NATIVE if name == "Atomics" else SCRIPTS,  # the guest is compiled without it
        )
        for name in _ABSENT
    ),
    Case(
        "A13-buffer-shared",
        "removed_globals",
        "a shared buffer by way of a memory's or a view's constructor",
        "const found = []; let o = new Uint8Array(1).buffer; while (o) { found.push(...Object.getOwnPropertyNames(o.constructor ?? {}).filter((n) => /shared/i.test(n)));"
        " o = Object.getPrototypeOf(o); } return found.concat(Object.getOwnPropertyNames(globalThis).filter((n) => /shared|atomics/i.test(n)));",
        seen=answers([]),
        story="The remaining constructors are searched for shared memory.",
    ),
    Case(
        "A13-date-granularity",
        "coarse_clock",
        "the finest clock there is, read in a tight loop",
        _FINEST
        + "const seen = new Set(); const end = Date.now() + 20; let n = 0; while (Date.now() < end && n++ < 1e6) seen.add(clock()); return seen.size;",
        seen=where("at most one value a millisecond", lambda count: count <= 200),
        story="The script's clock must not be more precise than a millisecond.",
        behind=("removed_globals",),
        on={"quickjs-native": {"behind": ()}},  # there the engine has a precise clock of that name
        limits={"cpu_ms": 1000, "wall_ms": 3000},
    ),
    Case(
        "A13-date-edges",
        "coarse_clock",
        "the smallest step between two readings of a clock",
        _FINEST
        + "let least = Infinity; for (let k = 0; k < 20; k++) { const t = clock(); let u; while ((u = clock()) === t); least = Math.min(least, u - t); } return least;",
        seen=where("no step below a millisecond", lambda step: step > 0.9),
        story="The number of readings between two ticks reveals the precision of the clock.",
        behind=("removed_globals",),
        on={"quickjs-native": {"behind": ()}},  # there the engine has a precise clock of that name
        limits={"cpu_ms": 1000, "wall_ms": 3000},
    ),
    Case(
        "A13-timer-order",
        "removed_globals",
        "a timer of nothing as a clock",
        "const t = Date.now(); for (let i = 0; i < 5; i++) await new Promise((r) => setTimeout(r, 0)); return Date.now() - t < 1000 && typeof SharedArrayBuffer;",
        seen=answers("undefined"),
        story="Timers are not a more precise clock.",
    ),
    *(
        Case(
            f"A3-no-{name.strip('_').lower()}",
            "host_names",
            f"the name {name}",
            f"return typeof {name} + [{', '.join(repr('$' + letter) for letter in 'saldethr')}].filter((n) => n in globalThis);",
            seen=answers("undefined"),
            story="Names of host objects elsewhere, and names of the glue, are not defined.",
        )
        for name in _FOREIGN
    ),
]
