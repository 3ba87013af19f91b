"""Texts of other programs through the API: explained and saved alike, and what-if begins after now."""

from tests.api.running_api import RunningApi
from tests.unit.recurrence.foreign_rules import BERLIN, CASES

NOW = "2026-01-01T00:00:00Z"


def test_a_rule_from_elsewhere_is_explained_and_saved_as_it_is_meant(lodge: RunningApi) -> None:
    for place, case in enumerate(CASES):
        body = {"rules": [case.text], "tz": case.tz}
        shown = lodge.ask("POST", "/preview", body)
        saved = lodge.ask("POST", "/tenants/acme/schedules", body | {"name": f"s{place}", "script": "job"})
        if case.fix:
            assert {shown.status_code, saved.status_code} == {422}, case
            assert case.fix in shown.json()["fix"], case
            assert case.fix in saved.json()["fix"], case
        elif case.never:
            found = shown.json()
            assert (found["slots"], found["searched_to"], case.never in found["never"]) == ([], None, True), case
            assert (saved.status_code, saved.json()["code"]) == (422, "rule_never_fires"), case
            assert case.never in str(saved.json()), case
        else:
            assert case.says in shown.json()["text"], case
            assert saved.status_code == 201, saved.text
            assert case.says in saved.json()["text"], case
            assert not case.first or shown.json()["slots"][0] == saved.json()["next_at"] == case.first, case


def test_what_if_begins_after_now(lodge: RunningApi) -> None:
    lodge.engine.schedules.create("acme", "hourly", script="job", rules="0 * * * *", tz=BERLIN)
    found = lodge.ask("POST", "/tenants/acme/schedules/hourly/what-if", {"rules": ["30 * * * *"]}).json()
    assert found["dropped"][0] == "2026-01-01T01:00:00Z", "the slot of this very instant is no more changed"
    assert found["added"][0] == "2026-01-01T00:30:00Z"


def test_an_instant_that_utc_lacks_is_refused(lodge: RunningApi) -> None:
    for bound in (
        {"start": "0001-01-01T00:00:00+14:00"},
        {"end": "9999-12-31T23:59:59-12:00"},
        {"after": "0001-01-01T00:00:00+01:00"},
    ):
        answer = lodge.ask("POST", "/preview", {"rules": ["0 9 * * *"], **bound})
        assert (answer.status_code, answer.json()["code"]) == (422, "time_invalid"), answer.text
