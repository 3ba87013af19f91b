"""Mistakes that are seen in a script's text: imports of what it does not have, CommonJS, a file that runs nothing, TypeScript in .js. Pure.

Each is an error that says what to write. What needs a parser is left to the runtime.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property

from lodger.sandbox.job import ScriptError
from lodger.sandbox.runtimes.js.modules import LIB, found, joined
from lodger.sandbox.source_tokens import code_of, line_and_column, outermost, unclosed
from lodger.stdlib import standard_modules
from lodger.stdlib.declarations import NODE_MODULES

CODE = (".js", ".ts")
#: Longest text that is read; what is longer was written by a program.
MAX_CHARACTERS = 128 * 1024
SHAPE = "export default async ({ db, now }) => { … }"
# Whether the next "from" is of types only, or an import's module.
_IMPORT = re.compile(
    r"""(?<![\w$.])(?:(?:im|ex)port\b(?!\s*["'(])(?:\s+(?P<types>type)\b)?|(?:from|import(?P<dynamic>\s*\()?)\s*(?P<mark>["']))"""
)
_DEFAULT = re.compile(r"(?<![\w$.])export\s*(?:default\b|\{[^{}]*\bas\s+default\b|\{\s*default\b)")
_EXPORT = re.compile(
    r"(?<![\w$.])export\s*(?:[{*]|(?:const|let|var|function|async|class|type|interface|enum|abstract|declare)\b)"
)
_MODULE_EXPORTS = re.compile(
    r"(?<![\w$.])(?:module\s*+(?:\.\s*+exports|\[\s*+\])|exports)(?:\s*+(?:\.\s*+[\w$]++|\[\s*+\])){0,4}+\s*+=(?![=>])"
)
_REQUIRE = re.compile(r"""(?<![\w$.])require\s*\(\s*(["'`])""")
_AS_DEFAULT = re.compile(
    r"(?<![\w$.])export\s*+\{(?=[^{}]*+\}(?!\s*+from\b))[^{}]*?(?P<value>)(?<![\w$])(?P<name>[A-Za-z_$][\w$]*+)\s++as\s++default\b"
)
_DIRECTIVE = re.compile(r"""^\s*+(?:(["'])\s*+\1[ \t]*+(?:;|\n|\Z)\s*+)++""")
_OWN_REQUIRE = re.compile(r"(?:typeof|function|const|let|var|,|\()\s*require\b(?!\s*\()")
_NAMED = re.compile(r"(?<![\w$.])(?:function\s*\*?|class|const|let|var)\s+([\w$]+)")
# Applied to the outermost text, where brackets are empty. Possessive and bounded: a tenant's text must not take long.
_IMPORTED = re.compile(r"(?<![\w$.])import\b(?!\s*+[(.])[^;\n]*+[;\n]?")
_FUNCTION = re.compile(
    r"(?<![\w$])(?:(?:async\s++)?function\s*+(?:\*\s*+)?[\w$]++\s*+\(\s*+\)|class\s++[\w$]++)[^{;]{0,500}+\{\s*+\}"
)
_ARROW = re.compile(
    r"(?<![\w$])(?:const|let|var)\s++[\w$]++[^=;\n]{0,500}+=\s*+(?:async\s++)?"
    r"(?:function\b[^{;]{0,500}+\{\s*+\}|(?:\(\s*+\)|[\w$]++)[^=;\n]{0,500}+=>\s*+(?:\{\s*+\}|[^;\n{]*+))"
)
# A statement ends before these: other text on the next line may continue the expression.
_END = r"\s*+(?:;|\Z|(?:as|satisfies|import|export|const|let|var|function|async|class)\b)"
_VALUE = rf"(?:\{{\s*+\}}|\[\s*+\]|[\"'`][\s\w]{{0,500}}+[\"'`]|[+-]?\d[\w.]*+|(?:true|false|null|undefined)\b){_END}"
_NO_FUNCTION = re.compile(
    rf"(?<![\w$.])export\s++default\s++(?:(?P<value>class\b|(?:async\s++)?function\s*+\*|{_VALUE})|(?P<name>[A-Za-z_$][\w$]*+){_END})"
)
_SAID = {"{": "an object", "[": "a list", "c": "a class", "'": "a text", '"': "a text", "`": "a text"} | dict.fromkeys(
    "-+0123456789", "a number"
)
_MISSING = re.compile(r"cannot find module '(.+)'; this script has")
# Runtime quickjs-native appends an import of a name with digits.
_EARLY = re.compile(r"''$|'(?:[};]|\$\$\w{16})'$|\bexpecting '.'$|^[Uu]nexpected end of |\bexpected$")
_NAMES_OF_IMPORT = re.compile(r"(?<![\w$.])import\b(?!\s*+(?:type\b|[(.]))[^;{}]{0,200}+\{([^{}]*+)\}\s*+from\s*+[\"']")
_DECLARED = re.compile(
    r"(?<![\w$.])export\s++(?:(?:async|declare|abstract)\s++)*+(?:function\b\s*+\*?|class\b|const\s++enum\b|(?:const|let|var|enum|interface|type|namespace)\b)\s*+([\w$]++)"
)
_LISTED = re.compile(r"(?<![\w$.])export\s*+\{([^{}]*+)\}")
_OPEN_EXPORTS = re.compile(
    r"(?<![\w$.])export\s*+\*|(?<![\w$.])export\s++(?:const|let|var)\s*+(?:[{\[]|(?:(?!\bexport\b)[^;,])*+,)"
)
_TYPESCRIPT = re.compile(
    r"""^\s*(?:export\s+)?(?:interface|enum|namespace|declare|abstract\s+class|type)\s+\w+[\s<{=] | \bimport\s+type\b
      | [\w$)\]}?]\s*:\s*(?:string|number|boolean|any|unknown|void|never|object|[A-Z][\w$]*)\b(?:\[\]|<|\s*[,)=;{|&]|\s*$)
      | \b(?:as|satisfies)\s+(?:const\b|string|number|boolean|any|unknown|[A-Z]) | \b(?:private|public|protected|readonly)\s+\w
      | [\w$]<[A-Z\w\s,\[\]|]+>\( | [\w$)\]]!\s*[.;)\[]""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Outline:
    """Imports and exports of a text."""

    text: str

    @cached_property
    def code(self) -> str:
        """The text without comments and the contents of literals."""
        return code_of(self.text)

    @cached_property
    def imports(self) -> list[tuple[str, int, bool]]:
        """Module, position and whether it is a literal ``import()`` of each import that is not of types only."""
        imports, types = [], False
        for each in _IMPORT.finditer(self.code):
            end = self.code.find(each["mark"], each.end()) if each["mark"] else 0
            if end > 0 and not types:
                imports.append((self.text[each.end() : end], each.end(), each["dynamic"] is not None))
            types = each["types"] is not None
        return imports

    @property
    def has_default(self) -> bool:
        """Whether the file has a default export."""
        return "export" in self.text and _DEFAULT.search(self.code) is not None

    @property
    def is_module(self) -> bool:
        """Whether it exports something, and nothing by default."""
        return "export" in self.text and not self.has_default and _EXPORT.search(outermost(self.code)) is not None


def faults(modules: Mapping[str, str]) -> Iterator[ScriptError]:
    """Yield the mistakes in a script's runnable files, of which the first is the entry."""
    names = {name.encode() for name in modules}
    for file, text in modules.items():
        if not file.endswith(CODE) or ":" in file or file.startswith("../") or len(text) > MAX_CHARACTERS:
            continue
        outline = Outline(text)
        for wanted, at, dynamic in outline.imports:
            if (
                not dynamic
                and not found(names, file.encode(), wanted.encode())
                and (why := _absent(modules, file, wanted))
            ):
                yield _at(file, text, at, "ReferenceError", why)
        yield from _absent_exports(modules, names, file, outline)
        yield from _common_js(modules, file, outline)


def _at(file: str, text: str, at: int, name: str, message: str) -> ScriptError:
    """Return an error of this name and message at a position of a file."""
    line, column = line_and_column(text, at)
    return ScriptError(name, message, f"    at {file}:{line}:{column}", file=file, line=line, column=column)


def _absent(modules: Mapping[str, str], file: str, wanted: str) -> str | None:
    """Return the words for an import that a script does not have; None if it has it."""
    if wanted.startswith((LIB, "lodger:")) or standard_modules.is_one(wanted):
        return None
    said = f"cannot find module '{wanted}'"
    path = joined(file.encode(), wanted.encode())
    if path is not None:
        own = [each for each in modules if ":" not in each and not each.endswith(".map")]
        near = get_close_matches(path.decode(), [each for each in own if each != file], 1)
        if near:
            return f"{said}; the script has the file {near[0]}: write its path from {file}, with its ending"
        ending = wanted.rpartition("/")[2].rpartition(".")[2]
        if "." in wanted.rpartition("/")[2] and ending not in ("js", "ts", "json", "mjs", "cjs"):
            return f"{said}: a script has files in .js, .ts and .json only; write the .{ending} as a text in a .js file, or keep it in db"
        return f"{said}; this script has {', '.join(own[:20])}"
    if "://" in wanted or wanted.startswith("npm:"):
        return f"{said}: nothing is loaded from the network; npm install the package, import it by its name, then lodger bundle FILE"
    plain = wanted.removeprefix("node:")
    package = wanted.partition("/")[0]
    if package in standard_modules.NAMES:
        return f"{said}: import from '{package}' itself, or bundle it: npm install {package}, then lodger bundle FILE"
    if plain in NODE_MODULES or wanted.startswith("node:"):
        return (
            f"{said}: a script does not run in Node.js; {NODE_MODULES.get(plain, 'use the APIs of the web platform')}"
        )
    if f"./{wanted}" in (f"./{each}" for each in modules) or wanted.endswith((*CODE, ".json")):
        return f"{said}: a file of the script is imported by its path: './{wanted}'"
    near = get_close_matches(wanted, standard_modules.NAMES, 1)
    installed = "/".join(wanted.split("/")[: 2 if wanted.startswith("@") else 1])
    hint = f"did you mean '{near[0]}'? Otherwise" if near else "for a package of npm,"
    return f"{said}: {hint} put it into the script: npm install {installed}, then lodger bundle FILE"


def _absent_exports(
    modules: Mapping[str, str], names: set[bytes], file: str, outline: Outline
) -> Iterator[ScriptError]:
    """Yield an error for each name that is imported from a file of the script which does not export it."""
    if "import" not in outline.text:
        return
    ends = {at: wanted for wanted, at, dynamic in outline.imports if not dynamic}
    for each in _NAMES_OF_IMPORT.finditer(outline.code):
        wanted = ends.get(each.end(), "")
        place = found(names, file.encode(), wanted.encode())
        target = place.decode() if place else wanted
        if place is None and target in standard_modules.NAMES:
            exported = standard_modules.exports(target) or _exports(standard_modules.source(target))
        elif not target.endswith(CODE) or ":" in target or len(modules.get(target, "")) > MAX_CHARACTERS:
            continue
        else:
            exported = _exports(modules[target]) if target in modules else None
        if exported is None:
            continue
        for part in re.finditer(r"(?:^|,)\s*(?!type\b)([\w$]+)", each[1]):
            if part[1] in exported:
                continue
            near = get_close_matches(part[1], sorted(exported), 1)
            named = ", ".join(sorted(exported)[:20])
            hint = f"did you mean {near[0]}?" if near else f"it exports {named}" if named else "it exports nothing"
            types = "; a type is imported with import type" if target.endswith(".ts") else ""
            said = f"{target} does not export '{part[1]}': {hint}{types}"
            yield _at(file, outline.text, each.start(1) + part.start(1), "SyntaxError", said)


def _exports(text: str) -> set[str] | None:
    """Return the names that a file exports; None if they cannot be told from its text alone."""
    code = Outline(text).code
    if len(code) < len(text) or "exports" in code or _OPEN_EXPORTS.search(outermost(code)):
        return None
    listed = (part.split()[-1] for each in _LISTED.finditer(code) for part in each[1].split(",") if part.strip())
    return {*_DECLARED.findall(code), *listed, *(["default"] if _DEFAULT.search(code) else [])}


def no_function(modules: Mapping[str, str]) -> ScriptError | None:
    """Return the error of an entry whose default export is seen to be no function; None for any that may be one."""
    file, text = next(iter(modules.items()), ("", ""))
    outline = Outline(text)
    if file.startswith("index.") or len(text) > MAX_CHARACTERS or not outline.has_default:
        return None
    top = outermost(outline.code)
    found = _NO_FUNCTION.search(top) or _AS_DEFAULT.search(outline.code)
    if found and found["name"]:
        name = re.escape(found["name"])
        value = re.search(
            rf"(?<![\w$.])(?:const\s++{name}\s*+=\s*+(?P<value>{_VALUE})|(?P<class>class\s++{name}\b))", top
        )
        if (
            value
            and value["class"]
            and re.search(rf"(?<![\w$.]){name}(?![\w$])(?!{_END}|\s*+(?:[.({{]|extends\b))", outline.code)
        ):
            return None  # the name of a class may be given another value
        start = (value["class"] or value["value"])[0] if value else ""
    else:
        start = found["value"][0] if found else ""
    if not found or not start:
        return None
    shown = "a generator function" if found["value"] and "*" in found["value"] else _SAID.get(start, "a value")
    said = f"the default export is {shown}, and Lodger calls it: write {SHAPE}"
    if start == "{" and re.search(r"\b(?:fetch|scheduled)\b", outline.code):
        said += "; what a request to the script's URL brings is action.input"
    return _at(file, text, found.start(), "TypeError", said)


def _common_js(modules: Mapping[str, str], file: str, outline: Outline) -> Iterator[ScriptError]:
    """Yield an error for each use of CommonJS, such as ``require``."""
    code = outline.code
    if "require" in code and not _OWN_REQUIRE.search(code):
        for each in _REQUIRE.finditer(code):
            wanted = outline.text[each.end() : code.find(each[1], each.end())]
            said = f"a script has no require(): write import name from '{wanted}' at the top of the file"
            if (absent := _absent(modules, file, wanted)) and "Node.js" in absent:
                said = f"a script has no require(), and {absent}"
            yield _at(file, outline.text, each.start(), "SyntaxError", said)
    exported = _MODULE_EXPORTS.search(outermost(code)) if "exports" in outline.text else None
    if exported and not re.search(r"\b(?:typeof|var|let|const)\s++(?:module|exports)\b", code):
        said = f"a script has no module.exports: write {SHAPE}, and export before what other files import"
        yield _at(file, outline.text, exported.start(), "SyntaxError", said)


def idle(modules: Mapping[str, str]) -> ScriptError | None:
    """Return the error of an entry that can be parsed and runs nothing: it has only comments, or only declares functions."""
    file, text = next(iter(modules.items()), ("", ""))
    outline = Outline(text)
    if file.startswith("index.") or len(text) > MAX_CHARACTERS or "export" in outline.code:
        return None
    # An empty file is told by callers; one of types alone is empty without them.
    if not text.strip() and not file.endswith(".ts"):
        return None
    if not _DIRECTIVE.sub("", outline.code.lstrip("\ufeff")).strip(" \n\r\t;"):
        only = "comments or types" if file.endswith(".ts") else "comments"
        message = f"the file has only {only}, so nothing would run: write {SHAPE}"
        return ScriptError("EmptyScript", message, file=file, line=1)
    top = _DIRECTIVE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), outermost(outline.code))
    left, functions = _FUNCTION.subn(";", _IMPORTED.sub(" ", top))
    left, arrows = _ARROW.subn(";", left)
    if functions + arrows and not re.sub(r"(?:const|let|var)\s[^;(`\n]*", "", left).strip(" \n\r\t;"):
        named = re.search(r"(?<![\w$.])function\s*+\*?\s*+([\w$]++)", top) or _NAMED.search(top)
        name = named[1] if named else "main"
        message = (
            f"the file only declares {name}, so nothing would run: write export default async function {name}({{ db, now }}) {{ … }}; "
            "Lodger calls the default export"
        )
        return _at(file, text, named.start() if named else 0, "NothingToRun", message)
    return None


def explained(error: ScriptError | None, modules: Mapping[str, str]) -> ScriptError | None:
    """Return an error with more advice: what is not closed, TypeScript in .js, a module that is absent."""
    if error is not None and error.name == "ReferenceError":
        missing = _MISSING.match(error.message)
        entry = error.file if error.file in modules else next(iter(modules), "")
        said = _absent(modules, entry, missing[1]) if missing and entry else None
        return replace(error, message=said) if said else error
    if error is None or error.name != "SyntaxError" or not error.line:
        return error
    text = modules.get(error.file or "", "")
    last = text.rstrip().count("\n") + 1
    early = _EARLY.search(error.message) and (error.line >= last or error.message.endswith(("''", "string", "comment")))
    if early and (opened := unclosed(text)) is not None:
        mark, at = opened
        line, column = line_and_column(text, at)
        said = "the line" if mark in "'\"" else "the file"
        end = len(text.split("\n")[error.line - 1]) + 1
        message = f"{said} ends too early: the {mark} of line {line}, column {column} is not closed"
        return replace(error, message=message, column=error.column or end)
    if not (error.file or "").endswith(".js"):
        return error
    lines = text.split("\n")[max(0, error.line - 2) : error.line]
    if not any(map(_TYPESCRIPT.search, reversed(lines))):
        return error
    name = (error.file or "").removesuffix(".js")
    return replace(
        error, message=f"{error.message}; this looks like TypeScript: name the file {name}.ts, or leave out the types"
    )
