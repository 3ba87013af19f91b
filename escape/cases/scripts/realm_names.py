"""Classes 3 and 13: the names of the global scope: no other than the declared ones.

Shared memory and precise clocks, which timing attacks need, do not exist, nor do names of host objects elsewhere.
"""

import json

from lodger.escape.attack_files import cases_of
from lodger.escape.evidence import where
from lodger.stdlib import declarations
from lodger.stdlib.declarations import LANGUAGE

#: Names that the global scope may have: those of ECMAScript, those that authors are told of in the declarations, and the suite's
#: capability. Any other one came with the glue or the engine.
ALLOWED = sorted(
    (LANGUAGE - {"SharedArrayBuffer", "Atomics"})
    | declarations.global_names()
    | declarations.run_members()
    | {"bridge", "Intl"}
)
_CHECKS = {
    "one_value": where("at most one value a millisecond", lambda count: count <= 200),
    "whole_steps": where("no step below a millisecond", lambda step: step > 0.9),
}


def _globals(script: str) -> dict[str, str]:
    """Return a script that compares the global names with the allowed ones."""
    return {"script": script.replace("ALLOWED", json.dumps(ALLOWED))}


CASES = [*cases_of(__file__, checks=_CHECKS, globals=_globals)]
