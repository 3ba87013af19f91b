"""``lodger exec``: real walls, collections in memory, effects shown, WebAssembly; and every file that is no script."""

import json
from pathlib import Path

import pytest
from tests.e2e.command import Said, inside
from tests.egress.peer import Peer, thread_of_peers
from tests.escape.commands import HELLO, LOOP, command

GOOD = """\
export default async function ({ db, mail, kv, action, now }) {
  console.log("hello", action.input.name);
  const cart = await db.carts.insert({ state: "open", items: 3, modified: now.subtract({ days: 2 }) });
  await db.carts.update(cart.id, { state: "reminded" });
  await kv.set("last", { items: cart.items });
  await mail.send({ to: "kim@example.com", subject: "Hello", text: "one\\ntwo" });
  return { open: await db.carts.count({ state: "open" }), all: await db.carts.count({}) };
}
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "script.js"


def test_a_run_shows_result_logs_effects_usage_and_walls(script: Path) -> None:
    script.write_text(GOOD)
    said = inside("exec", script, "--input", '{"name": "Kim"}', "--json")
    body = said.json
    assert said.code == 0
    assert (body["outcome"], body["error"]) == ("ok", None)
    assert body["result"] == {"open": 0, "all": 1}
    assert body["logs"] == [{"level": "info", "text": "hello Kim"}]
    assert [effect["effect"] for effect in body["effects"]] == ["insert", "update", "kv.set", "mail"]
    assert body["usage"]["host_calls"] > 0
    assert body["usage"]["memory_peak_bytes"] > 0
    assert body["walls"]["seccomp"] is True


def test_people_see_a_diff(script: Path) -> None:
    script.write_text(GOOD)
    said = inside("exec", script, "--input", '{"name": "Kim"}')
    for wanted in ("ok  (", '"all": 1', "+ carts", "~ carts", "@ mail to kim@example.com: Hello", "~ kv last"):
        assert wanted in said.out, wanted


def test_an_error_shows_the_authors_line(script: Path) -> None:
    script.write_text("export default function () {\n  const total = 3;\n  return total.padLeft(12);\n}\n")
    said = inside("exec", script)
    assert said.code == 1
    assert "script_error" in said.out
    assert f"{script}:3: TypeError" in said.out
    shown = said.out.splitlines()
    place = shown.index("  3 |   return total.padLeft(12);")
    caret = shown[place + 1].index("^")
    assert shown[place][:caret].endswith(("total", "total."))


@pytest.mark.parametrize(
    ("content", "outcome", "word"),
    [
        (b"", "compile_error", "empty"),
        (b" \n\t\n", "compile_error", "empty"),
        (b"a" * 10_485_760, "source_too_large", "10485760"),
        (b"let a = 1;\n\x80\x81\xfe", "compile_error", "UTF-8"),
        (b"\x00\x01\x02", "compile_error", "NUL"),
    ],
    ids=["empty", "blank", "ten megabytes", "binary", "nul"],
)
def test_what_is_no_script_is_refused_in_words(script: Path, content: bytes, outcome: str, word: str) -> None:
    script.write_bytes(content)
    said = inside("exec", script, "--json")
    assert (said.code, said.json["outcome"]) == (1, outcome)
    assert word in said.json["error"]["message"]
    assert set(said.json) >= {"result", "logs", "effects", "usage", "walls"}
    assert word in inside("exec", script).out


@pytest.mark.parametrize(
    "script",
    [
        "console.log(`a${hidden}b`);",
        "throw new Error(`a${hidden}b`);",
        "return `a${hidden}b`;",
        "return { [`a${hidden}b`]: 1 };",
        "a${hidden}b();",
    ],
    ids=["log", "error", "result", "key", "source"],
)
def test_unseen_characters_of_a_script_never_reach_a_terminal(script: str) -> None:
    hidden = "\x1b\u200b\u2028\u2029\u202e\u2066\U000e0061\ufeff"
    source = f"const hidden = {json.dumps(hidden)};\n" + script.replace(
        "a${hidden}b();", f"a; /* {hidden} */ null.b();"
    )
    for output in ((), ("--json",)):
        said = inside("exec", "-", *output, stdin=source)
        assert not set(hidden) & set(said.out + said.err)
        assert "a" in said.out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("nowhere.js",), "file_missing"),
        (("/",), "file_is_folder"),
        (("-", "--input", "{"), "not_json"),
        (("-", "--input", "NaN"), "not_json"),
        (("-", "--input", "[" * 100_000), "not_json"),
        (("-", "--input", '{"a": 1, "a": 2}'), "not_json"),
        (("-", "--cpu-ms", "0"), "limit_out_of_range"),
        (("-", "--memory-mb", "99999"), "limit_out_of_range"),
        (("-", "--runtime", "node"), "runtime_unknown"),
    ],
)
def test_wrong_usage_ends_with_two(arguments: tuple[str, ...], code: str) -> None:
    said = inside("exec", *arguments, "--json", stdin="return 1;")
    assert said.code == 2
    assert said.json["error"]["code"] == code


def test_a_folder_is_a_script_whose_files_import_each_other(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "main.js").write_text("import { twice } from './lib/twice.js';\nexport default () => twice(21);\n")
    (tmp_path / "lib" / "twice.js").write_text(
        "export const twice = (n) => {\n  if (n > 99) throw new Error('large');\n  return 2 * n;\n};\n"
    )
    assert inside("exec", tmp_path, "--json").json["result"] == 42
    (tmp_path / "main.js").write_text("import { twice } from './lib/twice.js';\nexport default () => twice(100);\n")
    said = inside("exec", tmp_path)
    assert said.code == 1
    assert f"{tmp_path / 'lib' / 'twice.js'}:2: Error: large" in said.out
    assert "if (n > 99)" in said.out


def test_a_refused_call_is_the_error_that_the_script_saw(script: Path) -> None:
    script.write_text("export default ({ fetch }) => fetch('https://example.com/');")
    body = inside("exec", script, "--json").json
    assert (body["outcome"], body["error"]["name"], body["error"]["line"]) == ("denied", "TypeError", 1)
    assert body["walls"]["seccomp"] is True


def test_requests_that_change_something_are_sent_only_when_told(script: Path) -> None:
    peer = Peer()
    with thread_of_peers(peer):
        script.write_text(
            f'export default async () => (await fetch("{peer.url("/x")}", {{ method: "POST", body: "a" }})).status'
        )
        given = ("exec", script, "--json", "--grant", f"fetch:http://127.0.0.1:{peer.port}")
        reach = {"LODGER_EGRESS_NETWORKS": "127.0.0.0/8", "LODGER_EGRESS_PORTS": str(peer.port)}
        for more, lines in (((), []), (("--allow-fetch",), ["POST /x HTTP/1.1"])):
            said = inside(*given, *more, **reach)
            assert said.json["outcome"] == "ok"
            assert [each["sent"] for each in said.json["effects"]] == [bool(lines)]
            assert [asked.line for asked in peer.asked] == lines


@pytest.fixture
def module(tmp_path: Path) -> Path:
    return tmp_path / "hello.wasm"


def test_a_module_is_known_by_its_first_bytes(module: Path) -> None:
    module.write_bytes(HELLO)
    said = inside("exec", module, "--input", '{"name": "Kim"}', "--json")
    assert said.code == 0
    body = said.json
    assert (body["outcome"], body["result"], body["error"]) == ("ok", {"name": "Kim"}, None)
    assert body["logs"] == [{"level": "info", "text": "hello"}, {"level": "info", "text": "world"}]
    assert body["effects"] == []
    assert body["walls"]["seccomp"] is True
    assert inside("exec", "-", "--json", stdin=HELLO).json["result"] is None, "standard input, too"


def test_what_a_run_of_a_module_ends_with_is_told(module: Path) -> None:
    module.write_bytes(command("unreachable"))
    said = inside("exec", module, "--runtime", "wasm")
    assert (said.code, "Trap: unreachable in start (#" in said.out) == (1, True)
    module.write_bytes(LOOP)
    assert inside("exec", module, "--cpu-ms", "50", "--json").json["outcome"] == "cpu_limit"


def test_a_script_is_no_module_and_a_module_no_script(module: Path) -> None:
    for content, runtime, word in ((b"export default () => 1;", "wasm", "not WebAssembly"), (HELLO, "quickjs", "")):
        module.write_bytes(content)
        said = inside("exec", module, "--runtime", runtime, "--json")
        assert (said.code, said.json["outcome"], word in said.json["error"]["message"]) == (1, "compile_error", True)


def test_a_module_is_stored_tried_and_refused(tmp_path: Path, module: Path) -> None:
    def ask(*arguments: str | Path) -> Said:
        return inside(*arguments, "--db", tmp_path / "ledger.db")

    module.write_bytes(HELLO)
    assert ask("tenant", "create", "acme", "--json").code == 0
    made = ask("script", "put", "acme", "hello", module, "--json")
    assert (made.code, made.json["version"], made.json["wasm_bytes"]) == (0, 1, len(HELLO))
    assert "WebAssembly" in ask("script", "put", "acme", "hello", module).out
    tried = ask("script", "dry-run", "acme", "hello", "--input", "[1]", "--now", "2027-01-01T00:00Z", "--json")
    assert (tried.code, tried.json["result"]) == (0, [1])
    module.write_bytes(HELLO[:-20])
    refused = ask("script", "put", "acme", "hello", module, "--json")
    assert (refused.code, refused.json["error"]["code"]) == (1, "module_refused")
    module.write_bytes(b"\xff\xfe")
    assert ask("script", "put", "acme", "hello", module).code == 2
    assert [each["version"] for each in ask("script", "list", "acme", "--json").json["scripts"]] == [1]
