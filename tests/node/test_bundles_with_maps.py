"""Errors of a bundled script are those of the author's files, whatever its source map claims; lodger bundle makes both."""

import json
import os
import random
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.command import inside
from tests.node.source_maps import Segments, source_map

from lodger.engine.core.errors import InputError
from lodger.engine.store.scripts import source_maps
from lodger.engine.sync import Engine
from lodger.sandbox.job import ScriptError
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.workers.source_map import mapped
from lodger.sandbox.workers.verdict import Verdict

BUNDLE = """// src/sum.ts
function sum(rows) {
  return rows.nothing.length;
}
export default () => sum({});
"""
LINES: Segments = [[], [(0, 0, 6, 7)], [(2, 0, 7, 4), (9, 0, 7, 11), (22, 0, 7, 31)], [], [(0, 1, 0, 0), (21, 1, 2, 9)]]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine.open(tmp_path / "ledger.db") as opened:
        opened.tenants.create("acme")
        yield opened


def test_an_error_has_the_authors_place(engine: Engine, tmp_path: Path) -> None:
    files = {"main.js": BUNDLE, "main.js.map": source_map(LINES)}
    assert engine.scripts.put("acme", "job", files).modules == files
    error = engine.scripts.dry_run("acme", "job").error
    assert error is not None
    assert (error.file, error.line, error.column) == ("../src/sum.ts", 8, 32)
    assert error.stack.split("\n") == ["    at sum (../src/sum.ts:8:32)", "    at default (../src/main.ts:3:10)"]
    folder = tmp_path / "bundle"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    alone = inside("exec", str(folder), "--json").json["error"]
    assert (alone["file"], alone["line"], alone["column"]) == ("../src/sum.ts", 8, 32)


def test_a_map_is_unpacked_whole_and_lies_are_refused(engine: Engine) -> None:
    draw = random.Random(7)
    lines: Segments = [
        [
            (column, draw.randrange(2), draw.randrange(99_999), draw.randrange(500))
            for column in sorted(draw.sample(range(9_000), draw.randrange(6)))
        ]
        for _ in range(300)
    ]
    names, *unpacked = source_maps.unpacked(source_map(lines)).split("\n")
    assert json.loads(names) == ["../src/sum.ts", "../src/main.ts"]
    assert unpacked == [",".join(":".join(map(str, one)) for one in line) for line in lines]
    for wrong in (
        "", "[]", "{", "[" * 100_000, source_map(LINES, version=2), source_map(LINES, mappings="AAAAAA"),
        source_map(LINES, mappings="g"), source_map(LINES, mappings="AA!A"), source_map(LINES, mappings="ggggggggggC"),
        source_map(LINES, sources=[]), source_map(LINES, mappings="AADA"), source_map(LINES, mappings=";" * 300_000),
        source_map(LINES, mappings="A," * 1_000_001), source_map(LINES, mappings=7), source_map(LINES, sources=["a"] * 6_000),
        source_map([[(0, 0, 10_000_001, 0)]]), source_map([[(0, 0, 0, 10_000_001)]]),
    ):  # fmt: skip
        with pytest.raises(InputError) as refused:
            engine.scripts.put("acme", "wrong", {"main.js": BUNDLE, "main.js.map": wrong})
        assert refused.value.code in ("source_map_invalid", "source_too_large"), wrong[:50]
    with pytest.raises(InputError):
        engine.scripts.put("acme", "wrong", {"main.js": BUNDLE, "lib.js.map": source_map(LINES)})
    for text in ("\ud800", source_map(LINES)[:-1] + "\0}", " " * 1_100_000):
        with pytest.raises(InputError):
            engine.scripts.put("acme", "wrong", {"main.js": BUNDLE, "main.js.map": text})
    large = {"main.js": 'import "../job/x.js";' + BUNDLE, "main.js.map": source_map(LINES) + " " * 500_000}
    engine.scripts.put("acme", "job", {"main.js": BUNDLE, "x.js": ""})
    assert engine.scripts.put("acme", "large", large).uses == {"../job": 1}, "the limit of the source does not count it"
    odd = json.loads(
        source_maps.unpacked(source_map(LINES, sources=["a\nb\x1b[31m", "x" * 5_000], sourceRoot="/r")).split("\n")[0]
    )
    assert odd[0] == "/r/a?b?[31m"
    assert len(odd[1]) == source_maps.MAX_SOURCE_NAME


def test_an_unpacked_map_from_elsewhere_cannot_hurt() -> None:
    """A restored archive may hold any text in its place."""
    error = ScriptError("Error", "x", "    at f (main.js:2:3)\n" * 500, "main.js", 2, 3)
    for text in (
        "",
        "[",
        "{}\n1:2:3:4",
        "[1]\n\n0:0:0:0",
        '["a"]\n\n0:9:0:0',
        '["a"]\n\nx',
        '["a"]\n\n0:0:-5:0',
        '["a"]\n\n0:0',
        '["a"]\n\n' + "0:0:0:0," * 99_999,
    ):
        found = mapped(Verdict(Outcome.SCRIPT_ERROR, error), text).error
        assert found is not None
        assert found.file in ("main.js", "a")
        assert len(found.stack) <= len(error.stack)


def test_a_long_line_is_searched_in_few_steps() -> None:
    places = sorted(random.Random(3).sample(range(900_000), 60_000))
    text = '["a"]\n' + ",".join(f"{at}:0:{at}:0" for at in places)
    columns = [1, places[0], places[0] + 1, *random.Random(4).sample(range(1, 900_000), 40), 900_001]
    stack = "\n".join(f"main.js:1:{column}" for column in columns)
    error = ScriptError("Error", "x", stack, "main.js", 1, 900_001)
    calls = Counter[str]()
    sys.setprofile(lambda _frame, event, _what: calls.update([event]))
    try:
        found = mapped(Verdict(Outcome.SCRIPT_ERROR, error), text).error
    finally:
        sys.setprofile(None)
    assert found is not None
    wanted = [(column, [at for at in places if at < column]) for column in columns]
    assert found.stack.split("\n") == [
        f"a:{before[-1] + 1}:1" if before else f"main.js:1:{column}" for column, before in wanted
    ]
    assert (found.file, found.line) == ("a", places[-1] + 1)
    assert calls.total() < 50 * 17 * 12


def test_the_command_makes_one_file(tmp_path: Path) -> None:
    path = os.environ["PATH"]
    (tmp_path / "main.ts").write_text("export default 1")
    nothing = inside("bundle", str(tmp_path / "main.ts"), "--json", PATH="/nowhere")
    assert (nothing.code, nothing.json["error"]["code"]) == (1, "extra_missing")
    if shutil.which("esbuild") is None:
        pytest.skip("NOT TESTED with esbuild: it is not installed (npm install -g esbuild)")
    (tmp_path / "src" / "deep").mkdir(parents=True)
    (tmp_path / "src" / "deep" / "sum.ts").write_text(
        "// about\nexport function sum(rows: any): number {\n  return rows.nothing.length;\n}\n"
    )
    (tmp_path / "src" / "report.ts").write_text(
        'import { sum } from "./deep/sum.ts";\nimport { parse } from "csv";\nexport default (): number => sum(parse("1,2"));\n'
    )
    said = inside("bundle", str(tmp_path / "src" / "report.ts"), "--out", str(tmp_path / "bundle"), "--json", PATH=path)
    assert set(said.json["files"]) == {"main.js", "main.js.map"}
    error = inside("exec", str(tmp_path / "bundle"), "--json").json["error"]
    assert (error["file"], error["line"], error["column"]) == ("../src/deep/sum.ts", 3, 23)
    (tmp_path / "src" / "report.ts").write_text('import "nowhere-at-all";\nexport default 1')
    said = inside("bundle", str(tmp_path / "src" / "report.ts"), "--out", str(tmp_path / "bundle"), "--json", PATH=path)
    assert (said.code, said.json["error"]["code"]) == (1, "bundle_failed")
    assert "report.ts:1:7" in said.json["error"]["why"]
