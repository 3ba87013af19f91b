"""The filter language of lists, and changes of everything that matches a filter."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.api.running_api import RunningApi, running_api
from tests.api.workers import worked
from tests.e2e.command import inside as lodger

from lodger.engine.core.errors import InputError
from lodger.sandbox.job import ScriptError


@pytest.fixture
def lodge(url: str) -> Iterator[RunningApi]:
    with running_api(url) as made:
        engine = made.engine
        for tenant in ("acme", "other_one"):
            engine.tenants.create(tenant, f"{tenant.title()} & Söhne")
            engine.scripts.put(tenant, "night_report", "export default () => 1")
            engine.scripts.put(tenant, "nightXreport", "export default () => 1")
            engine.schedules.create(
                tenant, "weekly%", script="night_report", rules="every 7d", labels=["eu"], params={"c": "Köln"}
            )
            engine.schedules.create(tenant, "daily", script="nightXreport", rules="every 1d")
        engine.schedules.pause("acme", "daily", note='holidays, "2027"')
        yield made


def full_names(found: list[object]) -> str:
    """Return the records of a list as ``tenant/name``, separated by spaces."""
    return " ".join(f"{each.tenant_id}/{each.name}" for each in found)  # type: ignore[attr-defined]  # tenants have no name


def test_lists_are_filtered_sorted_and_counted_alike_on_every_database(lodge: RunningApi) -> None:
    engine = lodge.engine
    everything = "acme/daily acme/weekly% other_one/daily other_one/weekly%"
    for text, wanted in {
        "": everything,
        "name:weekly%": "acme/weekly% other_one/weekly%",
        "name:%": "",
        "name:D*": "acme/daily other_one/daily",
        "script:night_report": "acme/weekly% other_one/weekly%",
        "tenant:other_one": "other_one/daily other_one/weekly%",
        "-tenant:other_one -name:daily": "acme/weekly%",
        "state:Paused,ENDED": "acme/daily",
        "-note:holidays": "acme/weekly% other_one/daily other_one/weekly%",
        'note:"days, \\"2027"': "acme/daily",
        "label:EU": "acme/weekly% other_one/weekly%",
        '"state:"': "",
        "label:e": "",
        "params:köln": "acme/weekly% other_one/weekly%",
        "params:_": "",
        "aily": "acme/daily other_one/daily",
        "holidays": "acme/daily",
        "sort:-name": "other_one/weekly% acme/weekly% other_one/daily acme/daily",
        "sort:-tenant": "other_one/weekly% other_one/daily acme/weekly% acme/daily",
        "state:armed sort:next": "other_one/daily acme/weekly% other_one/weekly%",
        "failures:1": "",
        "until:2026-01-03": "other_one/daily",
    }.items():
        found = engine.schedules.list(filter=text)
        assert full_names(found) == wanted, text
        assert engine.schedules.count(filter=text).count == len(found), text
        paged, cursor = [], None
        while True:
            page = engine.schedules.list(filter=text, limit=1, cursor=cursor)
            paged += page
            if (cursor := page.next) is None:
                break
        assert full_names(paged) == wanted, text
    assert [each.id for each in engine.tenants.list(filter="söhne sort:-created")] == ["other_one", "acme"]
    assert [each.name for each in engine.scripts.list("acme", filter="name:night_*")] == ["night_report"]
    for text, code in {
        "nmae:x": "filter_invalid", "state:paus": "state_unknown", 'name:"x': "filter_invalid", "a,": "filter_invalid",
        "state:": "filter_invalid", "-name: x": "filter_invalid", "name:\0": "filter_invalid", r'name:"\ud800"': "filter_invalid",
        "since:soon": "filter_invalid", "sort:size": "filter_invalid", "failures:x": "filter_invalid", "x" * 3000: "filter_invalid",
    }.items():  # fmt: skip
        with pytest.raises(InputError) as refused:
            engine.schedules.list(filter=text)
        assert refused.value.code == code, text


def test_errors_and_params_are_searched_by_their_text_alone(lodge: RunningApi) -> None:
    engine = lodge.engine
    engine.actions.run_now("acme", "daily", params={"customer": 42, "who": 'Zoë "Z"'})
    worked(lodge, fails=True, error=ScriptError("TypeError", "x is 100% undefined\nin Zoë", stack='at "name": main.js'))
    for text, wanted in {
        "error:undefined": 1, 'error:"TypeError: x is"': 1, "error:message": 0, "error:name": 0, "error:main.js": 0,
        'error:"100% u"': 1, "error:1%": 0, "error:Zoë": 1, "params:customer": 1, 'params:"Zoë \\"Z"': 1, "params:43": 0,
        "undefined": 1, "since:1h": 1, "until:1h": 0, "origin:run_now -state:done": 1, "outcome:script_error schedule:d*": 1,
    }.items():  # fmt: skip
        assert len(engine.actions.list("acme", filter=text)) == wanted, text
        assert engine.actions.count(filter=text).count == wanted, text
    (group,) = engine.actions.errors("acme")
    assert (group.script, group.actions, group.last_version) == ("nightXreport", 1, 1)
    assert group.message == "x is 100% undefined\nin Zoë"
    assert group.trend == (*[0] * 11, 1)
    lodge.clock.advance(12 * 3600)
    engine.actions.run_now("acme", "daily")
    worked(lodge, fails=True, error=ScriptError("TypeError", "x is 100% undefined\nin Zoë", stack="elsewhere"))
    (group,) = engine.actions.errors("acme")
    assert (group.actions, sum(group.trend), sum(group.trend[5:7])) == (group.trend[-1] + 1, group.actions, 1)


def test_ended_runs_are_found_by_their_state_in_either_case(lodge: RunningApi) -> None:
    engine = lodge.engine
    engine.actions.run_now("acme", "daily")
    worked(lodge)
    for text in ("state:done", "state:DONE", "state:Done,failed"):
        assert [each.state for each in engine.actions.list("acme", filter=text)] == ["done"], text
        assert engine.actions.count("acme", filter=text).count == 1, text
    assert [each.state for each in engine.actions.list("acme", state="done", filter="since:1h")] == ["done"]
    assert not engine.actions.list("acme", state="done", filter="state:failed")


def test_what_matches_is_changed_in_parts_with_one_entry_in_the_audit_log(lodge: RunningApi) -> None:
    engine = lodge.engine
    for tenant in ("acme", "other_one"):
        for _ in range(5):
            engine.run_in(tenant, "night_report", 0)
    worked(lodge, fails=True)
    assert engine.actions.count(filter="state:failed").count == 10
    engine.tenants.suspend("other_one")
    result, parts = engine.actions.bulk(None, "retry", filter="state:failed", why="mended", limit=3), 1
    while result.next:
        lodge.engine.run_in("acme", "night_report", 0)
        result, parts = (
            engine.actions.bulk(None, "retry", filter="state:failed", limit=3, cursor=result.next),
            parts + 1,
        )
    assert (parts, result.matched, result.done, result.refused) == (4, 10, 5, {"tenant_suspended": 5})
    assert engine.actions.count("acme", filter="state:ready").count == 8
    (entry,) = engine.audit.list(verb="actions.bulk")
    assert (entry.why, entry.named, entry.after) == (
        "mended",
        "retry",
        {"do": "retry", "filter": "state:failed", "matched": 10},
    )
    assert engine.actions.bulk("acme", "cancel", filter="state:ready").done == 8
    assert engine.actions.bulk("acme", "replay", filter="state:cancelled", limit=500).done == 8
    result = engine.schedules.bulk("acme", "pause", filter="name:*", why="night")
    assert (result.matched, result.done) == (2, 2)
    assert {each.note for each in engine.schedules.list("acme")} == {"night"}
    with pytest.raises(InputError, match="cannot be done"):
        engine.actions.bulk("acme", "forget", filter="")
    with pytest.raises(InputError, match="cursor"):
        engine.actions.bulk("acme", "cancel", filter="", cursor="")
    refused = lodge.ask("POST", "/actions-bulk", {"do": "cancel", "filter": ""}, role="editor", tenant="acme")
    assert refused.status_code == 403
    elsewhere = lodge.ask(
        "POST", "/tenants/other_one/schedules-bulk", {"do": "pause", "filter": ""}, role="editor", tenant="acme"
    )
    assert elsewhere.status_code == 404


def test_the_command_line_counts_asks_and_changes(tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path / 'ledger.db'}"
    with running_api(place) as lodge:
        lodge.furnish()
        lodge.engine.schedules.create("acme", "t", script="job", rules="every 1h")
    shown = lodger("schedule", "count", "acme", "--filter", "state:armed", "--db", place)
    assert "2" in shown.out
    refused = lodger("schedule", "bulk", "pause", "--filter", "name:t", "--db", place, "--json")
    assert refused.code == 2
    done = lodger("schedule", "bulk", "pause", "--filter", "name:t", "--why", "off", "--db", place, "--yes", "--json")
    assert (done.code, done.json["matched"], done.json["done"]) == (0, 1, 1)
    shown = lodger("schedule", "list", "acme", "--filter", "name:s", "--tz", "Asia/Kolkata", "--db", place)
    assert "T05:31:00+05:30" in shown.out
    assert lodger("--tz", "Mars/Olympus", "schedule", "list", "acme", "--db", place).code != 0
    listed = lodger("schedule", "list", "acme", "--filter", "state:paused", "--db", place, "--json").json
    assert [each["name"] for each in listed["schedules"]] == ["t"]
