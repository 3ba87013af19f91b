"""What an operator says and nothing would use is told: limits above the tenant's, names of no schedule, variables of no setting."""

import logging
from pathlib import Path

import pytest

from lodger.engine.core.errors import InputError
from lodger.engine.core.settings import load, unknown_variables
from lodger.engine.sync import Engine


def test_a_limit_above_the_tenants_is_refused_with_the_tenants(tmp_path: Path) -> None:
    with Engine.open(tmp_path / "ledger.db") as engine:
        engine.tenants.create("acme", limits={"cpu_ms": 500, "queries": 7})
        engine.scripts.put("acme", "job", "return 1")
        wanted = {"script": "job", "rules": "every 60s"}
        for limits, maximum in (({"cpu_ms": 501}, 500), ({"queries": 8}, 7), ({"mails": 10**6}, 100)):
            with pytest.raises(InputError, match=f"is {maximum}") as refused:
                engine.schedules.create("acme", "s", **wanted, limits=limits)
            assert refused.value.code == "limit_above_tenant"
        engine.schedules.create("acme", "s", **wanted, limits={"cpu_ms": 500, "queries": 7})
        for change in ({"limits": {"cpu_ms": 501}}, {"script": [{"script": "job", "limits": {"queries": 8}}]}):
            with pytest.raises(InputError) as refused:
                engine.schedules.edit("acme", "s", **change)
            assert refused.value.code == "limit_above_tenant"
        engine.tenants.edit("acme", limits={"cpu_ms": 100})
        edited = engine.schedules.edit("acme", "s", params={"a": 1})
        assert edited.limits["cpu_ms"] == 500, "what was right when it was stored bars no other edit"


@pytest.mark.parametrize("limits", ["cpu_ms", ["cpu_ms"], 500])
def test_limits_of_a_step_that_are_no_object_are_refused(tmp_path: Path, limits: object) -> None:
    with Engine.open(tmp_path / "ledger.db") as engine:
        engine.tenants.create("acme")
        engine.scripts.put("acme", "job", "return 1")
        with pytest.raises(InputError) as refused:
            engine.schedules.create("acme", "s", script=[{"script": "job", "limits": limits}], rules="every 60s")
        assert refused.value.code == "steps_invalid"


def test_a_misspelt_variable_is_told_with_the_nearest_setting(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name, value in {
        "LODGER_SLOT": "3", "lodger_databse": "x", "LODGER_QQQQQQQQ": "x", "LODGER_SLOTS": "2", "LODGER_TOKEN": "t",
        "LODGER_SERVICE_HOST": "10.0.0.1", "LODGER_PORT": "tcp://10.0.0.1:80", "LODGER_PORT_80_TCP": "tcp://10.0.0.1:80",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    found = dict(unknown_variables())
    assert {name: found.get(name) for name in ("LODGER_SLOT", "lodger_databse", "LODGER_QQQQQQQQ")} == {
        "LODGER_SLOT": "LODGER_SLOTS", "lodger_databse": "LODGER_DATABASE", "LODGER_QQQQQQQQ": None,
    }  # fmt: skip
    assert not {"LODGER_SLOTS", "LODGER_TOKEN", "LODGER_SERVICE_HOST", "LODGER_PORT", "LODGER_PORT_80_TCP"} & set(found)
    monkeypatch.setenv("LODGER_CATCHUP_MAX", "3")
    with caplog.at_level(logging.WARNING, "lodger"):
        load()
        load()
    reported = [record.getMessage() for record in caplog.records if "LODGER_CATCHUP_MAX" in record.getMessage()]
    assert len(reported) == 1
    assert "did you mean LODGER_CATCH_UP_MAX?" in reported[0]
