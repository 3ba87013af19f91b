"""No request reaches a forbidden address, however it is written; and the same test sees them without the guard."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.egress.forms import REBINDING, all_forms

ROOT = Path(__file__).resolve().parents[2]
REFUSED = (
    "fetch_refused: this request is not allowed: the host's name does not resolve, or its address or port is not public; "
    "check its spelling, or ask the operator, whose log says which"
)


@cache
def world(taken_away: str) -> dict[str, Any]:
    """Play all forms in a network in which every address listens."""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.egress.world", taken_away],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=100, check=True,
    )  # fmt: skip
    heard: dict[str, Any] = json.loads(ran.stdout)
    if "no namespace" in heard:
        pytest.skip(
            f"NOT TESTED in a network namespace: this host gives no network of one's own ({heard['no namespace']})"
        )
    return heard


def test_there_are_enough_of_them() -> None:
    assert len(all_forms()) >= 250


@pytest.mark.parametrize("taken_away", ["guarded", "no ours"])
def test_nothing_is_heard_and_all_answers_are_one(taken_away: str) -> None:
    """``no ours``: without the look at this machine's own addresses, which is all that a namespace needs, the table holds alone."""
    reported = world(taken_away)
    assert reported["outside"] == []
    assert set(reported["answers"]) == set(all_forms())
    assert _network_answers(reported["answers"]) == {REFUSED}
    endless = "fetch_failed: the answer is a redirect for the 6th time, and at most 5 are followed"
    nowhere = "fetch_failed: the redirect has no valid http or https URL in its location"
    assert _network_answers(reported["redirected"]) <= {REFUSED, endless, nowhere}, (
        "a location of the server itself leads round"
    )


def _network_answers(found: dict[str, str]) -> set[str]:
    """Return the answers but those that the text of a URL and the grants decide without a look at the network."""
    allowed = REFUSED.partition(": the host")[0]
    of_text = (f"{allowed}: fetch has the schemes", f"{allowed}: it needs the grant")
    return {each for each in found.values() if not each.startswith(of_text)}


def test_the_network_carries_what_is_allowed() -> None:
    reported = world("no ours")
    assert reported["control"] == "answered 200"
    assert reported["public"] >= 10


def test_a_name_is_looked_up_once_and_reached_where_it_was_judged() -> None:
    reported = world("no ours")
    for name in REBINDING:
        assert reported["rebinding"][name][0] == "answered 200"
        assert reported["looks"][name] == 8, "an A and an AAAA for each of four requests, and never a second look"
    assert reported["rebinding"]["rebind.evil.example"][1:] == [REFUSED] * 3
    assert reported["rebinding"]["flip.evil.example"][1::2] == [REFUSED] * 2


def test_without_the_table_the_canaries_hear_them() -> None:
    reported = world("no table")
    heard = {address for address, _ in reported["outside"]}
    assert len(reported["outside"]) > 80
    assert {
        "127.0.0.1",
        "::1",
        "169.254.169.254",
        "10.0.0.1",
        "64:ff9b::a9fe:a9fe",
        "fd00:ec2::254",
        "2002:7f00:1::",
    } <= heard
    assert REFUSED not in reported["rebinding"]["rebind.evil.example"]


def test_without_any_guard_they_hear_even_more() -> None:
    reported = world("no guard")
    answered = [url for url, answer in reported["answers"].items() if answer == "answered 200"]
    assert len(reported["outside"]) > 150
    assert {"http://2130706433/", "http://0177.0.0.1/"} & set(answered)
    assert {port for _, port in reported["outside"] + [["", 22]]} >= {80, 443, 8080}
