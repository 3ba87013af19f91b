"""What a verb's declaration says is said nowhere else: its name, whether it stores data, the fields of its records' ETags."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from lodger.engine.core.errors import Conflict
from lodger.engine.server.operation_call import etag
from lodger.engine.service.operations.table import table_of
from lodger.engine.store.records import Schedule, Script, ScriptVersion, Tenant, Token
from lodger.engine.sync import Engine

TABLE = table_of(Engine)


def test_a_noun_is_named_as_its_class() -> None:
    assert {noun: kind.__name__.lower() for noun, kind in TABLE.nouns.items()} == {noun: noun for noun in TABLE.nouns}


def test_the_audit_log_has_the_declared_names(tmp_path: Path) -> None:
    with Engine.open(str(tmp_path / "ledger.db")) as engine:
        engine.tenants.create("acme")
        engine.scripts.put("acme", "job", "export default () => 1")
        engine.schedules.create("acme", "nightly", script="job", rules="0 9 * * *")
        engine.schedules.pause("acme", "nightly", note="a holiday")
        engine.schedules.resume("acme", "nightly")
        engine.actions.run_in("acme", "job", "1h")
        verbs = {each.verb: each.why for each in engine.audit.list("acme")}
    assert set(verbs) <= set(TABLE.operations)
    assert {"scripts.put", "schedules.create", "schedules.pause", "actions.run_in"} <= set(verbs)
    assert verbs["schedules.pause"] == "a holiday"


def test_verbs_that_store_data_are_refused_without_storage_and_others_work(tmp_path: Path) -> None:
    with Engine.open(str(tmp_path / "ledger.db")) as engine:
        engine.tenants.create("acme")
        engine.scripts.put("acme", "job", "export default () => 1")
        engine.schedules.create("acme", "nightly", script="job", rules="0 9 * * *")
        engine.tenants.edit("acme", limits={"storage_bytes": 1})
        with pytest.raises(Conflict) as refused:
            engine.scripts.put("acme", "job", "export default () => 2")
        assert refused.value.code == "storage_full"
        engine.schedules.pause("acme", "nightly")


@pytest.mark.parametrize("record", [Tenant, Script, ScriptVersion, Schedule, Token])
def test_the_fields_of_an_etag_are_fields_of_the_record(record: Any) -> None:
    assert set(record.ETAG) <= {each.name for each in fields(record)}


def test_a_record_without_declared_fields_has_no_etag() -> None:
    assert etag(object()) is None
