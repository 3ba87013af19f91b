"""The command line here and on a server: the same words, the same answers; profiles, sources, questions, hostile letters."""

import json
import os
import pty
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import reference_pages
from tests.api.running_api import ONE, RunningApi, running_api
from tests.e2e import command
from tests.e2e.command import ROOT, Said, inside
from tests.e2e.ready import CLI, Ready, lodger

from lodger.engine.cli import entry, place
from lodger.engine.cli.operations import command_name
from lodger.engine.core.errors import InputError
from lodger.engine.features import TABLE


@pytest.mark.parametrize(
    "words", [(), ("--profile", "p"), ("--profile=p",), ("--profile", "next"), ("--server", "http://127.0.0.1:1")]
)
def test_a_commands_own_zone_stays_its_own_behind_global_options(words: tuple[str, ...]) -> None:
    rule = ["next", "0 9 * * *", "--tz", "Asia/Tokyo"]
    assert (place.taken([*words, *rule]), place.zone_said()) == (rule, None)
    assert (place.taken([*words, *rule[:1], "--json", *rule[1:]]), place.zone_said()) == (
        ["next", "--json", *rule[1:]],
        None,
    )
    assert (place.taken([*words, "--tz", "UTC", *rule]), place.zone_said()) == (rule, "UTC")
    shown = ["schedule", "list", "acme"]
    assert (place.taken([*words, *shown, "--tz", "UTC"]), place.zone_said()) == (shown, "UTC")
    put = ["alert", "put", "acme", "a", "--tz", "Asia/Tokyo"]
    assert (place.taken([put[0], *words, *put[1:]]), place.zone_said()) == (put, None)
    assert place.taken([*words, *shown, "--", "--tz", "x"]) == [*shown, "--", "--tz", "x"]


@pytest.fixture
def lodge(tmp_path: Path) -> Iterator[RunningApi]:
    with running_api(f"sqlite:///{tmp_path / 'served.db'}") as made:
        yield made


class Asking:
    """The command line, on a server or on a ledger."""

    def __init__(self, *place: str, **environment: str) -> None:
        self.place, self.environment = place, environment

    def __call__(self, *arguments: str, stdin: str = "") -> Said:
        return inside(*arguments, *self.place, stdin=stdin, **self.environment)

    def json(self, *arguments: str, stdin: str = "") -> Any:
        said = self(*arguments, "--json", stdin=stdin)
        assert said.code == 0, said.out + said.err
        return said.json


def walk(ask: Asking, folder: Path) -> list[Any]:
    """Use every noun that has no secret to tell."""
    script = folder / "job.js"
    script.write_text(ONE)
    several = folder / "several"
    (several / "lib").mkdir(parents=True, exist_ok=True)
    (several / "main.js").write_text("import { f } from './lib/f.js'; export default f")
    (several / "lib" / "f.js").write_text("export const f = () => 2")
    reported = [
        ask.json("tenant", "create", "acme", "--limits", '{"concurrent_runs": 3}', "--label", "big"),
        ask.json("tenant", "edit", "acme", "--name", "Acme Ltd"),
        ask.json("tenant", "list", "-n", "5"),
        ask.json("grant", "give", "acme", "fetch:example.com"),
        ask.json("script", "put", "acme", "job", str(script), "--why", "first"),
        ask.json("script", "put", "acme", "job", str(several), "--after-version", "1"),
        ask.json("script", "ping", "acme", "knock", "https://example.com/in", "--method", "POST", "--headers", '{"x": "1"}'),
        ask.json("script", "diff", "acme", "job", "1"),
        ask.json("script", "rollback", "acme", "job", "1"),
        ask.json("script", "versions", "acme", "job"),
        ask.json("script", "show", "acme", "job", "--version", "2"),
        ask.json("script", "check", "acme", "-", stdin="return ("),
        ask.json(
            "schedule", "create", "acme", "s", "--script", "job", "--version", "1", "--rule", "0 9 * * *", "--tz", "Asia/Tokyo",
            "--retry", "3", "--dst", '{"gap": "skip", "fold": null}', "--params", '{"a": 1}', "--jitter-s", "0", "--why", "w",
        ),
        ask.json("schedule", "edit", "acme", "s", "--params", "null", "--tz", "none", "--revision", "1"),
        ask.json("schedule", "diff", "acme", "s", "1"),
        ask.json("schedule", "pause", "acme", "s", "--note", "holidays"),
        ask.json("schedule", "resume", "acme", "s"),
        ask.json("schedule", "list"),
        ask.json("schedule", "counters", "acme", "s"),
        ask.json("schedule", "preview", "0 9 * * *", "30 9 * * *", "-n", "3"),
        ask.json("action", "run-in", "acme", "job", "90s"),
        ask.json("action", "run-at", "acme", "job", "2030-01-01T00:00:00Z"),
        ask.json("action", "run-now", "acme", "s"),
        ask.json("action", "list", "acme", "--origin", "once", "--since", "2020-01-01T00:00:00Z"),
        ask.json("token", "create", "ci", "editor", "--tenant", "acme"),
        ask.json("token", "list"),
        ask.json("audit", "list", "acme", "--verb", "schedules."),
        ask.json("node", "list"),
        ask.json("schedule", "delete", "acme", "s", "--yes"),
    ]  # fmt: skip
    refused = ask("tenant", "show", "nobody", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (1, "tenant_unknown")
    exported = ask("audit", "export", "acme")
    reported.append([json.loads(line)["verb"] for line in exported.out.splitlines()])
    return reported


def test_a_server_is_asked_with_the_words_of_a_ledger(lodge: RunningApi, tmp_path: Path) -> None:
    *_answers, exported = walk(Asking("--server", lodge.url, LODGER_TOKEN=lodge.token("admin")), tmp_path)
    assert {row.via for row in lodge.engine.audit.list("acme", limit=None)} == {"http"}
    assert sorted(exported) == sorted(row.verb for row in lodge.engine.audit.list("acme", limit=None))


def test_every_operation_is_a_command() -> None:
    commands = reference_pages.everything().commands
    made = {f"{noun} {name}" for noun in entry.all_nouns() for name in commands[noun].commands}
    for operation in TABLE.operations.values():
        name = command_name(operation)
        if name is not None:
            noun = operation.noun if operation.noun in entry.all_nouns() else operation.noun.removesuffix("s")
            assert f"{noun} {name}" in made
        else:
            by_hand = {
                "batches.create": {"batch import"},
                "grants.keep": {"grant give", "grant take"},
                "actions.bulk": {"action bulk"},
                "schedules.bulk": {"schedule bulk"},
            }
            assert operation.declared.local or by_hand[operation.name] <= made


def write_profiles(file: Path, current: str, **profiles: dict[str, str]) -> None:
    """Write a file of profiles that only its owner can read."""
    tables = [
        "\n".join([f"[profiles.{name}]", *(f"{key} = {json.dumps(value)}" for key, value in fields.items())])
        for name, fields in profiles.items()
    ]
    file.touch(0o600)
    file.write_text("\n".join([f"current = {json.dumps(current)}", *tables]))


def test_profiles(lodge: RunningApi, tmp_path: Path) -> None:
    file = tmp_path / "profiles.toml"
    ask = Asking(LODGER_PROFILES=str(file))
    here, there = {"db": str(tmp_path / "here.db")}, {"server": lodge.url, "token": lodge.token("admin")}
    write_profiles(file, "here", here=here, there=there)
    ask.json("tenant", "create", "mine")
    ask.json("tenant", "create", "theirs", "--profile", "there")
    assert [each["id"] for each in ask.json("tenant", "list")["tenants"]] == ["mine"]
    assert [each["id"] for each in ask.json("--profile=there", "tenant", "list")["tenants"]] == ["theirs"]
    write_profiles(file, "there", here=here, there=there)
    assert [each["id"] for each in ask.json("tenant", "list")["tenants"]] == ["theirs"]
    shown = {each["name"]: each for each in ask.json("config", "show")["places"]}
    assert (shown["server"]["value"], shown["server"]["source"]) == (lodge.url, "profile there")
    assert shown["token"]["source"] == "profile there"
    assert lodge.token("admin") not in json.dumps(shown)
    over = Asking(LODGER_PROFILES=str(file), LODGER_SERVER="http://127.0.0.1:1", LODGER_TOKEN="lodger_x")
    assert {each["source"] for each in over.json("config", "show")["places"][:2]} == {"environment"}
    assert ask.json("config", "show", "--db", "x.db")["places"][2] == {
        "name": "database",
        "value": "x.db",
        "source": "option",
    }
    other = ask("tenant", "list", "--server", "http://127.0.0.1:1", "--json")
    assert other.json["error"]["code"] == "token_missing", "a profile's token goes to its own server and to no other"
    assert (
        ask("tenant", "list", "--server", lodge.url, "--db", "x", "--json").json["error"]["code"] == "place_ambiguous"
    )
    file.chmod(0o644)
    assert ask("tenant", "list", "--json").json["error"]["code"] == "profiles_readable"
    file.chmod(0o600)
    assert ask("tenant", "list", "--profile", "other", "--json").json["error"]["code"] == "profile_unknown"
    write_profiles(file, "there", there=here | there)
    assert ask("tenant", "list", "--json").json["error"]["code"] == "place_ambiguous"
    for text in (
        "profiles = 5", 'current = ["here"]', "profiles.here = 5", "profiles.here.server = 5", "profiles.here.db = 5",
        'profiles.here.url = "x"', "profiles = " + "[" * 5000,
    ):  # fmt: skip
        file.write_text(text)
        assert ask("tenant", "list", "--json").json["error"]["code"] == "profiles_invalid", text


def test_commands_of_a_fix_go_to_the_ledger_or_server_that_was_named(lodge: RunningApi, tmp_path: Path) -> None:
    ledger, nouns = str(tmp_path / "my ledger.db"), entry.all_nouns()
    ask = Asking("--db", ledger)
    assert command.lodger("tenant", "create", "acme", "--db", ledger).err == f"the ledger is new and empty: {ledger}\n"
    assert ask("tenant", "create", "bella").err == ""
    unknown = ask("tenant", "show", "nobody", "--json").json["error"]
    assert unknown["fix"].startswith(f"lodger tenant create --db '{ledger}' nobody"), unknown
    again = Asking("--server", lodge.url, LODGER_TOKEN=lodge.token("admin"))("tenant", "show", "nobody", "--json")
    assert again.json["error"]["fix"].startswith(f"lodger tenant create --server {lodge.url} nobody"), again
    place.taken(["db", "check", "--db=a.db"])
    assert (
        place.to_copy("run lodger db upgrade, lodger up, or lodger secret keygen; lodger errors lists all", nouns)
        == "run lodger db upgrade --db a.db, lodger up --db a.db, or lodger secret keygen; lodger errors lists all"
    )
    assert place.to_copy("pip install lodger", nouns) == "pip install lodger"
    place.taken(["db", "check", "--db", "postgresql://me:hidden@db.example/lodger"])
    assert place.to_copy("lodger db upgrade", nouns) == "lodger db upgrade --db 'postgresql://me:***@db.example/lodger'"


def test_the_setting_profile_and_the_profile_of_a_place_are_two_variables(tmp_path: Path) -> None:
    ask = Asking(LODGER_PROFILES=str(tmp_path / "profiles.toml"), LODGER_PROFILE="trusted", LODGER_DATABASE="")
    write_profiles(tmp_path / "profiles.toml", "one", **{name: {"db": str(tmp_path / name)} for name in ("one", "two")})
    assert ask.json("config", "show")["places"][2]["value"] == str(tmp_path / "one")
    chosen = Asking(**ask.environment, LODGER_PROFILE_NAME="two").json("config", "show")
    assert chosen["places"][2]["source"] == "profile two"
    assert next(each for each in chosen["settings"] if each["name"] == "profile")["value"] == "trusted"


@pytest.mark.parametrize("words", [("up", "--role", "node"), ("db", "check"), ("db", "backup", "x")])
def test_commands_of_this_machine_refuse_a_server(words: tuple[str, ...], tmp_path: Path) -> None:
    said = Asking("--server", "http://127.0.0.1:1", LODGER_DATABASE=str(tmp_path / "none.db"))(*words, "--json")
    assert (said.code, said.json["error"]["code"], [*tmp_path.iterdir()]) == (2, "verb_local", [])


def test_what_cannot_be_asked_of_a_server_is_said(lodge: RunningApi, tmp_path: Path) -> None:
    ask = Asking("--server", lodge.url, LODGER_TOKEN=lodge.token("admin"))
    assert ask("token", "first", "--json").json["error"]["code"] == "verb_local"
    assert ask("script", "dry-run", "a", "b", "--expose", "os:getcwd", "--json").json["error"]["code"] == "verb_local"
    assert inside("tenant", "list", "--server", "--json").code == 2
    wrong = Asking("--server", lodge.url, LODGER_TOKEN="lodger_wrong")("tenant", "list", "--json")
    assert (wrong.code, wrong.json["error"]["code"]) == (1, "token_invalid")


def test_what_cannot_be_taken_back_asks_first(tmp_path: Path) -> None:
    place = ("--db", str(tmp_path / "l.db"))
    inside("tenant", "create", "acme", *place)
    for verb in ("tenant delete acme", "schedule delete acme s", "token revoke lodger_aaaaaaaaaa", "secret delete acme K",
                 "webhook delete acme w"):  # fmt: skip
        asked = inside(*verb.split(), *place, "--json")
        assert (asked.code, asked.json["error"]["code"]) == (2, "not_confirmed"), verb
        assert inside(*verb.split(), *place).code == 2, verb
    verb = ["tenant", "delete", "acme", *place]
    assert inside("tenant", "show", "acme", *place).code == 0
    assert on_a_terminal(verb, "n\n") == 2
    assert inside("tenant", "show", "acme", *place).code == 0
    assert on_a_terminal(verb, "y\n") == 0
    assert inside("tenant", "show", "acme", *place).code == 1


def on_a_terminal(arguments: list[str], typed: str) -> int:
    ours, theirs = pty.openpty()
    try:
        with open(os.devnull, "w") as nothing:
            streams = (theirs, nothing.fileno(), nothing.fileno())
            with Ready(CLI, arguments, streams, {**os.environ, "PYTHONPATH": str(ROOT)}) as process:
                os.write(ours, typed.encode())
                return process.wait(60)
    finally:
        os.close(ours)
        os.close(theirs)


HOSTILE = "\u001b]52;c;cm0gLXJm\u0007\u001b[2J\u009b31m\r\u202eevil\u2066\u0008x"


def test_hostile_letters_reach_no_terminal(tmp_path: Path) -> None:
    """Class 123: text of scripts (results, notes, logs, sources, reasons, errors) repaints the terminal in no output."""
    from lodger.engine.sync import Engine

    place = tmp_path / "l.db"
    with Engine.open(place) as engine:
        engine.tenants.create("acme")
        engine.scripts.put("acme", "job", f"// {HOSTILE}\nexport default () => 1")
        engine.scripts.put("acme", "job", f"/* {HOSTILE} */ export default () => 2")
        engine.schedules.create("acme", "s", script="job", rules="0 9 * * *", params={"a": HOSTILE})
        with pytest.raises(InputError, match="not printable"):
            engine.schedules.pause("acme", "s", note=HOSTILE)
        action = engine.actions.run_now("acme", "s", params=HOSTILE)
        with engine.context.database.write() as connection:
            error = json.dumps(
                {"name": HOSTILE, "message": HOSTILE, "stack": HOSTILE, "file": HOSTILE, "line": 1, "column": 1}
            )
            # Names are refused today; a ledger of before may have one.
            connection.exec_driver_sql("update lodger_tenants set name = ? where id = 'acme'", (HOSTILE,))
            connection.exec_driver_sql(
                "update lodger_actions set result = ?, error = ?, state = 'failed', outcome = 'script_error'",
                (json.dumps(HOSTILE), error),
            )
    for verb in (
        ("tenant", "list"), ("tenant", "show", "acme"), ("script", "show", "acme", "job"), ("script", "diff", "acme", "job", "1"),
        ("schedule", "show", "acme", "s"), ("schedule", "list", "acme"), ("schedule", "diff", "acme", "s", "1"),
        ("action", "list", "acme"), ("action", "show", "acme", action.id), ("audit", "list", "acme"), ("audit", "export", "acme"),
        ("schedule", "preview", HOSTILE), ("tenant", "show", HOSTILE), ("script", "versions", "acme", "job"),
    ):  # fmt: skip
        for more in ((), ("--json",)) if verb[1] != "export" else ((),):
            said = inside(*verb, *more, "--db", str(place))
            for stream in (said.out, said.err):
                assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", stream), (verb, more)


def test_completion_knows_every_noun() -> None:
    for words, wanted in (
        ("lodger sch", "schedule"),
        ("lodger schedule roll", "rollback"),
        ("lodger token re", "revoke"),
    ):
        said = lodger(_LODGER_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(len(words.split()) - 1))
        assert wanted in said.out.split(), said.err


def test_a_preview_without_slots_says_why(tmp_path: Path) -> None:
    ask = Asking("--db", str(tmp_path / "l.db"))
    ask.json("tenant", "create", "acme")
    for rule, said in (
        (("0 0 30 2 *",), "  no slot: No year of the calendar has such a day"),
        (("0 9 * * *", "--end", "2020-01-01T00:00:00Z"), "  no slot is left"),
        (("Mondays at 9", "--exclude", "every Monday"), "removes the most slots: "),
    ):
        assert said in ask("schedule", "preview", *rule).out


def test_a_script_sees_the_years_that_its_clock_has(tmp_path: Path) -> None:
    (tmp_path / "year.js").write_text("export default ({ now }) => String(now);")
    (tmp_path / "schedules.toml").write_text('[schedules.d]\nscript = "year"\nrules = "every day at 9:00"\n')
    ask = Asking("--db", str(tmp_path / "l.db"))
    ask.json("tenant", "create", "acme", "--tz", "Asia/Tokyo")
    ask.json("script", "put", "acme", "year", str(tmp_path / "year.js"))
    for now in ("1970-01-01T00:00:00Z", "2553-12-31T23:59:59Z"):
        assert ask.json("script", "dry-run", "acme", "year", "--now", now)["result"] == now
    for now in ("2554-01-01T00:00:00Z", "9999-12-31T23:59:59Z"):
        assert (
            ask("script", "dry-run", "acme", "year", "--now", now, "--json").json["error"]["code"]
            == "instant_out_of_range"
        )
    past = ask("script", "dry-run", "acme", "year", "--now", "1969-12-31T23:59:59Z", "--json").json["error"]
    assert (past["code"], past["fix"]) == ("instant_out_of_range", "give an instant between the years 1970 and 2553")
    said = inside("dev", str(tmp_path), "--start", "2554-01-01T00:00:00Z", "--steps", "1", "--json")
    assert (said.code, said.json["error"]["code"]) == (2, "instant_unreadable")


def test_instants_and_lengths_of_time(tmp_path: Path) -> None:
    ask = Asking("--db", str(tmp_path / "l.db"))
    ask.json("tenant", "create", "acme")
    assert ask.json("action", "list", "acme", "--since", "-2h", "--until", "now") == {"actions": []}
    refused = ask("action", "run-at", "acme", "report", "2027-01-01").err
    assert "write for example 2027-01-31T09:00:00+01:00, now or +30m" in refused, "an argument has no option's name"
    for wrong in ("yesterday", "2027-01-01", "2027-01-01T00:00:00", "+", "-1 month"):
        said = ask("action", "list", "acme", "--since", wrong, "--json")
        assert (said.code, said.json["error"]["code"]) == (2, "instant_unreadable")
    folder = tmp_path / "empty"
    folder.mkdir()
    assert ask("script", "put", "acme", "x", str(folder), "--json").json["error"]["code"] == "folder_unusable"


def test_a_folder_is_stored_whole_or_refused(tmp_path: Path) -> None:
    ask = Asking("--db", str(tmp_path / "l.db"))
    ask.json("tenant", "create", "acme")
    folder = tmp_path / "job"
    for name in (
        "main.js",
        "lib/a.js",
        "node_modules/left/index.js",
        "lodger-types/db.d.ts",
        "jsconfig.json",
        ".git/x.json",
        "notes.md",
        "lib/data.json",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("[1]" if name.endswith(".json") else "export default () => 1")
    said = ask("script", "put", "acme", "x", str(folder), "--json")
    assert said.code == 0
    assert "node_modules: left out, with 1 JavaScript files" in said.err
    assert set(ask.json("script", "show", "acme", "x")["modules"]) == {"main.js", "lib/a.js", "lib/data.json"}
    for name in ("lib/b.tsx", "c.mjs"):
        (folder / name).write_text("{}")
        error = ask("script", "put", "acme", "x", str(folder), "--json").json["error"]
        assert error["code"] == "file_not_javascript"
        assert name in error["message"]
        (folder / name).unlink()
    (folder / "text.wasm").write_text("(module)")
    error = ask("script", "put", "acme", "x", str(folder / "text.wasm"), "--json").json["error"]
    assert (error["code"], "00 61 73 6d" in error["why"]) == ("file_not_javascript", True)
