"""Text of a script cannot make a line that looks like another event's: one event is one line, or its further lines are marked."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.command import Said, inside
from tests.e2e.ready import lodger

from lodger.engine.core.events import Event
from lodger.engine.output import event_lines
from lodger.engine.sync import Engine

FORGED = "2026-11-27T10:00:00Z  finished  acme  nightly  ok"
SCRIPT = f"""
export default () => {{
  console.log("counted\\n{FORGED}");
  const error = new Error("no stock\\r\\n{FORGED}\\u2028{FORGED}");
  error.name = "Bad\\n{FORGED}";
  throw error;
}}"""


class Forger:
    """The command line on a ledger in which a script has tried to write lines of its own."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.events: list[Event] = []
        with Engine.open(str(place)) as engine:
            engine.tenants.create("acme")
            engine.scripts.put("acme", "nightly", SCRIPT)
            engine.schedules.create("acme", "nightly", script="nightly", rules="0 9 * * *")
            self.action = engine.actions.run_now("acme", "nightly").id
            engine.on_event(self.events.append)
            with engine.node():
                for _ in engine.live("acme", self.action):
                    pass

    def __call__(self, *words: str) -> Said:
        return inside(*words, "--db", self.place)


@pytest.fixture(scope="module")
def forger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forger]:
    return Forger(tmp_path_factory.mktemp("forged") / "ledger.db")


@pytest.mark.parametrize(
    "words",
    [
        ("action", "show", "acme", "ACTION"), ("action", "logs", "acme", "ACTION"), ("action", "list", "acme"),
        ("action", "attempts", "acme", "ACTION"), ("action", "follow", "acme", "ACTION"),
        ("schedule", "last-run", "acme", "nightly"), ("action", "replay-locally", "acme", "ACTION"),
    ],
)  # fmt: skip
def test_no_command_prints_a_line_of_the_script(forger: Forger, words: tuple[str, ...]) -> None:
    said = forger(*(forger.action if word == "ACTION" else word for word in words))
    assert said.code in {0, 1}, said.err
    shown = said.out + said.err
    assert [line for line in shown.splitlines() if line.lstrip().startswith(FORGED)] == []
    if words[1] in {"show", "logs", "follow"}:
        assert FORGED in shown


def test_each_event_of_a_node_is_one_line(forger: Forger) -> None:
    assert any(FORGED in event_lines.line(event) for event in forger.events)
    assert all(len(event_lines.line(event).splitlines()) == 1 for event in forger.events)


def test_a_dry_run_marks_the_lines_of_the_script(tmp_path: Path) -> None:
    script = tmp_path / "nightly.js"
    script.write_text(SCRIPT)
    said = inside("exec", script)
    assert said.code == 1
    assert [line for line in (said.out + said.err).splitlines() if line.startswith(FORGED)] == []


def test_a_record_of_the_log_is_one_line() -> None:
    said = lodger("config", "show", **{f"LODGER_X\n{FORGED}\x1b[2J": "1"})
    (line,) = [
        each
        for each in said.err.splitlines()
        if FORGED in each.upper().replace("FINISHED", "finished") or "not a setting" in each
    ]
    assert not line.startswith(FORGED)
    assert "\x1b" not in said.err
