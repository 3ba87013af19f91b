"""The TypeScript declarations and the running realm name the same things, in both directions and on both runtimes."""

import json
import re
from typing import Any

import pytest
from tests.unit.scripts.declared_types import table

from lodger.engine.trials.trial import try_script
from lodger.sandbox.limits import Limits
from lodger.stdlib import declarations, standard_modules
from lodger.stdlib.declarations import LANGUAGE

#: Members that need no declaration: every object has them, or they only serve the library itself.
UNSAID = {"constructor", "toString", "valueOf", "toJSON", "length", "name", "prototype", "message", "stack"}
INTERNAL = {("Instant", "ofMicroseconds")}
#: Values whose members come from a call: the expression that makes one, by declared type.
MADE = {
    "Rows": "db.things", "Page": "await db.things.find()", "Changes": "await changes('things')", "Budget": "(await limits()).attempt.mails",
    "Limits": "await limits()", "AbortSignal": "new AbortController().signal",
}  # fmt: skip
_CONSTANT = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*")

SURVEY = """
const own = (value) => Reflect.ownKeys(value).filter((key) => typeof key === "string");
function members(value, stop) {
  const found = new Set();
  for (let at = value; at && !stop.includes(at); at = Object.getPrototypeOf(at)) for (const key of own(at)) found.add(key);
  return [...found];
}
const others = Object.getPrototypeOf(Instant.prototype); // names of other date libraries, which say what to write
const shared = [Object.prototype, Function.prototype, Array.prototype, Error.prototype, others];
const globals = {}, made = {}, modules = {};
for (const name of own(globalThis)) {
  const value = globalThis[name];
  globals[name] = value === null || !["object", "function"].includes(typeof value) ? null : {
    own: own(value),
    members: typeof value === "function" ? members(value.prototype, shared) : members(value, shared),
    nested: Object.fromEntries(own(value).filter((key) => typeof value !== "function" && value[key] !== null
      && typeof value[key] === "object").map((key) => [key, members(value[key], shared)])),
  };
}
const makers = MAKERS;
const found = NAMES;
export default async function (run) {
  shared.push(Object.getPrototypeOf(Object.getPrototypeOf(db.any)));
  for (const name in makers) made[name] = members(await makers[name](), shared);
  const temporal = Object.fromEntries(own(Temporal).map((name) => [name, typeof Temporal[name] === "function"
    ? [members(Temporal[name].prototype, shared), own(Temporal[name])] : [members(Temporal[name], shared), []]]));
  return { globals, made, modules: found, run: own(run), temporal };
}
"""


def survey(runtime: str) -> dict[str, Any]:
    """Return the names that a script sees."""
    makers = "{" + ",".join(f'"{name}": async () => {text}' for name, text in MADE.items()) + "}"
    source = SURVEY.replace("MAKERS", makers)
    if runtime == "quickjs":  # the other runtime imports no modules
        head = "".join(f'import * as m_{name} from "{name}";' for name in standard_modules.OWN)
        names = ",".join(f'"{name}": Object.keys(m_{name})' for name in standard_modules.OWN)
        source = head + source.replace("NAMES", "{" + names + "}")
    else:
        source = source.replace("NAMES", "{}")
    ended = try_script(source, None, Limits(), runtime=runtime).finished
    assert ended.error is None, ended.error
    found: dict[str, Any] = json.loads(ended.result or "null")
    return found


def declared(types: dict[str, Any], name: str) -> set[str]:
    """Return the declared members of a type and of the types that it extends."""
    about = types.get(name)
    return set() if about is None else set(about["members"]) | declared(types, about["base"] or "")


def compare(problems: list[str], what: str, said: set[str], there: set[str]) -> None:
    """Note what is declared and does not exist, and what exists and is not declared."""
    there = {name for name in there if not _CONSTANT.fullmatch(name) or name in said}
    problems += [
        f"{what}.{name} is declared, and does not exist"
        for name in sorted(said - there - UNSAID)
        if (what, name) not in INTERNAL
    ]
    problems += [
        f"{what}.{name} exists, and is not declared"
        for name in sorted(there - said - UNSAID)
        if (what, name) not in INTERNAL
    ]


@pytest.mark.parametrize("runtime", ["quickjs", "quickjs-native"])
def test_everything_that_exists_is_declared_and_everything_declared_exists(runtime: str) -> None:
    found, api = survey(runtime), table()
    types, problems = api["types"], list[str]()
    compare(
        problems, "globalThis", set(api["globals"]), {name for name in found["globals"] if name[0] != "$"} - LANGUAGE
    )
    for name, entry in api["globals"].items():
        there, type_ = found["globals"].get(name), types.get(entry["type"])
        if there is None or type_ is None:
            continue
        if name in types and entry["type"] == name and name[0].isupper():
            here = set(found["made"].get(name, there["members"]))
            compare(problems, name, declared(types, name), here)
            if "prototype" in there["own"]:
                compare(problems, name, set(type_["statics"]), set(there["own"]))
        elif "index" not in type_ and not entry["signature"].startswith(f"{name}("):
            compare(problems, name, declared(types, entry["type"]), set(there["members"]))
            for inner, members in there["nested"].items():
                literal = re.search(rf"\b{inner}: \{{(.*)\}}", entry["signature"]) or re.match(
                    r"\w+: \{(.*)\}", type_["members"].get(inner, {}).get("signature", "")
                )
                of = type_["members"].get(inner, {}).get("type")
                if literal is not None:
                    compare(
                        problems, f"{name}.{inner}", set(re.findall(r"(?:^|; )\s*(\w+)[(<:]", literal[1])), set(members)
                    )
                elif of in types:
                    compare(problems, f"{name}.{inner}", declared(types, of), set(members))
    for name in ("Rows", "Page", "Changes", "Budget", "Limits"):
        compare(problems, name, declared(types, name), set(found["made"][name]))
    compare(problems, "Secrets", declared(types, "Secrets"), set(found["globals"]["secrets"]["members"]))
    compare(problems, "Run", declared(types, "Run"), set(found["run"]))
    for name, (members, statics) in found["temporal"].items():
        compare(problems, f"Temporal.{name}", declared(types, f"Temporal.{name}"), set(members))
        compare(problems, f"Temporal.{name}", set(types[f"Temporal.{name}"]["statics"]), set(statics))
    for name, exports in found["modules"].items():
        block = re.search(rf'declare module "{name}" \{{(.*?)^\}}', declarations.text(), re.DOTALL | re.MULTILINE)
        said = set(re.findall(r"^  export (?:function|class|const) (\w+)", block[1] if block else "", re.MULTILINE))
        compare(problems, f"module {name}", said, set(exports) - {"default"})
    assert not problems, "\n".join(
        [*problems, "Correct the part of it in stdlib/types; a new module also needs its declare module block."]
    )
