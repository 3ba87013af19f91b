"""The noun verbs over one ledger, secrets without keys, and places that are no ledger: a command that only reads creates none."""

import errno
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.databases.template import EMPTY
from tests.e2e import command
from tests.e2e.command import Said, bare, inside
from tests.e2e.ready import lodger

from lodger.engine.output.failure import described

RULE = "FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0"


class Ledger:
    """A place, and commands on it."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __call__(self, *arguments: str | Path) -> Said:
        return inside(*arguments, "--db", self.place, "--json")


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    made = Ledger(tmp_path_factory.mktemp("nouns") / "ledger.db")
    script = made.place.parent / "hello.js"
    script.write_text("export default () => 'hello';")
    assert made("tenant", "create", "acme").code == 0
    assert made("script", "put", "acme", "hello", script).json["version"] == 1
    return made


def test_the_log_says_that_it_came_by_the_command_line(ledger: Ledger) -> None:
    reported = ledger("audit", "list", "acme").json["entries"]
    assert [(each["verb"], each["via"]) for each in reported] == [("scripts.put", "cli"), ("tenants.create", "cli")]
    assert (reported[0]["before"], reported[0]["after"]["version"]) == (None, 1)


def test_what_is_not_there_says_where_it_was_looked_for(ledger: Ledger, tmp_path: Path) -> None:
    """A command in the wrong folder names the place where it looked."""
    known = ledger("schedule", "list", "nobody").json["error"]
    assert (known["code"], known["why"]) == ("tenant_unknown", f"this is the ledger {ledger.place}")
    place = tmp_path / "elsewhere.db"
    absent = inside("schedule", "list", "acme", "--db", place, "--json").json["error"]
    assert (absent["code"], absent["message"]) == ("not_a_ledger", f"there is no ledger at {place}")
    new = inside("tenant", "suspend", "acme", "--db", place, "--json").json["error"]
    assert new["why"] == f"this is the ledger {place}; it was created just now and is empty"
    assert "or choose another ledger with --db, LODGER_DATABASE or a profile" in new["fix"]


@pytest.mark.parametrize(
    ("arguments", "code", "exit_code"),
    [
        (("tenant", "create", "acme"), "tenant_exists", 1),
        (("tenant", "create", "b", "--limits", '{"cpu_ms": 1}'), "limit_out_of_range", 1),
        (("tenant", "create", "b", "--limits", "{"), "not_json", 2),
        (("script", "put", "nobody", "x", "hello.js"), "tenant_unknown", 1),
        (("script", "put", "acme", "x", "nowhere.js"), "file_missing", 2),
        (("schedule", "create", "acme", "x", "--script", "hello"), "option_missing", 2),
        (("schedule", "create", "acme", "x", "--script", "nope", "--rule", RULE), "script_unknown", 1),
        (("schedule", "create", "acme", "x", "--script", "hello", "--rule", "FREQ=DALY"), "freq_unknown", 1),
        (("schedule", "create", "acme", "x", "--script", "hello", "--rule", RULE, "--tz", "Mars/Base"), "zone_unknown", 1),
        (("schedule", "create", "acme", "x", "--script", "hello", "--rule", RULE, "--missed", "no"), "missed_invalid", 1),
        (("schedule", "create", "acme", "x", "--script", "hello", "--rule", "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"),
         "rule_never_fires", 1),
        (("schedule", "pause", "acme", "nope"), "schedule_unknown", 1),
        (("action", "show", "acme", "nope"), "action_unknown", 1),
        (("action", "list", "acme", "--limit", "0"), "limit_invalid", 1),
    ],
)  # fmt: skip
def test_mistakes_are_told_by_code(ledger: Ledger, arguments: tuple[str, ...], code: str, exit_code: int) -> None:
    given = [ledger.place.parent / each if each == "hello.js" else each for each in arguments]
    said = ledger(*given)
    error = said.json["error"]
    assert (error["code"], said.code) == (code, exit_code)
    assert "TENANT" not in error.get("fix", ""), "a command of the fix works as it stands"


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    place = tmp_path / "notes.txt"
    place.write_text("not a database at all, but long enough to be read as a header of one" * 20)
    for verb in (("tenant", "list"), ("db", "check"), ("db", "upgrade")):
        said = inside(*verb, "--db", place, "--json")
        assert (said.code, said.json["error"]["code"]) == (1, "not_a_database")
        assert said.json["error"]["fix"]
    assert place.read_text().startswith("not a database at all")


@pytest.mark.parametrize(
    ("place", "code"),
    [("/nowhere/ledger.db", "database_unreadable"), ("mysql://x/y", "database_url"), (":memory:", "database_url")],
)
def test_a_place_that_can_hold_no_ledger(place: str, code: str) -> None:
    said = inside("tenant", "create", "acme", "--db", place, "--json")
    assert (said.code, said.json["error"]["code"]) == (1, code)


@pytest.mark.parametrize(("place", "told"), [("mysql://x/y", "not support mysql"), (":memory:", "database in memory")])
def test_an_address_that_names_no_ledger_is_told_to_a_command_that_reads(place: str, told: str) -> None:
    said = inside("tenant", "list", "--db", place, "--json")
    assert (said.json["error"]["code"], told in said.json["error"]["message"]) == ("database_url", True)


def test_check_changes_nothing_and_upgrade_is_done_once(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    EMPTY.add(str(ledger.place))
    absent = ledger("db", "check")
    assert (absent.code, absent.json["verdict"]) == (1, "absent")
    assert list(tmp_path.iterdir()) == []
    assert ledger("db", "upgrade").json["applied"]
    assert ledger("db", "upgrade").json == {"applied": []}
    assert (ledger("db", "check").code, ledger("db", "check").json["verdict"]) == (0, "current")


VALUE = "sk_live_4eC39HqLyjWDarjtT1zdp7dc"


def test_without_keys_it_says_how_to_get_them(tmp_path: Path) -> None:
    ledger = str(tmp_path / "l.db")
    inside("tenant", "create", "acme", "--db", ledger)
    refused = inside("secret", "put", "acme", "KEY", "--db", ledger, stdin=VALUE)
    assert refused.code == 1
    assert "lodger secret keygen" in refused.err
    assert VALUE not in refused.err
    empty = inside("secret", "put", "acme", "KEY", "--db", ledger, "--json", stdin="")
    assert empty.json["error"]["code"] == "secret_value_invalid"


#: Commands that only read.
READING = (
    "action show acme 0000", "action logs acme 0000", "action follow acme 0000", "action record acme 0000",
    "action replay-locally acme 0000", "audit export --out -", "doctor", "grant list acme", "tenant show acme",
    "script module acme x --out /dev/null", "script rehearse acme x", "script dry-run acme x", "token link", "db check",
    "tenant list", "token list", "node list", "lock list", "script list acme", "schedule list", "action list", "audit list",
    "metrics read", "metrics blocked",
)  # fmt: skip


@pytest.mark.parametrize("words", READING)
def test_a_command_that_reads_creates_no_ledger_and_names_what_creates_one(words: str, tmp_path: Path) -> None:
    said = inside(*words.split(), "--db", tmp_path / "lodger.db")
    assert list(tmp_path.iterdir()) == []
    assert said.code in {0, 1}
    assert "Traceback" not in said.err
    if said.code == 1 and words != "db check":
        assert "[not_a_ledger]" in said.err
        assert "lodger tenant create" in said.err


def test_a_command_that_reads_leaves_the_database_of_an_application_as_it_is(tmp_path: Path) -> None:
    place = tmp_path / "app.db"
    with closing(sqlite3.connect(place)) as app:
        app.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    before = place.read_bytes()
    said = inside("tenant", "list", "--db", place, "--json")
    assert (said.code, said.json["error"]["code"]) == (1, "not_a_ledger")
    assert place.read_bytes() == before


def test_types_of_exposed_sets_need_no_ledger(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("def expose(engine):\n    pass\n")
    said = lodger("init", "scripts", "--expose", "shop:expose", cwd=tmp_path)
    assert said.code == 0, said.err
    assert not (tmp_path / "lodger.db").exists()


def test_statements_for_an_administrator_create_no_ledger(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("def expose(engine):\n    pass\n")
    said = lodger("db", "prepare", "--expose", "shop:expose", "--sql", cwd=tmp_path)
    assert (said.code, "not_a_ledger" in said.err) == (1, True)
    assert not (tmp_path / "lodger.db").exists()


def test_a_command_that_writes_creates_the_ledger_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        assert command.lodger("tenant", "create", "acme", "--db", tmp_path / "lodger.db").code == 0
    finally:
        os.umask(before)
    assert {each.stat().st_mode & 0o777 for each in tmp_path.iterdir()} == {0o600}


def test_piped_output_is_not_cut(tmp_path: Path) -> None:
    place, name = tmp_path / "lodger.db", "a-name-that-is-longer-than-a-terminal-" * 4
    inside("tenant", "create", "acme", "--name", name, "--db", place)
    lines = lodger("tenant", "list", "--db", place, COLUMNS="").out.splitlines()
    assert any("acme" in line and name in line and "active" in line for line in lines)


def test_an_address_of_another_host_is_not_called_taken(tmp_path: Path) -> None:
    said = lodger("up", "--db", tmp_path / "lodger.db", LODGER_API_HOST="192.0.2.1", LODGER_API_PORT="8799")
    assert said.code == 1
    assert "[address_unknown]" in said.err
    assert "LODGER_API_PORT" not in said.err


@pytest.mark.parametrize(
    ("number", "word"),
    [
        (errno.EROFS, "read-only"), (errno.ENOSPC, "full"), (errno.EACCES, "may not"), (errno.ENOENT, "there is no"),
        (errno.EMFILE, "too many files"),
    ],
)  # fmt: skip
def test_an_error_of_the_system_is_explained_by_its_cause(number: int, word: str) -> None:
    body = described(OSError(number, os.strerror(number), "/somewhere/lodger.db"))
    assert body["code"] == "system_error"
    assert word in body["message"]
    assert "/somewhere/lodger.db" in body["message"]
    assert body["fix"]


def limited(limit: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a shell that has set a limit."""
    call = [f"ulimit {limit} && exec '{sys.executable}' -m lodger.engine.cli \"$@\""]
    return subprocess.run(
        ["sh", "-c", *call, "sh", *words], capture_output=True, text=True, env=bare() | env, timeout=250, check=False
    )


def test_a_limit_of_address_space_is_named(tmp_path: Path) -> None:
    script = tmp_path / "job.js"
    script.write_text("export default () => 1")
    said = limited("-v 900000", "exec", str(script))
    assert said.returncode == 1
    assert "ulimit -v unlimited" in said.stderr


def test_slots_beyond_the_limit_of_open_files_are_named(tmp_path: Path) -> None:
    said = limited("-n 5000", "doctor", "--ready", "--db", str(tmp_path / "lodger.db"), LODGER_SLOTS="100000")
    assert "lower LODGER_SLOTS" in said.stdout
