"""The TypeScript declarations of everything that a script can name, as one file."""

import re
from functools import cache
from importlib.resources import files

#: Name of the one file.
FILE = "lodger.d.ts"


@cache
def parts() -> dict[str, str]:
    """Return the text of each part of the declarations by file name, in order."""
    found = (each for each in (files("lodger.stdlib") / "types").iterdir() if each.name.endswith(".d.ts"))
    return {each.name: each.read_text(encoding="utf-8") for each in sorted(found, key=lambda each: each.name)}


def text() -> str:
    """Return the declarations: the parts of ``stdlib/types``, one after the other."""
    head = "// Everything that a script of Lodger can name, beside ECMAScript itself. `lodger init` writes this file anew.\n\n"
    return head + "\n".join(parts().values())


@cache
def global_names() -> frozenset[str]:
    """Return the names of the globals that are declared."""
    return frozenset(re.findall(r"^declare (?:const|function|class|var|namespace) (\w+)", text(), re.MULTILINE))


@cache
def members(interface: str) -> frozenset[str]:
    """Return the names of an interface's members."""
    body = re.search(rf"^interface {interface} \{{(.*?)^\}}", text(), re.DOTALL | re.MULTILINE)
    return frozenset(re.findall(r"^  (?:readonly )?(\w+)", body[1] if body else "", re.MULTILINE))


def run_members() -> frozenset[str]:
    """Return the names of what a script is called with."""
    return members("Run")
