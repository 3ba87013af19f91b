"""Search for regular expressions with the flag v, which the engine of runtime quickjs would execute wrongly. Pure.

quickjs-ng 0.15 accepts the flag and ignores it.
"""

import re
from collections.abc import Mapping

from lodger.sandbox.job import ScriptError
from lodger.sandbox.source_tokens import tokens

FLAG_V = "runtime quickjs does not support regular expressions with the flag v; use the flag u, without sets and \\q{}"
_SUSPECT = re.compile(r"/[dgimsuy]*v[dgimsy]*(?![\w$])|RegExp")
_MADE = re.compile(
    r"""\bRegExp\s*\((?:[^()'"`\n]|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`$]*`)*,\s*(["'`])[dgimsy]*v[dgimsy]*\1"""
)


def misread(files: Mapping[str, str]) -> ScriptError | None:
    """Return the error of the first file of code with a regular expression of flag v, which the runtime reads as another; None without
    one."""
    for file, text in files.items():
        if not file.endswith((".json", ".map", "map:")) and (line := line_with_flag_v(text)) is not None:
            return ScriptError("SyntaxError", FLAG_V, file=file, line=line)
    return None


def line_with_flag_v(text: str) -> int | None:
    """Return the first line number of a regular expression with flag v: a literal, or a call of ``RegExp`` with literal flags; None
    without one."""
    if _SUSPECT.search(text) is None:
        return None
    made = _MADE.search(text)
    places = [at for kind, at, end in tokens(text) if kind == "regex" and "v" in text[at:end].rpartition("/")[2]]
    places += [made.start()] if made else []
    return text.count("\n", 0, min(places)) + 1 if places else None
