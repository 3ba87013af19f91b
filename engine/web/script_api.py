"""The script API as a table for the editor: names, signatures and documentation, read from the type declarations of the standard library.

It reads the subset of TypeScript that those files use: interfaces, classes, functions, constants and type aliases.
"""

import re
from collections.abc import Iterator
from functools import cache
from textwrap import dedent
from typing import Any

from lodger.stdlib import declarations
from lodger.stdlib.calls import CALLS

_BLOCK = re.compile(
    r"(?:declare )?(?P<kind>interface|class) (?P<name>\w+)(?:<[^{]*?>)?"
    r"(?: (?:extends|implements) (?P<base>\w+)(?:<[^{]*>)?)?\s*$"
)
_FUNCTION = re.compile(r"declare function (?P<name>\w+)(?P<signature>(?:<.*?>)?\(.*)$", re.DOTALL)
_CONSTANT = re.compile(r"declare const (?P<name>\w+):\s*(?P<type>.*)$", re.DOTALL)
_MEMBER = re.compile(r"(?:(?P<static>static) |readonly |private )*(?P<name>\w+)\??(?P<rest>[(<:].*)$", re.DOTALL)
_INDEX = re.compile(r"(?:readonly )?\[\w+: string\]: (?P<type>.*)$", re.DOTALL)
_NAMESPACE = re.compile(r"declare namespace (?P<name>\w+)$")
_TOPIC = re.compile(r"// (\w+)(?:\(\))?: ((?:.*\n)(?://.*\n)*)")
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
    """Return ``{"globals": {name: entry}, "types": {name: {"base", "doc", "members", "statics", "index"}}}``.

    An entry has ``signature``, ``doc`` and ``type``, the name of the type of its value or of its result; ``awaited`` is
    true if that is inside a promise.
    """
    found: Entry = {"globals": {}, "types": {}}
    for text in declarations.parts().values():
        _read(text, found)
    for call in CALLS.values():
        name, _dot, verb = call.name.partition(".")
        type_ = found["types"].get(found["globals"].get(name, {}).get("type"), {})
        type_ = found["types"].get(type_.get("index"), type_)
        if verb in type_.get("members", {}):
            entry = type_["members"][verb]
            entry["doc"] = f"{call.help} {entry['doc']}".strip()
    return found


def _read(text: str, found: Entry) -> None:
    """Read the declarations of a file of types."""
    topic = _TOPIC.match(text)
    for doc, head, body in _statements(text):
        block, function, constant = _BLOCK.match(head), _FUNCTION.match(head), _CONSTANT.match(head)
        namespace = _NAMESPACE.match(head)
        if namespace is not None and body is not None:
            _read_namespace(namespace["name"], doc, body, found)
        elif block is not None and body is not None:
            members = _type(block, doc, body)
            found["types"][block["name"]] = members
            if block["kind"] == "class":
                found["globals"][block["name"]] = _entry(block["name"], members["made"], f": {block['name']}", doc)
        elif function is not None:
            found["globals"][function["name"]] = _entry(function["name"], function["signature"], "", doc)
        elif constant is not None:
            name, type_ = constant["name"], constant["type"]
            if body is not None:  # a constant of an anonymous type
                found["types"][name] = _type(None, doc, body)
                type_ = name
            found["globals"][name] = _entry(name, "", f": {type_}", doc)
    if topic is not None and (about := found["globals"].get(topic[1])) and not about["doc"]:
        about["doc"] = _clean(topic[2].replace("\n//", " "))


def _read_namespace(name: str, doc: str, body: str, found: Entry) -> None:
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
    found["types"][name] = {"doc": doc, "base": None, "members": inner["globals"], "statics": {}, "made": "()"}
    found["globals"][name] = _entry(name, "", f": {name}", doc)


def _type(block: re.Match[str] | None, doc: str, body: str) -> Entry:
    """Return the entry of a type, from its declaration, its documentation and its body."""
    made: Entry = {"doc": doc, "base": block["base"] if block else None, "members": {}, "statics": {}, "made": "()"}
    for about, head, inner in _statements(body):
        whole = head if inner is None else f"{head} {{{inner}}}"
        index, member = _INDEX.match(whole), _MEMBER.match(whole)
        if index is not None:
            made["index"] = _type_name(index["type"])
        elif member is not None and member["name"] == "constructor":
            made["made"] = member["rest"]
        elif member is not None:
            place = "statics" if member["static"] else "members"
            made[place][member["name"]] = _entry(member["name"], member["rest"], "", about)
    return made


def _entry(name: str, signature: str, result: str, doc: str) -> Entry:
    """Return the description of a function or value."""
    shown = _SPACE.sub(" ", signature + result).strip()
    shown = shown.replace("( ", "(").replace(", )", ")").replace(" )", ")")
    value = shown[1:] if shown.startswith(":") else _PARAMETERS.sub("", shown, count=1).lstrip(": ")
    promised = re.fullmatch(r"Promise<(.*)>", value.strip())
    return {
        "signature": name + shown,
        "doc": doc,
        "type": _type_name(promised[1] if promised else value),
        "awaited": promised is not None,
    }


def _type_name(text: str) -> str | None:
    """Return the first name of a type, without null and type arguments; ``Array`` for ``X[]``; None for a literal type."""
    plain = text.replace("readonly ", "").removesuffix(" | null").strip()
    name = re.match(r"(?:typeof )?(\w+)", plain)
    return "Array" if plain.endswith("[]") else name[1] if name else None


def _statements(text: str) -> Iterator[tuple[str, str, str | None]]:
    """Yield (documentation, head, body in braces or None) of each statement of a file or of a type's body, as prettier writes it."""
    for found in _STATEMENT.finditer(dedent(text)):
        doc = _clean(re.sub(r"\n\s*\*", " ", found["doc"] or ""))
        block = _BODY.match(found["head"])
        if block is not None:
            yield doc, block["head"].strip(), block["body"]
        else:
            yield doc, found["head"].rstrip(";"), None


def _clean(text: str) -> str:
    """Return a text with single spaces."""
    return _SPACE.sub(" ", text).strip()
