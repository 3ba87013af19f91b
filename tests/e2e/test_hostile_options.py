"""Every option of the command line that is JSON, a number or an instant, given what it is not: wrong usage in words, never a fault."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import typer

from lodger.engine.cli import entry
from lodger.engine.sync import Engine

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
LEFT_OUT = {"up", "demo", "bench", "escape", "sim", "doctor", "init", "exec", "next", "version", "errors", "profile"}


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
        for verb, command in getattr(group, "commands", {}).items() if noun not in LEFT_OUT else ():
            needed = [
                GOOD.get(each.name, "x")
                for each in command.params
                if each.param_type_name == "argument" and each.required
            ]
            for option in command.params:
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
    assert len(wanted) > 200
    monkeypatch.chdir(tmp_path)
    refused = 0
    for words in wanted:
        code, error = said(*words, "--db", place)
        assert code in {0, 1, 2}, words
        assert error.get("code") not in {"internal_error", "database_error", "system_error"}, (words, error)
        refused += code != 0
    assert refused > len(wanted) / 2
