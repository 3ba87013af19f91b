"""Folders of scripts: what ``lodger init`` starts, what every command reads, and what ``lodger check`` finds."""

import json
from pathlib import Path

import pytest
from tests.e2e.command import inside

from lodger.engine.core import toml_places
from lodger.engine.workbench import schedules_file
from lodger.stdlib import declarations

WRONG = """\
name = "shop"
[schedules.daily]
script = "report"
rules = "every weekday at 9:00"
misssed = "skip"

[schedules."two words"]
script = ["report", { script = "absent", limits = { cpu_ms = 500 } }]
rules = ["0 9 * * *", "0 25 * * *"]
jitter_s = "x"
retry = { attempt = 3 }

[schedules.never]
script = "other"
rules = "0 0 30 2 *"

[schedules.empty]
[dev]
grants = ["nope"]
[scripts.gone]
"""


def test_all_findings_come_at_once_with_their_places(tmp_path: Path) -> None:
    (tmp_path / "schedules.toml").write_text(WRONG)
    (tmp_path / "report.js").write_text(
        'export default async ({ fetch }) => {\n  await fetch("https://api.example.com/x");\n  let a = ;\n};\n'
    )
    (tmp_path / "other.js").write_text("export default () => 1;\n")
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "main.js").write_text("export default () => 1;\n")
    (tmp_path / "report.test.js").write_text("not a script")
    said = inside("check", tmp_path, "--json")
    assert said.code == 1
    found = {(each["file"], each["line"], each["code"]) for each in said.json["findings"]}
    assert found == {
        ("report.js", None, "script_twice"),
        ("schedules.toml", 5, "toml_key_unknown"),
        ("schedules.toml", 9, "cron_bad_field"),
        ("schedules.toml", 10, "toml_key_invalid"),
        ("schedules.toml", 8, "script_unknown"),
        ("schedules.toml", 11, "toml_key_unknown"),
        ("schedules.toml", 15, "rule_never_fires"),
        ("schedules.toml", 17, "toml_key_missing"),
        ("schedules.toml", 19, "grant_unknown"),
        ("schedules.toml", 20, "script_unknown"),
    }
    (tmp_path / "report" / "main.js").unlink()
    said = inside("check", tmp_path, "--json")
    found = {(each["file"], each["line"], each["column"], each["code"]) for each in said.json["findings"]}
    assert ("report.js", 3, 11, "source_refused") in found
    assert all("--force" not in str(each["fix"]) for each in said.json["findings"])


def test_a_correct_folder_has_sentences_and_slots(tmp_path: Path) -> None:
    (tmp_path / "schedules.toml").write_text('[schedules.a]\nscript = "b"\nrules = "every day at 9:00"\n')
    (tmp_path / "b.js").write_text("export default () => 1;\n")
    body = inside("check", tmp_path, "--json").json
    assert body["ok"]
    assert (body["findings"], body["scripts"]) == ([], ["b"])
    (one,) = body["schedules"]
    assert (one["name"], one["text"], len(one["next"])) == ("a", "Every day at 09:00 (UTC)", 3)
    assert inside("check", tmp_path / "absent", "--json").code == 2


def test_hostile_files_are_findings(tmp_path: Path) -> None:
    path = tmp_path / schedules_file.NAME
    for text in (
        "[" * 5000, "a = " + "[" * 5000 + "]" * 5000, "schedules = 1", "dev = 3", "[schedules]\na = 1", "[schedules.'../x']",
        "[schedules.a]\nscript = 1\nrules = {}\nparams = nan", "[dev]\ncollections = 3", "name = ''", "x = \x00", "[scripts.a]\nparams = 7",
        "[schedules.a]\nscript='a'\nrules='* * * * *'\nlimits={cpu=1}\nlabels=[1]\nparams_json='{'",
    ):  # fmt: skip
        path.write_text(text)
        assert schedules_file.read(path, "x").findings, text
    path.write_bytes(b"\xff")
    assert schedules_file.read(path, "x").findings
    path.write_text("# " + "x" * schedules_file.MAX_BYTES)
    assert schedules_file.read(path, "x").findings


def test_values_written_as_toml_are_read_as_they_were() -> None:
    import tomllib

    for value in ("a\"b\\\n\x01\x7f\u2028é😀'", [1, 2.5, True, {"a b": {"": []}, "c.d": "x"}], -(2**53), {"x": [[]]}):
        assert tomllib.loads(f"v = {toml_places.toml_text(value)}")["v"] == value
    assert toml_places.has_null(json.loads('{"a": [{"b": null}]}'))
    assert not toml_places.has_null({"a": [0, "", {}]})


def test_a_started_folder_works_and_stays_its_authors(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    said = inside("init", str(folder), "--json").json
    assert said["types"] == ["lodger.d.ts"]
    assert set(said["written"]) == {"jsconfig.json", "report.js", "report.test.js", "schedules.toml", "README.md"}
    assert (folder / "lodger-types" / "lodger.d.ts").read_text() == declarations.text()
    checked = inside("check", str(folder), "--json")
    assert (checked.code, checked.json["findings"], checked.json["scripts"]) == (0, [], ["report"])
    tested = inside("test", str(folder), "--json")
    assert (tested.code, tested.json["passed"], tested.json["failed"]) == (0, 2, 0)

    (folder / "report.js").write_text("export default () => 1")
    (folder / "README.md").unlink()
    (folder / "jsconfig.json").write_text("{}")
    (folder / "lodger-types" / "lodger.d.ts").write_text("old")
    assert inside("init", str(folder), "--json").json["written"] == []
    assert {each.name for each in folder.iterdir()} == {
        "lodger-types", "jsconfig.json", "report.js", "report.test.js", "schedules.toml",
    }  # fmt: skip
    assert (folder / "report.js").read_text() == "export default () => 1"
    assert {each.name for each in (folder / "lodger-types").iterdir()} == {"lodger.d.ts", "npm"}
    assert (folder / "lodger-types" / "lodger.d.ts").read_text() == declarations.text()

    own = tmp_path / "own"
    (own / "job").mkdir(parents=True)
    (own / "job" / "main.ts").write_text("export default (): number => 1")
    assert inside("init", str(own), "--json").json["written"] == ["jsconfig.json"]


def test_scripts_are_stored_after_the_libraries_that_they_import(tmp_path: Path) -> None:
    for name, text in {
        "a.js": 'import { two } from "./m.js"; import { four } from "lib:z@1"; export default () => two * four',
        "m.js": 'import { one } from "../n/main.js"; export const two = one * 2; export default () => two',
        "n/main.ts": "export const one: number = 1; export default () => one",
        "z/index.ts": "export const four: number = 4;",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    checked = inside("check", str(tmp_path), "--json")
    assert (checked.json["findings"], checked.json["scripts"][0], sorted(checked.json["scripts"])) == (
        [],
        "z",
        ["a", "m", "n", "z"],
    )
    (tmp_path / "n" / "main.ts").write_text('import { two } from "../m/main.js"; export default () => two')
    assert inside("check", str(tmp_path), "--json").json["findings"]


FILES = {
    "util.js": 'import config from "./config.json" with { type: "json" };\nexport const tax = (net) => net * config.rate;\n',
    "config.json": '{ "rate": 2 }',
    "lib/k.js": "export const k = 5;\n",
    "job.js": 'import { tax } from "./util.js";\nimport { k } from "./lib/k.js";\nexport default () => tax(k);\n',
    "report/main.js": 'import { tax } from "../util.js";\nexport default () => {\n  throw new Error(`tax ${tax(1)}`);\n};\n',
    "job.test.js": 'import { test } from "testing";\nimport { tax } from "./util.js";\n'
    'test("taxes", { script: "job" }, ({ result }) => {\n  if (result !== tax(5)) throw new Error(`${result}`);\n});\n',
    # As editors of Windows save it.
    "schedules.toml": '\ufeff# rules\r\n[schedules.daily]\r\nscript = "job"\r\nrules = "every day at 09:00"\r\n',
}


@pytest.fixture
def flat(tmp_path: Path) -> Path:
    """Return a flat folder of scripts."""
    folder = tmp_path / "flat"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())
    return folder


def test_every_command_reads_the_same_files(flat: Path, tmp_path: Path) -> None:
    checked = inside("check", flat, "--json").json
    assert (checked["findings"], sorted(checked["scripts"])) == ([], ["job", "report"])
    assert inside("exec", flat / "job.js", "--json").json["result"] == 10
    failed = inside("exec", flat / "report" / "main.js", "--json").json["error"]
    assert (failed["file"], failed["line"], failed["message"]) == ("report/main.js", 3, "tax 2")
    assert "1 passed" in inside("test", flat).out
    developed = inside("dev", flat, "--start", "2027-01-01T00:00:00Z", "--steps", "1", "--json").out
    assert '"result": 10' in developed or '"result":10' in developed
    ledger = ("--db", tmp_path / "ledger.db")
    assert inside("tenant", "create", "acme", *ledger).code == 0
    assert inside("deploy", flat, "acme", "--yes", *ledger).code == 0
    assert inside("script", "dry-run", "acme", "job", "--json", *ledger).json["result"] == 10
    stored = inside("script", "dry-run", "acme", "report", "--json", *ledger).json["error"]
    assert (stored["file"], stored["line"]) == ("report/main.js", 3)
    assert inside("deploy", flat, "acme", "--yes", "--json", *ledger).json["applied"] == 0
    pulled = tmp_path / "pulled"
    assert inside("pull", pulled, "acme", "--yes", *ledger).code == 0
    assert {name for name in FILES if (pulled / name).exists()} == FILES.keys() - {"job.test.js"}


def test_exec_finds_what_lies_above_its_file_wherever_it_is_started(
    flat: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (flat / "schedules.toml").unlink()
    (flat / "jobs").mkdir()
    (flat / "jobs" / "daily.js").write_bytes((flat / "report" / "main.js").read_bytes())
    for cwd, file, shown in (
        (".", "report", "report/main.js"),
        (".", "report/main.js", "report/main.js"),
        ("report", "main.js", "main.js"),
        ("report", ".", "main.js"),
        (".", "jobs/daily.js", "jobs/daily.js"),
        ("jobs", "daily.js", "daily.js"),
        ("lib", "../jobs/daily.js", "../jobs/daily.js"),
        ("lib", str(flat / "jobs" / "daily.js"), str(flat / "jobs" / "daily.js")),
    ):
        monkeypatch.chdir(flat / cwd)
        assert f"\n{shown}:3: Error: tax 2\n" in inside("exec", file).out, (cwd, file)


#: Files, and for each finding: file, line and words of what to write.
MISTAKES = {
    "gas.js": "function myFunction() {\n  console.log(1);\n}\n",
    "comments.js": "// nothing yet\n/* or ever */\n",
    "cjs.js": 'const _ = require("lodash-es");\nmodule.exports = () => _.now();\n',
    "node.js": 'import fs from "node:fs";\nimport x from "lodahs";\nimport y from "./utl.js";\nexport default () => 1 +;\n',
    "util.js": "export const util = 1;\n",
    "worker.js": "export default {\n  async fetch(request) {\n    return console.lg(1);\n  },\n};\n",
    "early.js": "export default async () => {\n  return 1;\n",
    "list.txt": "a b",
    "view.jsx": "export default () => <p/>;\n",
    "typed.js": "export default (a: string) => a;\n",
    "two.js": 'import { b } from "./lib/b.js";\nimport data from "./data.json";\nexport default () => b +;\n',
    "lib/b.js": "export const b = ;\n",
    "lib/unused.js": "export const c = 1;\n",
    "data.json": "{",
    "m.mjs": "export default () => 1;\n",
    "n.cjs": "module.exports = 1;\n",
    "lib/mod.ts": "export default 1;\n",
    "schedules.toml": '[schedules.a]\nscript = "gas"\nrules = "every day at 25:00"\n'
    '[schedules.b]\nscript = "util"\nrules = "every day at 09:00"\n',
}
FOUND = {
    ("gas.js", 1, "export default async function myFunction"),
    ("comments.js", 1, "export default"),
    ("cjs.js", 1, "import name from 'lodash-es'"),
    ("cjs.js", 2, "export default"),
    ("node.js", 1, "db or kv"),
    ("node.js", 2, "lodger bundle"),
    ("node.js", 3, "util.js"),
    ("node.js", 4, "unexpected token"),
    ("worker.js", 1, "write export default async"),
    ("worker.js", 3, "did you mean log?"),
    ("early.js", 3, "the { of line 1, column 28 is not closed"),
    ("view.jsx", None, "without JSX"),
    ("typed.js", 1, "typed.ts"),
    ("two.js", 3, "unexpected token"),
    ("lib/b.js", 1, "unexpected token"),
    ("data.json", 1, "JSON"),
    ("m.mjs", None, "m.js"),
    ("n.cjs", None, "n.js"),
    ("lib/mod.ts", None, "import it by its path"),
    ("lib/unused.js", None, "import it by its path"),
    ("schedules.toml", 3, "23"),
    ("schedules.toml", 5, "export default"),
}


def test_check_tells_all_mistakes_at_once_and_what_to_write(tmp_path: Path) -> None:
    for name, text in MISTAKES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    findings = inside("check", tmp_path, "--json").json["findings"]
    said = {(each["file"], each["line"]): f"{each['message']} {each['fix']}" for each in findings}
    assert said.keys() >= {(file, line) for file, line, _words in FOUND}
    assert [(file, line, said[file, line]) for file, line, words in FOUND if words not in said[file, line]] == []


@pytest.mark.parametrize(
    "name", ["gas.js", "comments.js", "cjs.js", "node.js", "early.js", "typed.js", "m.mjs", "view.jsx"]
)
def test_exec_refuses_the_same_by_the_name_of_the_file(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(MISTAKES[name])
    ended = inside("exec", tmp_path / name)
    words = next(words for file, _line, words in sorted(FOUND, key=str) if file == name)
    assert (ended.code != 0, name in (ended.out + ended.err), words in (ended.out + ended.err)) == (True, True, True)


@pytest.mark.parametrize("name", ["data.json", "list.txt"])
def test_exec_runs_no_file_that_is_no_script(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(MISTAKES[name])
    said = inside("exec", tmp_path / name, "--json").json["error"]
    assert (said["code"], name in said["message"], "import data from" in said["fix"]) == (
        "file_not_javascript",
        True,
        True,
    )


def test_a_module_may_export_a_value_by_default(tmp_path: Path) -> None:
    (tmp_path / "table.js").write_text("export default { days: 7 };\n")
    (tmp_path / "job.js").write_text('import table from "./table.js";\nexport default () => table.days;\n')
    (tmp_path / "alone.js").write_text("export default { days: 7 };\n")
    findings = inside("check", tmp_path, "--json").json["findings"]
    assert [(each["file"], each["line"], each["code"]) for each in findings] == [("alone.js", 1, "source_refused")]
