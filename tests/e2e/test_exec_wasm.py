"""``lodger exec`` on WebAssembly: known by its first bytes, run in the same walls, told in the same words."""

from pathlib import Path

import pytest
from tests.e2e.command import Said, inside
from tests.e2e.ready import lodger
from tests.escape.commands import HELLO, LOOP, command


@pytest.fixture
def module(tmp_path: Path) -> Path:
    return tmp_path / "hello.wasm"


def test_a_module_is_known_by_its_first_bytes(module: Path) -> None:
    module.write_bytes(HELLO)
    said = lodger("exec", module, "--input", '{"name": "Kim"}', "--json")
    assert said.code == 0
    body = said.json
    assert (body["outcome"], body["result"], body["error"]) == ("ok", {"name": "Kim"}, None)
    assert body["logs"] == [{"level": "info", "text": "hello"}, {"level": "info", "text": "world"}]
    assert body["effects"] == []
    assert body["walls"]["seccomp"] is True
    assert lodger("exec", "-", "--json", stdin=HELLO).json["result"] is None, "standard input, too"


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
    place = {"--db": tmp_path / "ledger.db"}

    def ask(*arguments: str | Path) -> Said:
        return inside(*arguments, *next(iter(place.items())), XDG_CACHE_HOME=str(tmp_path / "cache"))

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
