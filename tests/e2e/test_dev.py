"""``lodger dev``: the virtual clock, reports as lines and JSON, reload on save, and the keys on a terminal."""

import json
import os
import pty
import re
import select
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.e2e.command import ROOT, inside

from lodger.engine.workbench.dev_session import Report, open_session

SCRIPT = """\
import { hello } from "./words.js";
export default async function ({ db, mail, now }) {
  const waiting = await db.signups.find({ greeted: false });
  for (const person of waiting) {
    await db.signups.update(person.id, { greeted: true });
    await mail.send({ to: person.mail, subject: "Welcome", text: hello(person.name) });
  }
  console.log("greeted", waiting.length);
  return { greeted: waiting.length, at: now };
}
"""
SCHEDULES = """\
[schedules.welcomes]
script = "welcome"
rules = "every weekday at 9:00"
tz = "Europe/Berlin"
[schedules.fetches]
script = "request"
rules = "every day at 12:00"
[dev]
people = ["*@example.com"]
grants = ["fetch:api.example.com"]
[[dev.collections.signups]]
id = "s1"
name = "Ann"
mail = "ann@example.com"
greeted = false
"""
START = "2027-03-26T07:30:00Z"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "welcome.js").write_text(SCRIPT)
    (tmp_path / "words.js").write_text("export const hello = (name) => `Hello ${name}`;\nexport default () => 1;\n")
    (tmp_path / "schedules.toml").write_text(SCHEDULES)
    (tmp_path / "request.js").write_text(
        'export default async () => (await fetch("https://api.example.com/x")).status;\n'
    )
    return tmp_path


def test_time_passes_from_slot_to_slot(folder: Path) -> None:
    said = inside("dev", folder, "--start", START, "--for", "4d", "--json")
    reports = [json.loads(line) for line in said.out.splitlines()]
    runs = [each for each in reports if each["kind"] == "run"]
    assert [each["slot"] for each in runs if each["schedule"] == "welcomes"] == [
        "2027-03-26T08:00:00Z", "2027-03-29T07:00:00Z", "2027-03-30T07:00:00Z",
    ]  # fmt: skip
    first = runs[0]
    assert first["result"] == {"greeted": 1, "at": "2027-03-26T08:00:00Z"}
    assert {"    greeted: false → true", "@ mail to ann@example.com: Welcome"} <= set(first["diff"])
    assert [each["text"] for each in reports if each["kind"] == "log"] == ["greeted 1", "greeted 0", "greeted 0"]
    # A request without a recording is not sent, and the error has its line.
    refused = next(each for each in runs if each["schedule"] == "fetches")
    assert (refused["error"]["file"], refused["error"]["line"]) == ("request.js", 1)
    assert "no recording of GET" in refused["error"]["message"]
    assert said.code == 1
    (folder / "request.fetches.json").write_text('[{"url": "https://api.example.com/x", "status": 204}]')
    said = inside("dev", folder, "--start", START, "--steps", "2", "--run", "fetches")
    assert (said.code, said.out.count("result 204")) == (0, 2)
    assert "now\n    next: 2027-03-27T12:00:00Z  fetches" in said.out
    (folder / "request.fetches.json").write_text("{")
    for more, code in ((("--run", "x"), 1), (("--for", "3500000d"), 2), (("--start", "9999-12-31T00:00:00Z"), 2)):
        said = inside("dev", folder, "--steps", "1", *more)
        assert (said.code, "internal_error" in said.err) == (code, False), said.err
    assert inside("dev", folder, "--json").json["error"]["code"] == "dev_unbounded"


def test_what_is_saved_is_stored_and_what_is_wrong_leaves_the_old_version(folder: Path) -> None:
    seen: list[Report] = []
    with open_session(folder, datetime.fromisoformat(START), seen.append, allow_fetch=False) as session:
        assert (seen, session.reload()) == ([], False)
        (folder / "welcome.js").write_text("export default () => {\n  return 1 +;\n};\n")
        assert session.reload()
        (wrong,) = seen
        assert (wrong["code"], wrong["file"], wrong["line"]) == ("source_refused", "welcome.js", 2)
        assert session.step()
        assert seen[-1]["result"]["greeted"] == 1
        seen.clear()
        # A script that imports another gets what is saved of it.
        (folder / "welcome.js").write_text(SCRIPT)
        (folder / "words.js").write_text("export const hello = (name) => `Hi ${name}`;\nexport default () => 1;\n")
        assert session.reload()
        assert [(each["script"], each["version"]) for each in seen] == [("welcome", 2), ("words", 2)]
        seen.clear()
        (folder / "welcome.js").write_text("export default () => 'new';\n")
        (folder / "schedules.toml").write_text(
            SCHEDULES.replace("at 9:00", "at 8:30").replace("every day at 12:00", "nonsense")
        )
        assert session.reload()
        assert [(each["kind"], each.get("script") or each.get("schedule") or each["code"]) for each in seen] == [
            ("reload", "welcome"), ("reload", "welcomes"), ("finding", "rule_unrecognised"),
        ]  # fmt: skip
        assert {each.name for each in session.schedules()} == {"welcomes", "fetches"}
        (folder / "schedules.toml").write_text('[schedules.welcomes]\nscript = "welcome"\nrules = "every minute"\n')
        assert session.reload()
        assert [each.name for each in session.schedules()] == ["welcomes"]
        session.go_to(datetime(2027, 3, 26, 8, 5, 30, tzinfo=UTC))
        assert seen[-1]["result"] == "new"
        session.run_now("welcome")
        assert (seen[-1]["schedule"], seen[-1]["at"]) == (None, "2027-03-26T08:05:30Z")


def test_the_keys_of_a_terminal(folder: Path) -> None:
    child, terminal = pty.fork()
    if not child:
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "110"}
        env |= {name: os.environ[name] for name in ("HOME", "XDG_CACHE_HOME") if name in os.environ}
        os.execve(
            sys.executable, [sys.executable, "-m", "lodger.engine.cli", "dev", str(folder), "--start", START], env
        )
    shown = b""

    def until(text: str) -> None:
        nonlocal shown
        end = time.monotonic() + 60
        while text not in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode("utf-8", "ignore")):
            assert time.monotonic() < end, shown.decode("utf-8", "replace")
            if select.select([terminal], [], [], 0.1)[0]:
                shown += os.read(terminal, 65_536)
        shown = b""

    try:
        until("n next slot")
        os.write(terminal, b"n")
        until("@ mail to ann@example.com: Welcome")
        (folder / "welcome.js").write_text("export default () => { throw new Error('boom') };\n")
        until("saved   welcome is at version 2")
        os.write(terminal, b"2r")
        until("welcome.js:1: Error: boom")
        os.write(terminal, b"+ ")
        until("paused")
        os.write(terminal, b"q")
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        os.close(terminal)  # a child that is left gets SIGHUP
