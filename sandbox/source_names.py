"""Names that a script uses and that nothing declares: found in its tokens, without scopes. Pure.

A name that is declared anywhere in its file, or could be, counts as declared; so what is found is almost always a mistake. TypeScript and
long lines are left out: compilers check the one, and programs write the other.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches

from lodger.sandbox.job import ScriptError
from lodger.sandbox.source_tokens import line_and_column, tokens
from lodger.stdlib import declarations

MAX_CHARACTERS, MAX_LINE = 64 * 1024, 1000
_CONTROL = frozenset({"if", "while", "for", "switch", "with"})
# Patterns here are possessive: tenants' texts must not make them go back.
_ARGUMENT = re.compile(
    r"\bexport\s++default\s++(?:script\s*+\(\s*+)?(?:async\b\s*+)?(?:function\b\s*+(?:\*\s*+)?(?:[\w$]++\s*+)?)?"
    r"\(\s*+\{([^{}()]*+)\}\s*+\)"
)
_NAMED = re.compile(
    r"\bexport\s++default\s++(?:script\s*+\(\s*+)?(?:async\b\s*+)?"
    r"(?:(?:function\b\s*+(?:\*\s*+)?(?:[\w$]++\s*+)?)?\(\s*+([A-Za-z_$][\w$]*+)\s*+\)|([A-Za-z_$][\w$]*+)\s*+=>)"
)
#: Members of every object and function.
_OF_EACH = frozenset(
    {
        "constructor",
        "hasOwnProperty",
        "toString",
        "valueOf",
        "toLocaleString",
        "call",
        "apply",
        "bind",
        "name",
        "length",
    }
)
#: Files with the names that other libraries have for members of a type.
_OTHER_NAMES = {"Rows": "cap-db.js", "Instant": "cap-1-instant.js"}


def unknown_names(modules: Mapping[str, str], of_platform: Collection[str] = ()) -> Iterator[ScriptError]:
    """Yield each name of a script's JavaScript files that nothing declares, once per file, and unknown members of a run.

    Args:
        of_platform: further globals, which are members of a run too.
    """
    for number, (file, text) in enumerate(modules.items()):
        long = len(text) > MAX_CHARACTERS or max(map(len, text.split("\n"))) > MAX_LINE
        if not file.endswith(".js") or ":" in file or file.startswith("../") or long or "eval(" in text:
            continue
        used, declared = _names(text)
        known = declarations.LANGUAGE | declarations.global_names() | declared | set(of_platform)
        for name, at in used.items():
            if name not in known:
                yield _unknown(file, text, at, f"{name} is not defined", name, known)
        words = [
            (text[start:end] if kind in ("word", "mark") else "", start)
            for kind, start, end in tokens(text)
            if kind != "blank"
        ]
        run = _run(text) if number == 0 else None
        members = declarations.run_members() | set(of_platform)
        for name, at in _taken(text, run, words) if number == 0 else ():
            if name not in members:
                yield _unknown(file, text, at, f"a run has no member {name}", name, members)
        taken = _ARGUMENT.search(text) if number == 0 else None
        others = _names(text[: taken.start(1)] + text[taken.end(1) :])[1] if taken else declared
        for name, interface in (*declarations.run_types().items(), ("console", "Console")):
            paths: list[tuple[str, ...]] = [(name,), (run, name)] if run else [(name,)]
            for path in paths:
                if path[0] in used and (path[0] == run or name not in others):
                    yield from _absent(file, text, words, path, interface)


def _absent(
    file: str, text: str, words: list[tuple[str, int]], path: tuple[str, ...], interface: str
) -> Iterator[ScriptError]:
    """Yield an error for each member that is read of a path, such as ``kv`` or ``run.kv``, and that its type does not have."""
    if interface == "Db":
        for name, at in _members(words, path, called=True):
            said = f"{'.'.join(path)}.{name} is a set of rows, not a function"
            near = get_close_matches(name, sorted(declarations.members("Rows")), 1, 0.6)
            advice = declarations.other_names("cap-db.js").get(name) or f"{next(iter(near), 'find')}(…)"
            yield _at(file, text, at, f"{said}: name the set first, such as db.orders.{advice}")
        path, interface = (*path, "*"), "Rows"
    shown = "a set of db" if interface == "Rows" else ".".join(path)
    members = declarations.members(interface)
    if not members and interface != "Function":
        return  # any name is a member
    for name, at in _members(words, path):
        if name not in members and name not in _OF_EACH:
            others = declarations.other_names(_OTHER_NAMES[interface]) if interface in _OTHER_NAMES else {}
            near = get_close_matches(name, sorted(members), 1, 0.6)
            hint = f": use {others[name]}" if name in others else f": did you mean {near[0]}?" if near else ""
            yield _at(file, text, at, f"{shown} has no member {name}{hint}")


def _run(text: str) -> str | None:
    """Return the name of the default export's argument; None if the name could have another value."""
    found = None if _ARGUMENT.search(text) else _NAMED.search(text)
    if found is None:
        return None
    argument = found[1] or found[2]
    own, lists = re.escape(argument), re.findall(r"\(([^()]*+)\)\s*+(?:=>|\{)", text)
    given = sum(re.search(rf"(?<![\w$.]){own}(?![\w$])", each) is not None for each in lists)
    given += len(re.findall(rf"(?<![\w$.]){own}\s*+=>", text))
    declared = re.search(rf"\b(?:const|let|var|function|class|import)\s++{own}(?![\w$])", text)
    return argument if given < 2 and not declared else None


def _taken(text: str, run: str | None, words: list[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    """Yield the members of the run, its argument, that the default export reads or takes by a pattern, each with its first position."""
    if found := _ARGUMENT.search(text):
        for part in re.finditer(r"(?:^|,)\s*([\w$]+)", found[1]):
            yield part[1], found.start(1) + part.start(1)
    elif run is not None:
        yield from _members(words, (run,))


def _members(parts: list[tuple[str, int]], path: tuple[str, ...], *, called: bool = False) -> Iterator[tuple[str, int]]:
    """Yield the members that are read of a path, or taken by a pattern, each with its first place.

    Args:
        path: names with dots between them; ``*`` is any name.
        called: only members that are called.
    """
    told = set[str]()
    for at, (word, _start) in enumerate(parts):
        if word != path[0] or (at and parts[at - 1][0] in (".", "#")):
            continue
        here = at + 1
        for name in (*path[1:], None):
            here += "".join(each[0] for each in parts[here : here + 2]) == "?."
            if here + 1 >= len(parts) or parts[here][0] != ".":
                break
            member, start = parts[here + 1]
            if name is None:
                after = [each[0] for each in parts[here + 2 : here + 4]] + ["", ""]
                assigned = after[0] == "=" and after[1] != "="
                if (
                    member
                    and _is_name(member)
                    and member not in told
                    and not assigned
                    and (not called or after[0] == "(")
                ):
                    told.add(member)
                    yield member, start
            elif member != name and (name != "*" or not _is_name(member)):
                break
            here += 2
        else:
            continue
        if (
            here == at + 2 * len(path) - 1
            and not called
            and at > 1
            and parts[at - 1][0] == "="
            and parts[at - 2][0] == "}"
        ):
            begin = next((each for each in range(at - 3, -1, -1) if parts[each][0] in ("{", "}")), -1)
            for each in range(begin + 1, at - 2) if begin >= 0 and parts[begin][0] == "{" else ():
                member, start = parts[each]
                if parts[each - 1][0] in ("{", ",") and member and _is_name(member) and member not in told:
                    told.add(member)
                    yield member, start


def _at(file: str, text: str, at: int, message: str) -> ScriptError:
    """Return an error about a name at a position of a file."""
    line, column = line_and_column(text, at)
    return ScriptError("ReferenceError", message, file=file, line=line, column=column)


def _unknown(file: str, text: str, at: int, said: str, name: str, known: frozenset[str] | set[str]) -> ScriptError:
    """Return the error of an unknown name."""
    near = get_close_matches(name, sorted(known), 1, 0.75)
    meant = (
        name
        if name in declarations.INSTEAD or near
        else next(iter(get_close_matches(name, declarations.INSTEAD, 1, 0.8)), "")
    )
    advice = declarations.INSTEAD.get(meant) or (near[0] if near else "")
    message = (
        f"{said}: use {advice}"
        if meant in declarations.INSTEAD
        else f"{said}: did you mean {advice}?"
        if advice
        else said
    )
    return _at(file, text, at, message)


def _names(text: str) -> tuple[dict[str, int], set[str]]:
    """Return the names that are read, with the position of their first use, and those that are or may be declared."""
    parts = [(kind, text[start:end], start) for kind, start, end in tokens(text) if kind != "blank"]
    words = [part[1] if part[0] in ("word", "mark") else "" for part in parts] + ["", "", "", ""]
    close = _pairs(parts, words)
    declared, defined = set[str](), set[int]()
    reached = 0  # words before it are declared already, if the lists and patterns that hold them are

    def declare_words(start: int, end: int) -> None:
        """Note the words of a part of the source as declared names."""
        nonlocal reached
        declared.update(words[max(start, reached) : end])
        reached = max(reached, end)

    for at, word in enumerate(words[:-4]):
        after = words[at + 1]
        if word in ("function", "class", "typeof", "break", "continue", "as"):
            declared.add(words[at + 2] if after == "*" else after)
        elif word == "import" and after not in ("(", "."):
            end = next((here for here in range(max(at, reached), len(words)) if words[here] in ("from", ";", "")), at)
            declare_words(at, end)
        elif word in ("const", "let", "var", "using"):
            here = at + 1
            while words[here + 1] == "," and _is_name(words[here]):
                declared.add(words[here])
                here += 2
            declared.add(words[here])
        elif _is_name(word) and after == "=" and words[at + 2] != "=" and words[at - 1] != ".":
            declared.add(word)
        elif word in ("{", "[", "(") and at in close:
            end = close[at]
            then, before = words[end + 1], words[at - 1] if at else ""
            pattern = word != "(" and ((then == "=" and words[end + 2] != "=") or then in ("of", "in"))
            pattern = pattern or then == "from"
            function = word == "(" and (
                (then == "=" and words[end + 2] == ">") or (then == "{" and before not in _CONTROL)
            )
            if pattern or function:
                declare_words(at, end)
            if function and then == "{":
                defined.add(at - 1)
    used: dict[str, int] = {}
    for at, (kind, word, start) in enumerate(parts):
        before = words[at - 1] if at else ""
        member = before in (".", "#") and not (at > 2 and words[at - 3 : at] == [".", ".", "."])
        field = words[at + 1] == ";" and before in (";", "{", "}")
        if (
            kind == "word"
            and _is_name(word)
            and not member
            and not field
            and words[at + 1] != ":"
            and at not in defined
        ):
            used.setdefault(word, start)
    return used, declared


def _is_name(word: str) -> bool:
    """Whether a word is a name, and no keyword."""
    return word not in declarations.KEYWORDS and (word[:1].isalpha() or word[:1] in ("_", "$"))


def _pairs(parts: list[tuple[str, str, int]], words: list[str]) -> dict[int, int]:
    """Return the index of the closing bracket of each opening one."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for at in range(len(parts)):
        if words[at] in ("(", "[", "{"):
            opened.append(at)
        elif words[at] in (")", "]", "}") and opened:
            found[opened.pop()] = at
    return found
