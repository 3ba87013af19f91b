"""Limits of a WebAssembly command beside those of every runtime (:mod:`tests.limits`): tables, segments, what a module begins with.

What never ends and what calls itself for ever are attacks of the escape suite (I127 to I129, I132).
"""

from collections.abc import Callable

import pytest
from tests.escape.commands import MIB, Commands, command, no_leaks, wasm

from lodger.sandbox import Outcome

__all__ = ["no_leaks", "wasm"]


def test_segments_do_not_escape_the_memorys_bound(wasm: Commands) -> None:
    passive = '(data $d "' + "x" * 60000 + '")'
    fill = "(loop $l (memory.init $d (i32.const 0) (i32.const 0) (i32.const 60000)) (br $l))"
    assert wasm(command(fill, extra=passive), cpu_ms=100).outcome is Outcome.CPU_LIMIT
    beyond = wasm(command("", extra='(data (i32.const 65530) "0123456789")'))
    assert beyond.outcome is Outcome.SCRIPT_ERROR
    assert beyond.error is not None
    assert "out of bounds memory access" in beyond.error.message


def test_a_command_that_gives_up_with_its_memory_full(wasm: Commands) -> None:
    greedy = "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))"
    for end in ("unreachable", "(call $proc_exit (i32.const 134))"):
        report = wasm(command(greedy + end), memory_bytes=16 * MIB)
        assert report.outcome is Outcome.MEMORY_LIMIT
        assert report.error is not None
        assert "16 MiB" in report.error.message


@pytest.mark.parametrize(
    ("most", "module"),
    [
        (256, lambda pages: command("", memory=f'(memory (export "memory") {pages})')),
        (100_000, lambda elements: command("", extra=f"(table {elements} funcref)")),
        (4, lambda tables: command("", extra="(table 1 funcref)" * tables)),
    ],
    ids=["pages of 16 MiB", "elements of a table", "tables"],
)
def test_a_module_begins_with_at_most(wasm: Commands, most: int, module: Callable[[int], bytes]) -> None:
    outcomes = [wasm(module(most + more), memory_bytes=16 * MIB).outcome for more in (-1, 0, 1)]
    assert outcomes == [Outcome.OK, Outcome.OK, Outcome.MEMORY_LIMIT]


def test_a_table_that_grows(wasm: Commands) -> None:
    grow = "(call $say (i32.eq (i32.const -1) (table.grow $t (ref.null func) (i32.const {}))))"
    found = [wasm(command(grow.format(n), extra="(table $t 0 funcref)")).result for n in (99_999, 100_000, 100_001, -1)]
    assert found == ["0", "0", "1", "1"]
