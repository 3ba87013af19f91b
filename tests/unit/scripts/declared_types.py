"""The script API as a table: names and signatures, read from the type declarations of the standard library.

It reads the subset of TypeScript that those files use: interfaces, classes, functions, constants and type aliases.
"""

import re
from collections.abc import Iterator
from functools import cache
from textwrap import dedent
from typing import Any

from lodger.stdlib import declarations

_BLOCK = re.compile(
    r"(?:declare )?(?P<kind>interface|class) (?P<name>\w+)(?:<[^{]*?>)?"
    r"(?: (?:extends|implements) (?P<base>\w+)(?:<[^{]*>)?)?\s*$"
)
_FUNCTION = re.compile(r"declare function (?P<name>\w+)(?P<signature>(?:<.*?>)?\(.*)$", re.DOTALL)
_CONSTANT = re.compile(r"declare const (?P<name>\w+):\s*(?P<type>.*)$", re.DOTALL)
_MEMBER = re.compile(r"(?:(?P<static>static) |readonly |private )*(?P<name>\w+)\??(?P<rest>[(<:].*)$", re.DOTALL)
_INDEX = re.compile(r"(?:readonly )?\[\w+: string\]: (?P<type>.*)$", re.DOTALL)
_NAMESPACE = re.compile(r"declare namespace (?P<name>\w+)$")
#: A statement with its documentation: its first line, lines further in, and one that closes it.
_STATEMENT = re.compile(
    r"^(?:/\*\*(?P<doc>(?:(?!\*/).)*)\*/\n)?(?P<head>[^\s/)}\]>][^\n]*?(?:(?:\n+ [^\n]*)*(?:\n[)}\]>][^\n]*?)?)?)(?: // prettier-ignore)?$",
    re.DOTALL | re.MULTILINE,
)
_BODY = re.compile(
    r"(?P<head>(?:declare )?(?:interface|class) [^{]*|declare namespace [^{]*|declare const \w+: )\{(?P<body>.*)\};?$",
    re.DOTALL,
)
#: The type parameters and the parameters of a signature, in which two pairs of parentheses may stand within each other.
_PARAMETERS = re.compile(r"(?:<[^(]*>)?\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")
_SPACE = re.compile(r"\s+")

Entry = dict[str, Any]


@cache
def table() -> Entry:
    """Return ``{"globals": {name: entry}, "types": {name: {"base", "members", "statics", "index"}}}``.

    An entry has ``signature`` and ``type``, the name of the type of its value or of its result; ``awaited`` is
    true if that is inside a promise.
    """
    found: Entry = {"globals": {}, "types": {}}
    for text in declarations.parts().values():
        _read(text, found)
    return found


def _read(text: str, found: Entry) -> None:
    """Read the declarations of a file of types."""
    for head, body in _statements(text):
        block, function, constant = _BLOCK.match(head), _FUNCTION.match(head), _CONSTANT.match(head)
        namespace = _NAMESPACE.match(head)
        if namespace is not None and body is not None:
            _read_namespace(namespace["name"], body, found)
        elif block is not None and body is not None:
            members = _type(block, body)
            found["types"][block["name"]] = members
            if block["kind"] == "class":
                found["globals"][block["name"]] = _entry(block["name"], members["made"], f": {block['name']}")
        elif function is not None:
            found["globals"][function["name"]] = _entry(function["name"], function["signature"], "")
        elif constant is not None:
            name, type_ = constant["name"], constant["type"]
            if body is not None:  # a constant of an anonymous type
                found["types"][name] = _type(None, body)
                type_ = name
            found["globals"][name] = _entry(name, "", f": {type_}")


def _read_namespace(name: str, body: str, found: Entry) -> None:
    """Add a namespace as a constant of its own type; the types inside it have its name before theirs."""
    inner: Entry = {"globals": {}, "types": {}}
    _read(re.sub(r"^  const ", "  declare const ", body, flags=re.MULTILINE), inner)
    for entry in [
        *inner["globals"].values(),
        *(each for type_ in inner["types"].values() for each in type_["members"].values()),
    ]:
        if entry["type"] in inner["types"]:
            entry["type"] = f"{name}.{entry['type']}"
    found["types"] |= {f"{name}.{each}": type_ for each, type_ in inner["types"].items()}
    found["types"][name] = {"base": None, "members": inner["globals"], "statics": {}, "made": "()"}
    found["globals"][name] = _entry(name, "", f": {name}")


def _type(block: re.Match[str] | None, body: str) -> Entry:
    """Return the entry of a type, from its declaration and its body."""
    made: Entry = {"base": block["base"] if block else None, "members": {}, "statics": {}, "made": "()"}
    for head, inner in _statements(body):
        whole = head if inner is None else f"{head} {{{inner}}}"
        index, member = _INDEX.match(whole), _MEMBER.match(whole)
        if index is not None:
            made["index"] = _type_name(index["type"])
        elif member is not None and member["name"] == "constructor":
            made["made"] = member["rest"]
        elif member is not None:
            place = "statics" if member["static"] else "members"
            made[place][member["name"]] = _entry(member["name"], member["rest"], "")
    return made


def _entry(name: str, signature: str, result: str) -> Entry:
    """Return the description of a function or value."""
    shown = _SPACE.sub(" ", signature + result).strip()
    shown = shown.replace("( ", "(").replace(", )", ")").replace(" )", ")")
    value = shown[1:] if shown.startswith(":") else _PARAMETERS.sub("", shown, count=1).lstrip(": ")
    promised = re.fullmatch(r"Promise<(.*)>", value.strip())
    return {
        "signature": name + shown,
        "type": _type_name(promised[1] if promised else value),
        "awaited": promised is not None,
    }


def _type_name(text: str) -> str | None:
    """Return the first name of a type, without null and type arguments; ``Array`` for ``X[]``; None for a literal type."""
    plain = text.replace("readonly ", "").removesuffix(" | null").strip()
    name = re.match(r"(?:typeof )?(\w+)", plain)
    return "Array" if plain.endswith("[]") else name[1] if name else None


def _statements(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield (head, body in braces or None) of each statement of a file or of a type's body, as prettier writes it."""
    for found in _STATEMENT.finditer(dedent(text)):
        block = _BODY.match(found["head"])
        if block is not None:
            yield block["head"].strip(), block["body"]
        else:
            yield found["head"].rstrip(";"), None
