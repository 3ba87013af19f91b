"""Classes 3 and 13: the names of the global scope: no other than the declared ones.

Shared memory and precise clocks, which timing attacks need, do not exist, nor do names of host objects elsewhere.
"""

import json

from lodger.escape.attack_files import cases_of
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

_CHECKS = {
    "one_value": where("at most one value a millisecond", lambda count: count <= 200),
    "whole_steps": where("no step below a millisecond", lambda step: step > 0.9),
}

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
    *cases_of(__file__, checks=_CHECKS),
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
