"""Reads of the API from a second database, and nothing else: a copy of the ledger from a moment ago stands for a replica that is late."""

from pathlib import Path

from tests.api.running_api import running_api

from lodger.engine.store.connection import backups
from lodger.engine.sync import Engine


def test_reads_ask_the_replica_and_writes_and_tokens_the_ledger(tmp_path: Path) -> None:
    url, copy = f"sqlite:///{tmp_path / 'ledger.db'}", f"sqlite:///{tmp_path / 'copy.db'}"
    with Engine.open(url) as engine:
        engine.tenants.create("acme")
        engine.scripts.put("acme", "job", "export default () => 1")
        engine.schedules.create("acme", "before", script="job", rules="every 60s")
    backups.backup(url, tmp_path / "copy.db")
    with running_api(url, read_database=copy) as lodge:
        made = lodge.ask("POST", "/tenants/acme/schedules", {"name": "after", "script": "job", "rules": "every 60s"})
        assert made.status_code == 201, "its token, which the replica has not yet, is known"
        listed = lodge.ask("GET", "/tenants/acme/schedules").json()["items"]
        assert [each["name"] for each in listed] == ["before"]
        changed = lodge.ask("POST", "/tenants/acme/schedules/after/pause", {})
        assert changed.status_code == 200, "a change reads what it changes from the ledger"
        assert [each.name for each in lodge.engine.schedules.list("acme")] == ["after", "before"]
