"""Imports from other scripts, libraries and JSON files: copied when a version is stored, within limits and within the tenant."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lodger.engine.core.errors import InputError
from lodger.engine.core.ids import PLATFORM
from lodger.engine.core.settings import Settings
from lodger.engine.sync import Engine

INDEX = """import { half } from "./lib/half.js";
export const cents = (x) => half(x) * 200;
export const fail = (x) => {
  return x.y.z;
};
"""
MONEY = {
    "index.js": INDEX,
    "lib/half.js": 'import one from "../one.json";\nexport const half = (x) => (x * one) / 2;',
    "one.json": "1",
}
JOB = """import { cents } from "lib:money@1";
import { seven } from "../helper/main.js";
import rates from "./rates.json" with { type: "json" };
import odd from "../helper/odd.json";
export default () => [cents(3), seven(), rates.eur, odd, Object.keys(odd.a[0])];
"""
HELPER = {
    "main.js": "export const seven = () => 7;\nexport default () => 1",
    "odd.json": '{"a": [{"__proto__": 5}], "b": "\\u2028\\n\\"\\\\"}',
}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    settings = Settings(sqlite_synchronous="NORMAL", check_scripts=True)
    with Engine.open(tmp_path / "ledger.db", settings=settings) as opened:
        opened.tenants.create("acme")
        opened.tenants.create("other")
        yield opened


def code(engine: Engine, name: str, source: Any, tenant: str = "acme") -> tuple[str, str]:
    with pytest.raises(InputError) as refused:
        engine.scripts.put(tenant, name, source)
    return refused.value.code, str(refused.value)


def test_what_a_version_imports_is_kept_with_it(engine: Engine, tmp_path: Path) -> None:
    scripts = engine.scripts
    assert scripts.put("acme", "money", MONEY).kind == "library"
    scripts.put("acme", "helper", HELPER)
    job = {"main.js": JOB, "rates.json": '{"eur": 1.5, "like": "/[a]/v"}'}
    first = scripts.put("acme", "job", job)
    assert (first.uses, set(first.modules)) == ({"lib:money@1": 1, "../helper": 1}, set(job))
    odd = {"a": [{"__proto__": 5}], "b": '\u2028\n"\\'}
    expected = [300, 7, 1.5, odd, ["__proto__"]]
    assert scripts.dry_run("acme", "job").result == expected
    assert scripts.put("acme", "job", job).version == 1, "nothing changed"

    scripts.put("acme", "helper", HELPER | {"main.js": "export const seven = () => 8;\nexport default () => 1"})
    assert scripts.dry_run("acme", "job").result == expected, "a stored version does not change"
    second = scripts.put("acme", "job", job)
    assert (second.version, second.uses["../helper"]) == (2, 2)
    assert scripts.dry_run("acme", "job").result == [300, 8, 1.5, odd, ["__proto__"]]
    (changed,) = scripts.diff("acme", "job", 1).files
    assert "-../helper version 1\n+../helper version 2" in changed.text
    assert scripts.rollback("acme", "job", 1).uses == first.uses
    assert scripts.dry_run("acme", "job").result == expected

    scripts.put("acme", "wrong", 'import { fail } from "lib:money@1";\nexport default () => fail({})')
    error = scripts.dry_run("acme", "wrong").error
    assert error is not None
    assert (error.file, error.line, error.column) == ("lib:money@1/index.js", 4, 14)

    engine.tenants.suspend("acme")
    archive = engine.tenants.export("acme")
    with Engine.open(tmp_path / "elsewhere.db") as elsewhere:
        elsewhere.tenants.restore("acme", archive)
        assert elsewhere.scripts.get("acme", "job", 3).uses == first.uses


def test_libraries_stay_within_their_tenant_and_cannot_run(engine: Engine) -> None:
    scripts = engine.scripts
    scripts.put("acme", "money", MONEY)
    scripts.put(PLATFORM, "rates", {"index.js": "export const eur = 2"})
    assert (
        code(engine, "job", 'import { cents } from "lib:money@1"; export default cents', tenant="other")[0]
        == "import_unknown"
    )
    for wanted in (
        "lib:money@2",
        "lib:money@1x",
        "lib:money@99999999999",
        "lib:money",
        "lib:@rates@1",
        "lib:@@1",
        "lib:../money@1",
    ):
        assert code(engine, "job", f'import {{ a }} from "{wanted}"; export default a')[0] == "import_unknown", wanted
    scripts.put(PLATFORM, "rates", {"index.js": "export const eur = 2"}, offered=True)
    scripts.put("acme", "job", 'import { eur } from "lib:@rates@1"; export default () => eur')
    assert scripts.dry_run("acme", "job").result == 2
    for wanted in ("../../etc/passwd", "/../../x.js", "./../../helper/main.js", "../", ".."):
        assert code(engine, "job", f'import a from "{wanted}"; export default a')[0] == "source_refused", wanted
    assert (
        code(engine, "lib2", {"index.js": 'import a from "../job/main.js"; export const b = a'})[0]
        == "library_not_closed"
    )
    assert code(engine, "money", "export default () => 1")[0] == "kind_fixed"
    with pytest.raises(InputError) as refused:
        engine.schedules.create("acme", "daily", script="money", rules="every day at 9")
    assert refused.value.code == "library_not_run"
    scripts.put("acme", "a", {"main.js": "export const one = 1; export default () => one"})
    scripts.put("acme", "b", 'import { one } from "../a/main.js"; export const two = one; export default () => two')
    beside = 'import { two } from "./b.js"; import "./own.js"; export default () => two'
    assert scripts.put("acme", "flat", {"main.js": beside, "own.js": ""}).uses == {"../b": 1, "../a": 1}
    assert scripts.dry_run("acme", "flat").result == 1
    assert code(engine, "flat", 'import "./flat.js"')[0] == "import_cycle"
    assert (
        code(engine, "lib3", {"index.js": 'import { one } from "./a.js"; export const b = one'})[0] == "source_refused"
    )
    assert code(engine, "a", 'import { two } from "../b/main.js"; export default two')[0] == "import_cycle"


def test_names_and_json_files_are_bounded(engine: Engine) -> None:
    def of(files: dict[str, str]) -> str:
        return code(engine, "job", {"main.js": "export default () => 1"} | files)[0]

    for name in (
        "../x.js",
        "/x.js",
        "a//b.js",
        "a/./b.js",
        "a\\b.js",
        "lib:money@1/index.js",
        "uses:",
        "stripped:main.js",
        "",
        "x" * 121,
        "a\n.js",
        ".git/config",
        ".git/hooks/x.js",
        "lib/.vscode/settings.json",
        ".npmrc",
        "node_modules/dep/index.js",
        "lib/Node_Modules/index.js",
        "config",
        "HEAD",
        "Makefile",
        "setup.sh",
        "package.json",
        "lib/Package.JSON",
        "eslint.config.js",
        "lib/vite.config.ts",
        "run.js.exe",
    ):
        assert of({name: ""}) == "file_name_invalid", name
    for name in (".git", ".profile", "node_modules"):
        assert code(engine, name, "export default () => 1")[0] == "script_name_invalid", name
    engine.scripts.put("acme", "good", {"main.js": "export default () => 1", "lib/a.b.ts": "", "data.json": "1"})
    assert of({f"f{number}.js": "" for number in range(500)}) == "files_too_many"
    assert of({"x.js": "\n".join(f'import "../s{number}/main.js"' for number in range(501))}) == "files_too_many"
    for text in ("", "[1,", "NaN", "[" * 100_000, '{"a": 1, "a": 2}', "[" + "0," * 110_000 + "0]"):
        assert of({"data.json": text}) == "json_invalid", text[:20]
    assert of({"main.ts": ""}) == "entry_ambiguous"
    engine.scripts.put("acme", "large", {"index.js": "export const a = 1;//" + "x" * 200_000})
    for version in range(2, 7):
        engine.scripts.put("acme", "large", {"index.js": f"export const a = {version};//" + "x" * 200_000})
    imports = "".join(f'import {{ a as a{version} }} from "lib:large@{version}";' for version in range(1, 7))
    assert code(engine, "job", imports + "export default () => 1")[0] == "source_too_large"
