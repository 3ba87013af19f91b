"""Verbs that need no database, and how wrong usage is told: hostile values of every option are refused in words, never a fault."""

import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.e2e import command
from tests.e2e.command import ROOT, inside

from lodger.engine.cli import entry
from lodger.engine.sync import Engine

WINGS, LEDGER, API = "lodger.engine.features", "sqlalchemy", "fastapi"


def test_version_is_that_of_the_package() -> None:
    said = command.lodger("--version")
    assert (said.code, said.err) == (0, "")
    version = said.out.split()[1]
    assert f'version = "{version}"' in (ROOT / "pyproject.toml").read_text()
    assert inside("version", "--json").json["lodger"] == version


@pytest.mark.parametrize(
    ("arguments", "needed", "unneeded"),
    [
        ("--version", (), (WINGS, LEDGER, "rich", "pydantic")),
        ("next @daily", (), (WINGS, LEDGER, "rich")),
        ("config show", (), (WINGS, "lodger.engine.service")),
        ("node list", (WINGS,), (API, "alembic", "sqlalchemy.orm", "lodger.engine.web", "lodger.engine.node.node")),
    ],
)
def test_a_command_imports_what_it_needs(
    arguments: str, needed: tuple[str, ...], unneeded: tuple[str, ...], tmp_path: Path
) -> None:
    """Importing is most of what a small command costs; what works on ledgers knows the wings' tables."""
    asked = "import sys; from lodger.engine.cli.entry import run; run(sys.argv[1:]); print(*sys.modules)"
    said = subprocess.run(
        [sys.executable, "-c", asked, *arguments.split()],
        capture_output=True,
        text=True,
        env=command.bare(),
        cwd=tmp_path,
        check=True,
    )
    loaded = set(said.stdout.splitlines()[-1].split())
    assert (loaded.intersection(unneeded), set(needed) - loaded) == (set(), set())


def test_settings_are_listed_with_their_source() -> None:
    rows = {row["name"]: row for row in inside("config", "show", "--json", LODGER_SLOTS="3").json["settings"]}
    assert (rows["slots"]["value"], rows["slots"]["source"]) == ("3", "environment")
    assert rows["missed_after_s"]["unit"] == "seconds"
    assert all(row["help"] for row in rows.values())


def test_settings_are_listed_without_passwords_of_addresses() -> None:
    addresses = {
        f"LODGER_{name}": "postgresql://ann:s3cret@db.example/ledger"
        for name in ("DATABASE", "READ_DATABASE", "LISTEN_URL")
    }
    said = inside("config", "show", "--json", **addresses)
    assert said.out.count("postgresql://ann:***@db.example/ledger") == 4  # the database is also a target of commands
    assert "s3cret" not in said.out


def test_a_wrong_setting_is_named() -> None:
    said = inside("config", "show", LODGER_SLOTS="many")
    assert said.code == 1
    assert "LODGER_SLOTS" in said.err
    assert "setting_invalid" in said.err


def test_what_is_no_rule_is_refused_in_words() -> None:
    for rule in ("FREQ=DALY", "nonsense", "", "99 * * * *", "x" * 100_000):
        said = inside("next", rule)
        assert said.code == 1
        assert said.err.startswith("error: ")
        assert "fix: " in said.err
        assert "Traceback" not in said.err
        assert {"code", "message", "index"} <= set(inside("next", rule, "--json").json["error"])
    said = inside("next", "--batch", stdin=json.dumps({"rule": "\x00", "after": "2026-01-01T00:00:00Z"}))
    assert said.json["error"]["code"]


def test_batch_answers_every_line_in_order() -> None:
    lines = [
        json.dumps({"id": 1, "rule": "0 9 * * *", "after": "2026-01-01T00:00:00Z", "n": 1}),
        "no json",
        json.dumps({"id": 3, "rule": "nope", "after": "2026-01-01T00:00:00Z"}),
        json.dumps([1]),
        json.dumps({"id": 5, "rule": "every 90s", "after": "2026-01-01T00:00:00Z", "n": 2, "previous": True}),
    ]
    said = inside("next", "--batch", stdin=("\n".join(lines) + "\n").encode() + b"\xff\xfe\n")
    answers = [json.loads(line) for line in said.out.splitlines()]
    assert said.code == 0
    assert [answer.get("id") for answer in answers] == [1, None, 3, None, 5, None]
    assert answers[0]["next"] == ["2026-01-01T09:00:00Z"]
    assert [bool(answer.get("error")) for answer in answers] == [False, True, True, True, False, True]


def test_a_reader_that_goes_away_is_no_fault(tmp_path: Path) -> None:
    script = f"{sys.executable} -m lodger.engine.cli config show | head -1"
    done = subprocess.run(
        ["/bin/sh", "-c", script], capture_output=True, env={"PYTHONPATH": str(ROOT)}, timeout=60, check=False
    )
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr


JSON = ("null", "{", "[1]", '{"a": NaN}')
OTHERS = {
    "INTEGER": ("x", "99999999999999999999999"),
    float: ("x", "nan", "1e400"),
    "INSTANT": ("-", "0"),
}
GOOD = {
    "tenant_id": "acme",
    "tenant": "acme",
    "name": "job",
    "schedule": "s",
    "action_id": "019b76da-a800-7003-ab74-17aa3c0f0e2d",
}
#: What waits, listens or measures is none of this test's.
LEFT_OUT = {"up", "demo", "bench", "escape", "sim", "doctor", "init", "exec", "next", "version", "errors"}


def said(*words: str) -> tuple[int, dict[str, Any]]:
    """Carry out a command line here; give how it ended and the error that it told."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        code = entry.run([*words, "--json"])
    body = json.loads(out.getvalue() or "null")
    return code, (body.get("error") or {}) if isinstance(body, dict) else {}


def attacks(root: Any) -> list[tuple[str, ...]]:
    found = []
    for noun, group in root.commands.items():
        for verb, found_command in getattr(group, "commands", {}).items() if noun not in LEFT_OUT else ():
            needed = [
                GOOD.get(each.name, "x")
                for each in found_command.params
                if each.param_type_name == "argument" and each.required
            ]
            for option in found_command.params:
                kind = option.metavar or option.type_descriptor.annotation
                values = JSON if kind == "JSON" else OTHERS.get(kind, ())
                found += [
                    (noun, verb, *needed, option.opts[0], value) for value in values if option.opts[0].startswith("-")
                ]
    return found


@pytest.mark.slow
def test_no_option_faults_whatever_it_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = str(tmp_path / "ledger.db")
    with Engine.open(place) as engine:
        engine.tenants.create("acme")
        engine.scripts.put("acme", "job", "export default () => 1")
        engine.schedules.create("acme", "s", script="job", rules="every 60s")
    monkeypatch.setenv("_LODGER_COMPLETE", "tests")
    entry.add_commands([])
    wanted = attacks(typer.main.get_command(entry.app))
    monkeypatch.delenv("_LODGER_COMPLETE")
    assert len(wanted) > 140
    monkeypatch.chdir(tmp_path)
    refused = 0
    for words in wanted:
        code, error = said(*words, "--db", place)
        assert code in {0, 1, 2}, words
        assert error.get("code") not in {"internal_error", "database_error", "system_error"}, (words, error)
        refused += code != 0
    assert refused > len(wanted) / 2
