"""A folder of scripts with schedules.toml: what is read, and what ``lodger check`` finds."""

import json
from pathlib import Path

from tests.e2e.command import inside

from lodger.engine.core import toml_places
from lodger.engine.workbench import schedules_file

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
    assert ("report.js", 2, None, "grant_hint") in found


def test_grants_that_a_script_seems_to_need_are_named(tmp_path: Path) -> None:
    path = tmp_path / "report.js"
    path.write_text(
        """export default async ({ schedule, action }) => {
  await schedule.runIn("1h", { script: "invoice", input: { script: "no" } });
  await schedule.runAt(action.slot, {
    key: "k",
    script: 'remind',
  });
  await schedule.cancel("k", { script: `told` });
  await schedule.runIn("1h");
  await schedule.runIn("2h", { input: 1 }); const other = { script: "not" };
};
"""
    )
    needed = [("run:invoice", 2), ("run:remind", 3), ("run:told", 7)]

    def hints() -> list[tuple[str, int]]:
        found = inside("check", tmp_path, "--json").json["findings"]
        assert {each["code"] for each in found} <= {"grant_hint"}
        return [(each["message"].rpartition(" ")[2], each["line"]) for each in found]

    assert hints() == needed
    (tmp_path / "schedules.toml").write_text('[dev]\ngrants = ["run:remind"]\n')
    assert hints() == [needed[0], needed[2]]
    (tmp_path / "schedules.toml").write_text('[dev]\ngrants = ["run:*"]\n')
    assert hints() == []
    path.write_text("export default ({ schedule }) => schedule.runIn(" + "{" * 200_000 + ")")
    inside("check", tmp_path, "--json")


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
