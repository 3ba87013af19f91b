"""The description is one that generators of clients can use."""

import json
import re
from collections.abc import Iterator
from typing import Any, get_args

from tests.api.running_api import RunningApi

from lodger.engine.core import states
from lodger.engine.features import TABLE
from lodger.engine.policy.conduct import Placement
from lodger.engine.policy.plan import Overlap


def inside(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield every object of a document."""
    if isinstance(schema, dict):
        yield schema
    for each in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from inside(each)


def test_generators_find_servers_tags_items_and_enums(steady: RunningApi) -> None:
    found = steady.ask("GET", "/openapi.json").json()
    schemas = found["components"]["schemas"]
    assert not [each for each in schemas if f"New{each}" in schemas], "Go's generator calls constructors so"
    assert (found["servers"], found["info"]["license"]["name"]) == ([{"url": "/"}], "MIT")
    used = {tag for path in found["paths"].values() for verb in path.values() for tag in verb["tags"]}
    assert {tag["name"] for tag in found["tags"]} == used
    assert [each for each in inside(schemas) if each.get("type") == "array" and "items" not in each] == []
    for name, field, words in (
        ("Tenant", "state", states.TenantState),
        ("Schedule", "state", states.ScheduleState),
        ("Schedule", "overlap", states.OverlapPolicy),
        ("SchedulesCreateBody", "overlap", states.OverlapPolicy),
        ("SchedulesEditBody", "placement", states.PlacementName),
        ("Action", "state", states.ActionState),
        ("Action", "origin", states.Origin),
        ("NodeRow", "state", states.NodeState),
        ("TokensCreateBody", "role", states.RoleName),
    ):
        assert schemas[name]["properties"][field]["enum"] == list(get_args(words)), (name, field)
    assert get_args(states.OverlapPolicy) == tuple(Overlap)
    assert get_args(states.PlacementName) == tuple(Placement)
    assert "cancel_other" in schemas["SchedulesCreateBody"]["properties"]["overlap"]["description"]
    told = [each["description"] for each in inside(found) if isinstance(each.get("description"), str)]
    assert [text for text in told if re.search(r"\b(?:Args|Attributes|Raises):", text)] == []


def test_the_description_is_whole(steady: RunningApi) -> None:
    said = steady.ask("GET", "/openapi.json", role="viewer", tenant="acme").json()
    assert said["openapi"].startswith("3.1")
    described = {(method.upper(), path) for path, item in said["paths"].items() for method in item}
    assert {(route.method, f"/api/v1{route.path}") for route in TABLE.routes} <= described
    text = json.dumps(said)
    for reference in {part.split('"')[0] for part in text.split('"$ref": "#/components/schemas/')[1:]}:
        assert reference in said["components"]["schemas"]
    assert ":meth:" not in text


def test_what_a_change_asks_of_an_object_the_object_tells(steady: RunningApi) -> None:
    paths = steady.ask("GET", "/openapi.json").json()["paths"]
    asked = 0
    for path, verbs in paths.items():
        names = {each["name"] for method in ("put", "patch") for each in verbs.get(method, {}).get("parameters", ())}
        if "If-Match" in names and "get" in verbs and not path.endswith(("/grants", "/module")):
            asked += 1
            assert {"200", "304"} <= set(verbs["get"]["responses"]), path
            assert "ETag" in verbs["get"]["responses"]["200"]["headers"], path
            assert "If-None-Match" in {each["name"] for each in verbs["get"]["parameters"]}, path
    assert asked >= 8


def test_a_problem_has_the_fields_of_its_description(steady: RunningApi) -> None:
    described = steady.ask("GET", "/openapi.json").json()["components"]["schemas"]["Problem"]["properties"]
    for path, body in (
        ("/preview", {"rules": ["every bogus"]}),
        ("/preview", {"rules": 5, "more": 1}),
        ("/none", None),
    ):
        assert set(steady.ask("POST", path, body).json()) <= set(described), path


def test_other_spellings_of_an_enum_are_accepted_and_other_words_have_their_own_error(steady: RunningApi) -> None:
    body = {"name": "spelt", "script": "job", "rules": ["every 1h"]}
    made = steady.ask("POST", "/tenants/acme/schedules", body | {"overlap": "BufferOne"})
    assert made.json()["overlap"] == "queue_one", made.text
    assert steady.ask("DELETE", "/tenants/acme/schedules/spelt").status_code in {200, 204}
    wrong = steady.ask("POST", "/tenants/acme/schedules", body | {"overlap": "twice"})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "overlap_invalid")
