"""Probe of the namespaces that a process of this host can enter, in a child process, because entering cannot be undone."""

import os
import subprocess
import sys

_TRY = """
import sys
package = type(sys)("lodger")
package.__path__ = [sys.argv[1]]
sys.modules["lodger"] = package
import os
from lodger.sandbox.walls import namespaces
outer = namespaces.enter(("pid",)) if os.geteuid() == 0 else ()
names = ("user", "pid", *namespaces.INNER)
print(*namespaces.enter(tuple(name for name in names if name not in outer)), *outer)
"""


def entered() -> frozenset[str]:
    """Return the names of the namespaces that a child of this process can enter."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120 - the worker's folder imports no pathlib
    answer = subprocess.run(  # noqa: S603 - our own interpreter and text
        [sys.executable, "-I", "-S", "-E", "-c", _TRY, package], capture_output=True, text=True, check=False, timeout=20
    )
    return frozenset(answer.stdout.split())


def missing() -> str:
    """Return "" if all can be entered, otherwise which cannot."""
    lacking = {"user", "pid", "net", "mount", "ipc", "uts"} - entered()
    return "missing: " + " ".join(sorted(lacking)) if lacking else ""


def no_mount() -> str:
    """Return "" if a mount namespace can be entered, otherwise the reason."""
    return "" if "mount" in entered() else "needs a mount namespace"
