"""A source is parsed before it is stored, in real walls: what cannot run is refused with its line, and a bomb is its own tenant's alone."""

import errno
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.command import inside

from lodger.engine.core.errors import InputError
from lodger.engine.core.settings import Settings
from lodger.engine.service.checks.source_check import MIN_CPU_MS, SourceCheck
from lodger.engine.sync import Engine
from lodger.sandbox import syntax_check
from lodger.sandbox.job import Bundle, Job
from lodger.sandbox.limits import Limits
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.pool import Pool
from lodger.sandbox.source_faults import explained
from lodger.sandbox.syntax_check import SyntaxChecker

#: Ends what it would stand in, and loops for ever where modules are evaluated.
BREAKOUT = "}} for (;;) {} {{"


def settings(**more: Any) -> Settings:
    return Settings(**{"sqlite_synchronous": "NORMAL", "check_scripts": True, **more})


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine.open(tmp_path / "ledger.db", settings=settings()) as opened:
        opened.tenants.create("acme")
        opened.tenants.create("other")
        yield opened


def test_what_cannot_run_is_refused_with_its_line_and_nothing_is_stored(engine: Engine) -> None:
    lib = {"main.js": "import { f } from './lib.js';\nexport default f", "lib.js": "export const f =\n\n  1 +;\n"}
    for source, file, line, column, shown in (
        ("export default () => {\n  return 1 +;\n}", "main.js", 2, 13, "  return 1 +;"),
        ("const a = ;", "main.js", 1, 11, "const a = ;"),
        ("export default () => {\n  return 1", "main.js", 2, 11, "  return 1"),
        ("const a = 1;\nif (a {\n}", "main.js", 2, None, "if (a {"),
        (lib, "lib.js", 3, 6, "  1 +;"),
        ("import './nowhere.js';\nexport default 1", "main.js", 1, 9, "import './nowhere.js';"),
    ):
        with pytest.raises(InputError) as refused:
            engine.scripts.put("acme", "job", source)  # type: ignore[arg-type]  # text or files
        assert refused.value.code == "source_refused"
        found = refused.value.as_dict()
        assert (found["file"], found["line"], found["column"], found["source_line"]) == (
            file,
            line,
            column,
            shown,
        ), found
        assert f"{file}, line {line}" in refused.value.what
        assert shown.strip() in refused.value.why
    assert engine.scripts.list("acme") == []
    assert engine.audit.list("acme", verb="scripts.") == []


def test_what_could_run_is_stored_and_the_same_again_is_not_read_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = engine.scripts.put("acme", "job", "return 1")
    assert (made.version, made.unchecked) == (1, None)
    monkeypatch.setattr(type(engine.scripts.source_check), "problem", lambda *_given: pytest.fail("it was read again"))
    assert engine.scripts.put("acme", "job", "return 1").version == 1


def test_force_stores_it_unread_and_the_log_says_so(engine: Engine) -> None:
    made = engine.scripts.put("acme", "job", "return 1 +;", force=True)
    assert (made.version, made.unchecked) == (1, "the check was skipped with force")
    assert not engine.scripts.source_check.reader.warm, "nobody was asked"
    (entry,) = engine.audit.list("acme", verb="scripts.put")
    assert isinstance(entry.after, dict)
    assert entry.after["unchecked"] == "the check was skipped with force"


def test_where_no_worker_can_be_had_it_is_stored_and_said(tmp_path: Path) -> None:
    nowhere = tmp_path / "file"
    nowhere.write_text("no folder")
    for broken, said in (({"cache_dir": nowhere}, True), ({"check_scripts": False}, False)):
        with Engine.open(tmp_path / f"{said}.db", settings=settings(**broken)) as engine:
            engine.tenants.create("acme")
            made = engine.scripts.put("acme", "job", "return 1 +;")
            assert made.version == 1
            assert bool(made.unchecked) is said, "what the operator has turned off is no news"


def test_a_host_without_processes_or_descriptors_stores_it_and_says_so(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(_self: object) -> None:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(Pool, "start", none_left)
    made = engine.scripts.put("acme", "job", "return 1 +;")
    assert made.unchecked == "no worker process is free: [Errno 11] Resource temporarily unavailable"


def test_bombs_are_refused_behind_the_walls_and_the_next_is_read(engine: Engine) -> None:
    began = time.process_time()
    for source, codes in (
        ("return " + "[" * 100_000, {"source_refused", "source_too_costly"}),
        ("return " + "(" * 100_000 + "1" + ")" * 100_000, {"source_refused", "source_too_costly"}),
        ("return /" + "(a|" * 30_000, {"source_refused", "source_too_costly"}),
        ("return `${" * 20_000, {"source_refused", "source_too_costly"}),
        ("return " + "a=>" * 60_000, {"source_refused", "source_too_costly"}),
        (BREAKOUT, {"source_too_costly"}),
    ):
        with pytest.raises(InputError) as refused:
            engine.scripts.put("acme", "job", source)
        assert refused.value.code in codes, source[:30]
        assert len(str(refused.value.as_dict())) < 3000, "a bomb's line is not said back whole"
    # Its own limit, not the tenant's: storing a script takes no longer than that.
    assert f"its {MIN_CPU_MS} ms of CPU time" in refused.value.why
    assert time.process_time() - began < 5, "none of it was this process's work"
    assert engine.scripts.put("acme", "job", "return 1").unchecked is None
    # Long, and harmless.
    assert engine.scripts.put("acme", "long", "return /" + "a" * 200_000 + "/").unchecked is None


#: Odd ones: each is read in one of the runtime's ways, or in none.
ODD = [
    "const text = `\nimport this\n`;\nreturn text",
    "const text = `\nexport this\n`;\nreturn text",
    "// export nothing\nreturn 1",
    "let export_ = 1; return export_",
    "return 'export default'",
    "export const a = 1",
    "export default async () => { await import('./x.js') }",
    "await 1",
    "for await (const x of []) {}",
    "#!/usr/bin/env node\nexport default () => 1",
    "#!/x\nreturn 2",
    "\ufeffexport default () => 1",
    "\ufeffreturn 1",
    "'use strict'; return 010",
    "with ({}) {}",
    "function f(){}; function f(){}; return f",
    "const {a, ...b} = {}; return b",
    "yield 1",
    "super.x",
    "new.target",
    "import.meta.url",
    "return import.meta",
    "class A { m() { return this.#y } }",
    "a ?? b || c",
    "'\\u{110000}'",
    "/(?<n>a)(?<n>b)/",
    "/[/",
    "`${`",
    "export { x }",
    "export { x as default }; const x = () => 1",
    "export * from './lib.js'",
    "import { q } from 'lodger:x'\nexport default q",
    "}",
    "}}",
    "}} {{",
    "}}; export const z = 1; {{",
    "return 1}} function g(){{",
    "<!-- html\nreturn 1",
    "await = 1",
    "enum X {}",
    "const x: number = 1; return x",
    "export default () => <div/>",
    "delete x",
    "if (1) function f(){}",
    "using x = 1",
    "return /*",
    "return 'a\nb'",
    'return "a\u2028b"',
]


#: Read, and never begun.
UNBEGUN = ("throw new Error('no data today')", "#!/x\nthrow new Error('no data today')", "#!/x\nfor (;;);")


def test_the_check_and_the_run_agree_on_what_can_be_read_and_the_check_begins_nothing() -> None:
    check = SourceCheck(settings())
    try:
        for text in ODD:
            problem = check.problem("acme", {"main.js": text}, Limits())
            ended = check.reader.read(Job(Bundle({"main.js": text}), limits=Limits(), tenant="acme"))
            assert (problem is not None) is (ended.outcome is Outcome.COMPILE_ERROR), (text, problem, ended.error)
            if problem is not None and ended.error is not None:
                ran = explained(ended.error, {"main.js": text})
                assert ran, text
                assert (problem.message, problem.line) == (ran.message, ran.line), text
        for text in UNBEGUN:
            assert check.problem("acme", {"main.js": text}, Limits()) is None
    finally:
        check.close()


def test_the_command_line_shows_the_line(tmp_path: Path) -> None:
    script = tmp_path / "job.js"
    script.write_text("export default () => {\n\treturn 1 +;\n}\n")
    there = {"LODGER_DATABASE": str(tmp_path / "ledger.db"), "LODGER_CHECK_SCRIPTS": "true"}
    assert inside("tenant", "create", "acme", **there).code == 0
    said = inside("script", "put", "acme", "job", script, **there)
    assert (said.code, said.out) == (1, "")
    assert "job.js, line 2, column 12: SyntaxError" in said.err
    assert "\n  2 |  return 1 +;\n    |            ^\n" in said.err
    refused = inside("script", "put", "acme", "job", script, "--json", **there).json["error"]
    assert (refused["code"], refused["line"]) == ("source_refused", 2)
    stored = inside("script", "put", "acme", "job", script, "--force", **there)
    assert "version 1" in stored.out
    assert "the check was skipped with force" in stored.out


def pool() -> Pool:
    return Pool(size=1, cores=1)


def outcome_of(reader: SyntaxChecker, text: str, tenant: str = "acme", ms: int = 100) -> Outcome:
    limits = Limits(cpu_ms=ms, wall_ms=30_000)
    return reader.read(Job(Bundle({"main.js": text}), limits=limits, tenant=tenant)).outcome


def test_the_workers_go_when_nobody_comes_and_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syntax_check, "IDLE_S", 0.0)
    reader = SyntaxChecker(pool)
    try:
        for _ in range(2):
            assert outcome_of(reader, "return 1") is Outcome.OK
            while reader.warm:
                time.sleep(0.01)  # the test's own time limit ends a wait in vain
        assert outcome_of(reader, "return 1 +") is Outcome.COMPILE_ERROR
    finally:
        reader.close()


def test_none_is_lost_between_going_and_coming_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syntax_check, "IDLE_S", 0.0005)
    reader = SyntaxChecker(pool)
    ended: list[Outcome] = []

    def ask(tenant: str) -> None:
        ended.extend(outcome_of(reader, "return 1", tenant) for _ in range(10))

    threads = [threading.Thread(target=ask, args=(f"t{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reader.close()
    reader.close()
    assert ended == [Outcome.OK] * 40
    with pytest.raises(Exception, match="closed"):
        outcome_of(reader, "return 1")


def test_one_tenants_bombs_hold_up_nobody_else_and_end_with_the_reader() -> None:
    reader = SyntaxChecker(pool)
    with ThreadPoolExecutor(3) as crowd:
        bombs = [crowd.submit(outcome_of, reader, "for (;;) {}", "acme", 30_000) for _ in range(3)]
        assert outcome_of(reader, "return 1", "other") is Outcome.OK
        assert not any(bomb.done() for bomb in bombs), "a stranger waited for them"
        reader.close()
        answer = [bomb.exception() for bomb in bombs]
    assert [getattr(each, "code", None) for each in answer] == ["pool_stopped"] * 3


def test_a_module_with_nothing_to_call_is_refused_and_never_begun(engine: Engine) -> None:
    lib = "export const f = () => 1; for (;;) {}"
    for source, line in (
        ("export const run = () => 1; for (;;) {}", 1),
        ({"main.js": "import { f } from './lib.js';\n\nexport { f };", "lib.js": lib}, 3),
        ({"main.js": "export * from './lib.js'", "lib.js": lib}, 1),
    ):
        with pytest.raises(InputError) as refused:
            engine.scripts.put("acme", "job", source)
        assert (refused.value.code, refused.value.details["line"]) == ("source_refused", line)
        assert "export default" in refused.value.what
    for source in (
        {"main.js": "import { f } from './lib.js';\nf()", "lib.js": lib},
        {"main.js": "export { f as default } from './lib.js'", "lib.js": lib},
    ):
        assert engine.scripts.put("acme", "job", source).unchecked is None


def test_a_default_export_that_is_no_function_is_refused(engine: Engine) -> None:
    for source, line in (
        ("export default 5", 1),
        ("// settings\nexport default { days: 7, run() {} };", 2),
        ("\n\nexport default class {}", 3),
    ):
        (problem,) = engine.scripts.check("acme", source).problems
        with pytest.raises(InputError) as refused:
            engine.scripts.put("acme", "job", source)
        assert (refused.value.code, refused.value.details["line"], problem.line) == ("source_refused", line, line)
        assert "write export default async" in refused.value.what + refused.value.why
    made = engine.scripts.put(
        "acme", "job", {"main.js": "import d from './d.js'\nexport default () => d", "d.js": source}
    )
    assert made.unchecked is None


def test_what_the_runtime_would_misexecute_is_refused(engine: Engine) -> None:
    files = {
        "main.js": "import { f } from './lib.js';\nexport default f",
        "lib.js": "\nexport const f = () => /\\p{L}/v.test('a')",
    }
    with pytest.raises(InputError) as refused:
        engine.scripts.put("acme", "job", files)
    assert (refused.value.code, refused.value.details["file"], refused.value.details["line"]) == (
        "source_refused",
        "lib.js",
        2,
    )
    for text in ("return /(?i:a)b/.test('Ab')", "return /(?<y>a)|(?<y>b)/.exec('b').groups.y"):
        with pytest.raises(InputError):
            engine.scripts.put("acme", "job", text)
    assert engine.scripts.put("acme", "job", "return /\\p{L}/u.test('a') / 1 /1").unchecked is None
