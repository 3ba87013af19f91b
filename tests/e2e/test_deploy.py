"""``lodger deploy`` and ``lodger pull``: plan, apply, apply again, concurrent edits, prune, round trip; on a ledger and a server."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.api.running_api import RunningApi, running_api
from tests.e2e.command import inside

from lodger.engine.core.errors import Conflict, Usage
from lodger.engine.output.files import read_whole
from lodger.engine.recurrence.rule import DstPolicy, Gap, Kind, RuleSpec
from lodger.engine.store.records import ScriptVersion
from lodger.engine.workbench import deployment, script_folder
from lodger.engine.workbench.pull import read_scripts

SCHEDULES = """\
name = "shop"  # a comment
[schedules.daily]
script = "report"
rules = "every weekday at 9:00"
tz = "Europe/Berlin"

[schedules."two steps"]
script = ["helper", { script = "report", limits = { cpu_ms = 500 }, version = 1 }]
rules = ["0 12 * * *", { text = "0 13 * * *", kind = "cron", tz = "Asia/Tokyo" }, "every 90 minutes on weekdays"]
exclusions = "FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=24"
params_json = '{"a": [null]}'
retry = { attempts = 3 }
labels = ["b", "a"]
overlap = "BufferOne"

[scripts.report]
grants = ["mail", "kv"]

[dev]
kv = { a = 1 }
[[dev.collections.orders]]
id = "o1"
"""


@pytest.fixture
def lodge(tmp_path: Path) -> Iterator[RunningApi]:
    with running_api(f"sqlite:///{tmp_path / 'served.db'}") as made:
        made.engine.tenants.create("acme")
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "shop"
    (place / "helper" / "lib").mkdir(parents=True)
    (place / "report.js").write_text('import { f } from "./zone.js";\nexport default f;\n')
    (place / "zone.js").write_text("export const f = () => 1;\nexport default f;\n")
    (place / "helper" / "main.js").write_text('import { f } from "./lib/f.js";\nexport default f;\n')
    (place / "helper" / "lib" / "f.js").write_text("export const f = () => 2;\n")
    (place / "schedules.toml").write_text(SCHEDULES)
    return place


def writes(lodge: RunningApi) -> int:
    """Return the number of changes in the audit log."""
    return len(lodge.engine.audit.list("acme", limit=500))


def actions(body: Any) -> dict[str, str]:
    return {f"{each['kind']} {each['name']}": each["action"] for each in body["steps"]}


@pytest.mark.parametrize("at", ["ledger", "server"])
def test_a_deployment_is_planned_applied_and_repeatable(
    lodge: RunningApi, folder: Path, tmp_path: Path, at: str
) -> None:
    place = ("--db", str(tmp_path / "served.db")) if at == "ledger" else ("--server", lodge.url)
    token = {"LODGER_TOKEN": lodge.token("admin")}

    def ask(verb: str, where: Path, *more: str, code: int = 0) -> Any:
        said = inside(verb, where, "acme", *place, *more, "--json", **token)
        assert said.code == code, said.out + said.err
        return said.json

    before = writes(lodge)
    planned = ask("deploy", folder, "--plan")
    assert set(actions(planned).values()) == {"create"}
    assert ask("deploy", folder, code=2)["error"]["code"] == "not_confirmed"
    assert writes(lodge) == before
    assert ask("deploy", folder, "--yes")["applied"] == 5
    assert writes(lodge) == before + 5
    assert ask("deploy", folder, "--yes")["applied"] == 0
    assert writes(lodge) == before + 5

    # Another person's schedule and script are not the deployment's.
    lodge.engine.schedules.create(
        "acme", "by hand", script="report", tz="Europe/Berlin", dst=DstPolicy(gap=Gap.SKIP), missed="within:10m",
        rules=[RuleSpec("FREQ=WEEKLY", Kind.RRULE, "2027-01-04T09:00:00")], jitter_s=2.5, priority="high", pause_after=3,
        why="lodger deploy shopping",
    )  # fmt: skip
    pulled = tmp_path / f"pulled-{at}"
    assert set(ask("pull", pulled)["written"]) == {
        "report.js",
        "zone.js",
        "helper/main.js",
        "helper/lib/f.js",
        "schedules.toml",
    }
    assert set(actions(ask("deploy", pulled, "--yes")).values()) == {"unchanged"}
    assert ask("pull", pulled)["written"] == []

    # A pull into the folder keeps [dev] and the name.
    assert ask("pull", folder, "--yes")["written"] == ["schedules.toml"]
    text = (folder / "schedules.toml").read_text()
    assert 'name = "shop"' in text
    assert '[[dev.collections.orders]]\nid = "o1"' in text
    assert ask("deploy", folder, "--yes")["applied"] == 0

    # What changes is shown with its slots; what the folder has no more is deleted on request, if this deployment made it.
    (folder / "schedules.toml").write_text(
        'name = "shop"\n[schedules.daily]\nscript = "report"\nrules = "every weekday at 10:00"\ntz = "Europe/Berlin"\n'
    )
    (folder / "zone.js").write_text("export const f = () => 3;\nexport default f;\n")
    planned = ask("deploy", folder, "--plan")
    assert actions(planned) == {
        "script helper": "unchanged", "script zone": "change", "script report": "change",
        "schedule daily": "change", "schedule two steps": "keep",
    }  # fmt: skip
    (daily,) = (each for each in planned["steps"] if each["name"] == "daily")
    # Thirty days hold 20 to 22 weekdays, and between the two hours one more of the one or of the other.
    assert min(len(daily["dropped"]), len(daily["added"])) >= 20
    assert abs(len(daily["dropped"]) - len(daily["added"])) <= 1
    assert ask("deploy", folder, "--yes", "--prune")["applied"] == 4
    assert {each.name for each in lodge.engine.schedules.list("acme")} == {"daily", "by hand"}
    assert lodge.engine.scripts.get("acme", "report").grants is None
    assert ask("deploy", folder, "--yes", "--prune")["applied"] == 0
    # The same text may mean something else in TypeScript.
    (folder / "lone.js").write_text("let f = 5, g = 1;\nexport default () => f < g > (2);\n")
    assert ask("deploy", folder, "--yes")["applied"] == 1
    (folder / "lone.js").rename(folder / "lone.ts")
    assert actions(ask("deploy", folder, "--yes"))["script lone"] == "change"
    assert ask("deploy", folder, "--yes")["applied"] == 0
    assert lodge.engine.schedules.revisions("acme", "daily")[0].why == "lodger deploy shop"


def test_concurrent_edits_are_refused(lodge: RunningApi, folder: Path) -> None:
    engine: Any = lodge.engine

    def apply(prune: bool = False) -> Callable[[], None]:
        read = script_folder.read(folder)
        steps, findings = deployment.make_plan(engine, "acme", read, prune=prune)
        assert findings == []
        return lambda: deployment.apply(engine, "acme", read, steps, None, lambda _step: None)

    late = apply()
    apply()()
    with pytest.raises(Conflict, match="is at version 1, not 0"):
        late()
    (folder / "report.js").write_text("export default () => 4;\n")
    late = apply()
    engine.scripts.put("acme", "report", "export default () => 5;")
    with pytest.raises(Conflict, match="is at version 2, not 1"):
        late()
    apply()()
    text = (folder / "schedules.toml").read_text()
    (folder / "schedules.toml").write_text(text.replace("at 9:00", "at 8:00"))
    late = apply()
    engine.schedules.edit("acme", "daily", priority="low")
    with pytest.raises(Conflict, match="is at revision 2, not 1"):
        late()
    (folder / "schedules.toml").write_text('name = "shop"\n')
    late = apply(prune=True)
    engine.schedules.edit("acme", "daily", priority="high")
    with pytest.raises(Conflict, match="is at revision 3, not 2"):
        late()
    assert engine.schedules.get("acme", "daily").conduct["priority"] == "high"
    late = apply(prune=True)
    for name in ("daily", "two steps"):
        before = engine.schedules.get("acme", name)
        engine.schedules.delete("acme", name, revision=before.revision)
        engine.schedules.create("acme", name, script="report", rules="every day at 7:00")
        while engine.schedules.get("acme", name).revision < before.revision:
            engine.schedules.edit("acme", name, priority="low")
            engine.schedules.edit("acme", name, priority="high")
    late()
    assert {each.name for each in engine.schedules.list("acme")} == {"daily", "two steps"}


def test_mistakes_and_names_of_a_hostile_server(lodge: RunningApi, folder: Path, tmp_path: Path) -> None:
    (folder / "schedules.toml").write_text('[schedules.a]\nscript = "absent"\nrules = "* * * * *"\nmised = 1\n')
    said = inside("deploy", folder, "acme", "--db", tmp_path / "served.db", "--yes", "--json")
    assert said.code == 1
    assert {each["code"] for each in said.json["findings"]} == {"script_unknown", "toml_key_unknown"}
    assert lodge.engine.scripts.list("acme") == []

    class Hostile:
        """A server that answers with names that would leave the folder."""

        class scripts:  # noqa: N801 - named as the engine's noun
            @staticmethod
            def list(_tenant: str, **_more: Any) -> Any:
                return lodge.engine.scripts.list("acme")

            @staticmethod
            def get(_tenant: str, name: str) -> ScriptVersion:
                return ScriptVersion("acme", "1", *answers[name])

    now = lodge.engine.tenants.get("acme").created_at
    answers: dict[str, Any] = {
        "a": ("../a", 1, {"main.js": "1"}, "", now), "b": ("b", 1, {"main.js": "1", "../../x.js": "1"}, "", now),
        "c": (".profile", 1, {"main.js": "1"}, "", now), "d": ("d", 1, {"/etc/x": "1", "main.js": "1"}, "", now),
        "e.test": ("e.test", 1, {"main.js": "1"}, "", now), "f": ("f", 1, {"main.js": "1"}, "", now),
        "F": ("F", 1, {"main.js": "1"}, "", now), "f.js": ("f.js", 1, {"main.js": "1", "b.js": "1"}, "", now),
        "g": ("g", 1, {"main.js": "1", ".git/config": "[core] fsmonitor = touch /tmp/x"}, "", now),
        "h": ("h", 1, {"main.js": "1", "HEAD": "ref: refs/heads/main", "config": "[core]"}, "", now),
        "i": ("i", 1, {"main.js": "1", "package.json": "{}"}, "", now), "j": ("Node_Modules", 1, {"main.js": "1"}, "", now),
        "k": ("k", 1, {"main.js": "1", "node_modules/x/index.js": "1"}, "", now),
        "eslint.config": ("eslint.config", 1, {"main.js": "1"}, "", now),
    }  # fmt: skip
    for name in answers:
        lodge.engine.scripts.put("acme", name, "export default 1", force=True)
    files, _settings, left_out = read_scripts(Hostile, "acme")  # type: ignore[arg-type]  # it answers two verbs
    assert (set(files), set(left_out)) == (
        {"e.test/main.js", "F.js", "eslint.config/main.js"},
        {"a", "b", "c", "d", "f", "f.js", "g", "h", "i", "j", "k"},
    )


def test_a_lying_server_writes_nothing_through_links(lodge: RunningApi, tmp_path: Path) -> None:
    lodge.engine.scripts.put("acme", "a", "export default 1")
    lodge.engine.scripts.put("acme", "b", {"main.js": "export default 2", "x{y}.js": "export default 3"})
    outside, target = tmp_path / "outside", tmp_path / "t{0}"
    outside.mkdir()
    target.mkdir()
    (outside / "main.js").write_text("mine")
    for link, to in (("a.js", outside / "main.js"), ("b", outside)):
        (target / link).symlink_to(to)
        said = inside("pull", target, "acme", "--db", tmp_path / "served.db", "--yes", "--json")
        assert (said.code, said.json["error"]["code"]) == (2, "file_is_link"), said
        (target / link).unlink()
    assert [each.name for each in outside.iterdir()] == ["main.js"]
    assert (outside / "main.js").read_text() == "mine"
    assert inside("pull", target, "acme", "--db", tmp_path / "served.db", "--yes").code == 0
    (target / "a.js").write_text("changed")
    asked = inside("pull", target, "acme", "--db", tmp_path / "served.db", "--json")
    assert (asked.code, asked.json["error"]["code"]) == (2, "not_confirmed"), asked


def test_a_hostile_folder_ends_in_findings(tmp_path: Path) -> None:
    """Links, pipes, devices, and a text that makes a careless pattern look forever."""
    (tmp_path / "a.js").write_text("export default () => 1")
    for pipe in ("b.js", "schedules.toml", "c.test.js", "c.fetches.json"):
        os.mkfifo(tmp_path / pipe)
    (tmp_path / "d.js").symlink_to("/proc/self/environ")
    (tmp_path / "e.js").symlink_to("/dev/zero")
    (tmp_path / "f").symlink_to(tmp_path)
    (tmp_path / "g").mkdir()
    (tmp_path / "g" / "main.js").symlink_to("/etc/hostname")
    read = script_folder.read(tmp_path)
    assert (set(read.scripts), read.tests) == ({"a"}, ())
    (tmp_path / "lodger-types").mkdir()
    (tmp_path / "lodger-types" / "lodger.d.ts").symlink_to(tmp_path / "a.js")
    (tmp_path / "main.js").symlink_to("/dev/null")
    for command in (("init", tmp_path), ("bundle", tmp_path / "a.js", "--out", tmp_path)):
        assert inside(*command, "--json").json["error"]["code"] == "file_is_link"
    (tmp_path / "main.js").unlink()
    assert (tmp_path / "a.js").read_text() == "export default () => 1"
    assert {(each.file, each.code) for each in read.findings} == {
        ("d.js", "file_is_link"), ("g", "folder_unusable"), ("schedules.toml", "toml_invalid"),
    }  # fmt: skip
    with pytest.raises(Usage, match="larger than 1000 bytes"):
        read_whole(Path("/dev/zero"), 1000)
    (tmp_path / "schedules.toml").unlink()
    (tmp_path / "schedules.toml").write_text(f'name = """\n{"a" * 100_000}\n{" " * 100_000}\n"""\nx . "y" = 1')
    assert script_folder.read(tmp_path).file.places["x", "y"] == (5, 1)
