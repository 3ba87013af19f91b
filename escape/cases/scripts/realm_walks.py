"""Classes 3 and 7 to 9: ways from the script's global scope to objects of the host.

The realm has no object of the host: every way ends in the script's own global scope.
"""

import json
from typing import Any

from lodger.escape.attack_files import attacks
from lodger.escape.case import GUEST, Case, cases
from lodger.escape.cases.scripts.realm_names import ALLOWED
from lodger.escape.evidence import Escaped, Trial, answers, by_outcome, ends_as
from lodger.escape.runner import ERROR
from lodger.sandbox.outcome import Outcome

_SCRIPTS = attacks(__file__)

_WALK = dict(_SCRIPTS["shared"])["walk"]


def _walk(expression: str) -> str:
    """Return a script that walks over all objects reachable from an expression."""
    body = _WALK % (expression, json.dumps(ALLOWED))
    return f"export default async function () {{\n{body}}}\n"


def _other(expression: str) -> dict[str, Any]:
    """Return fields of a case with a second module, for the runtime with modules."""
    used = "./other.js" in expression
    return {"modules": {"other.js": "export const self = this;\n"}, "runtimes": GUEST} if used else {}


_STORY = "Constructors and receivers are followed in search of a host function in any global scope."


def _own_frames(trial: Trial) -> str:
    """Check that the stack of an error shows no frame of the glue."""
    error = trial.report.error
    stack = "" if error is None else error.stack
    if "eval_script" in stack or "$" in stack:
        raise Escaped(f"the stack shows frames of the glue: {stack[:200]}")
    return f"only the author's frames: {stack[:120]}"


def _no_foreign_place(trial: Trial) -> str:
    """Check that an error names no place outside of the script."""
    error = trial.report.error
    shown = "" if error is None else f"{error.stack} {error.file}"
    if "/etc/shadow" in shown or "lodger:" in shown:
        raise Escaped(f"the error names a place that is not the script's: {shown[:200]}")
    return f"the error names {shown[:100]!r}"


CASES = [
    *cases(
        "A3",
        "host_names",
        _SCRIPTS["walks"],
        lambda expression: {"script": _walk(expression)} | _other(expression),
        seen=answers([]),
        story=_STORY,
    ),
    Case(
        "A9-source",
        "host_names",
        "the source text of every reachable function",
        """
const seen = new Set(), bad = [];
const visit = (value, path, depth) => {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null || seen.has(value) || depth > 6) return;
  seen.add(value);
  if (/^\\$[a-z]$|host_call/.test(path.split('.').pop())) bad.push(path);
  for (const key of Reflect.ownKeys(value)) {
    const found = Reflect.getOwnPropertyDescriptor(value, key);
    for (const part of [found.value, found.get, found.set]) visit(part, path + '.' + String(key), depth + 1);
  }
  visit(Object.getPrototypeOf(value), path + '.__proto__', depth + 1);
};
visit(globalThis, 'globalThis', 0);
visit(bridge, 'bridge', 0);
return bad;
""",
        seen=answers([]),
        story="Everything reachable by properties is visited in search of a function of the host.",
        limits={"cpu_ms": 1000, "wall_ms": 3000},
    ),
    Case(
        "A9-callee",
        "host_names",
        "caller and arguments of glue functions",
        "const out = []; for (const f of [bridge.call, console.log, setTimeout]) for (const k of ['caller', 'arguments', 'callee'])"
        " { try { if (Object.hasOwn(f, k) && f[k] != null) out.push(k); } catch {} } "
        "for (const l of 'saldethr') if (typeof globalThis['$' + l] === 'function') out.push(l); return out;",
        seen=answers([]),
        story="A function of the glue does not reveal its caller.",
    ),
    Case(
        "A8-prepare-stack",
        "hidden_frames",
        "Error.prepareStackTrace collects the frames of our glue",
        "const got = []; Error.prepareStackTrace = (e, frames) => { for (const f of frames ?? []) { try { const fn = f.getFunction?.(); if (fn) got.push(String(fn)); const t = f.getThis?.();"
        " if (t) got.push('this'); } catch {} } return ''; }; try { new URL('::'); } catch (e) { e.stack; } try { await bridge.call('zzz', 1); } catch (e) { e.stack; }"
        " for (const l of 'saldethr') if (typeof globalThis['$' + l] === 'function') got.push(l); return got;",
        seen=answers([]),
        story="A hook on stack traces receives the functions on the stack.",
    ),
    *cases(
        "A8-frames",
        "hidden_frames",
        _SCRIPTS["stacks"],
        says="the stack of {}",
        expect=ERROR,
        seen=_own_frames,
        story="A stack contains the author's frames only, not those of the glue.",
        behind=("own_frames",),
        runtimes=GUEST,
    ),
    Case(
        "A8-forged-stack",
        "own_frames",
        "a stack that a script has written, with places in other files",
        "const e = new Error('x'); e.stack = '    at own (/etc/shadow:7:7)\\n    at glue (lodger:begin:1:1)'; throw e;",
        ERROR,
        seen=_no_foreign_place,
        story="A script can write anything into an error's stack: only frames in its modules are kept.",
    ),
    Case(
        "A7-forged-timeout",
        "parent_verdict",
        "an error that looks like the engine's own timeout",
        "const e = new Error('interrupted'); e.name = 'InternalError'; throw e;",
        ERROR,
        seen=ends_as(Outcome.SCRIPT_ERROR),
        story="A forged timeout must be reported as the script's own error.",
    ),
    Case(
        "A7-poisoned-tostring",
        "cpu_timer",
        "Error.prototype.toString that loops, then a loop",
        "Error.prototype.toString = function () { for (;;); }; for (;;);",
        (Outcome.CPU_LIMIT,),
        seen=by_outcome,
        behind=("soft_stop", "cpu_watch", "rlimits"),
        limits={"cpu_ms": 60, "wall_ms": 1200},
        story="A function of the attacker converts the timeout's error to text.",
    ),
]
