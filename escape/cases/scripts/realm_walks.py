"""Classes 3 and 7 to 9: ways from the script's global scope to objects of the host.

The realm has no object of the host: every way ends in the script's own global scope.
"""

import json
from typing import Any

from lodger.escape.attack_files import cases_of, texts
from lodger.escape.cases.scripts.realm_names import ALLOWED
from lodger.escape.evidence import Escaped, Trial

_WALK = texts(__file__, "shared")["walk"]


def _walk(expression: str) -> dict[str, Any]:
    """Return a script that walks over all objects reachable from an expression, with a second module if the expression names it."""
    script = f"export default async function () {{\n{_WALK % (expression, json.dumps(ALLOWED))}}}\n"
    if "./other.js" not in expression:
        return {"script": script}
    return {"script": script, "modules": {"other.js": "export const self = this;\n"}, "runtimes": ("quickjs",)}


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


_CHECKS = {"own_frames": _own_frames, "no_foreign_place": _no_foreign_place}

CASES = [*cases_of(__file__, checks=_CHECKS, walk=_walk)]
