"""The TypeScript declarations of everything that a script can name, as one file."""

import re
import tomllib
from functools import cache
from importlib.resources import files

_NAMES = tomllib.loads((files("lodger.stdlib") / "names.toml").read_text("utf-8"))
#: Globals of ECMAScript that a realm has, and its keywords.
LANGUAGE, KEYWORDS = frozenset(_NAMES["globals"]), frozenset(_NAMES["keywords"])
#: What a script has in the place of names that other platforms have, and of modules of Node.js.
INSTEAD: dict[str, str] = _NAMES["instead"]
NODE_MODULES: dict[str, str] = _NAMES["node_modules"]
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
    """Return the names of an interface's or a class's members; none if it has any name."""
    body = re.search(
        rf"^(?:interface|declare class) {interface}(?:<[^{{\n]*>)? \{{(.*?)^\}}", text(), re.DOTALL | re.MULTILINE
    )
    found = body[1] if body else ""
    if re.search(r"^  (?:readonly )?\[\w+: string\]", found, re.MULTILINE):
        return frozenset()
    return frozenset(re.findall(r"^  (?:readonly |static )?(\w+)", found, re.MULTILINE))


def run_members() -> frozenset[str]:
    """Return the names of what a script is called with."""
    return members("Run")


@cache
def run_types() -> dict[str, str]:
    """Return the type of each member of a run; functions have the type ``Function``."""
    body = re.search(r"^interface Run \{(.*?)^\}", text(), re.DOTALL | re.MULTILINE)
    found = re.findall(r"^  readonly (\w+): (typeof )?(\w+);", body[1] if body else "", re.MULTILINE)
    return {name: "Function" if function else kind for name, function, kind in found}


@cache
def other_names(file: str) -> dict[str, str]:
    """Return the names that other libraries have for members, each with what to write here, from a file of ``stdlib/js``."""
    source = (files("lodger.stdlib") / "js" / file).read_text(encoding="utf-8")
    local = re.search(r'^const LOCAL = "(.*)";', source, re.MULTILINE)
    table = re.search(r"^  __proto__: null,\n(.*?)^\}\)?; // prettier-ignore", source, re.DOTALL | re.MULTILINE)
    found = re.findall(r'(\$?\w+): (LOCAL \+ )?"((?:[^"\\]|\\.)*)"', table[1] if table else "")
    return {name: (local[1] if prefix and local else "") + advice for name, prefix, advice in found}
