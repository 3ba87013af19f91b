"""The table of settings: one source for loading, showing and documenting."""

import re
from pathlib import Path

import pytest

from lodger.engine.cli import place
from lodger.engine.core.errors import InputError
from lodger.engine.core.settings import Settings, load, unknown_variables
from lodger.engine.core.settings_table import table

DOCS = Path(__file__).resolve().parents[2] / "docs" / "reference" / "settings.md"


def test_overrides_win_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LODGER_SLOTS", "3")
    assert load().slots == 3
    assert load(slots=5).slots == 5
    assert load(slots=None).slots == 3


def test_an_empty_variable_counts_as_not_set_unless_nothing_is_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.setenv(f"LODGER_{name.upper()}", "")
    shown = {
        row.name: (row.value, row.source)
        for row in table(load())
        if (row.value, row.source) != (row.default, "default")
    }
    assert shown == {"grants": ("", "environment"), "egress_ports": ("", "environment")}
    assert place.chosen(None).database_source == "default"
    with pytest.raises(InputError, match="LODGER_SLOTS"):
        load(slots="")


def test_a_wrong_value_is_named() -> None:
    with pytest.raises(InputError) as caught:
        load(lease_s=-1)
    assert caught.value.code == "setting_invalid"
    assert "LODGER_LEASE_S" in caught.value.what


def test_every_setting_says_what_it_does() -> None:
    for row in table(Settings()):
        assert row.help
        assert row.variable == f"LODGER_{row.name.upper()}"


def test_every_setting_is_documented_with_unit_and_default() -> None:
    documented = re.findall(r"^\| `(LODGER_\w+)` \| *(.*?) *\| *(.*?) *\|", DOCS.read_text(), re.MULTILINE)
    given = [(row.variable, row.unit, row.default) for row in table(Settings()) if row.name != "slots"]
    assert sorted(documented) == sorted([*given, ("LODGER_SLOTS", "", "4 per core")])


def test_a_variable_of_the_command_line_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LODGER_BENCH_PEERS", "peers")
    monkeypatch.setenv("LODGER_SLOT", "3")
    unknown = {name for name, _nearest in unknown_variables()}
    assert "LODGER_SLOT" in unknown
    assert "LODGER_BENCH_PEERS" not in unknown


def test_a_url_that_is_a_password_is_not_shown() -> None:
    settings = load(heartbeat_url="https://user:word@ping.example.com/9c1f-secret?key=secret")
    (row,) = (row for row in table(settings) if row.name == "heartbeat_url")
    assert row.value == "https://ping.example.com/***"
    with pytest.raises(InputError) as caught:
        load(heartbeat_url="htps://ping.example.com/9c1f-secret")
    assert "secret" not in str(caught.value.as_dict())
