"""Classes 4 and 12: modules that are not part of the script, and code that is not source text.

The loader knows only the bundle. The matrix replaces it by one that reads any file; then the walls of the process must hold, and the attack
may succeed only without those.
"""

from lodger.escape.attack_files import cases_of, texts
from lodger.escape.evidence import where

_TRY = texts(__file__, "shared")["try"]
_CHECKS = {
    "nothing_of_the_host": where("nothing of the host", lambda names: not any("/" in str(name) for name in names))
}


def _named(name: str) -> dict[str, str]:
    """Return a script that imports a name."""
    return {"script": _TRY.replace("NAME", name)}


CASES = [*cases_of(__file__, checks=_CHECKS, named=_named)]
