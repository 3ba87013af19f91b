"""``lodger init`` starts a folder that the other commands accept as it is, and never changes an author's file."""

from pathlib import Path

from tests.e2e.command import inside

from lodger.stdlib import declarations


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
    (folder / "lodger-types" / "db.d.ts").write_text("of an earlier release")
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
