"""The author's own line and a caret."""

import pytest

from lodger.engine.core.plain_text import code_frame

SOURCE = "one\n\ttwo three\r\nfour"


def test_line_and_column() -> None:
    assert code_frame(SOURCE, 2, 6) == ["  1 | one", "  2 |  two three", "    |      ^"]


def test_without_a_column_the_first_character_is_shown() -> None:
    assert code_frame(SOURCE, 2, before=0) == ["  2 |  two three", "    |  ^"]


@pytest.mark.parametrize("line", [None, 0, -1, 4, 10**9])
def test_a_line_that_is_not_there(line: int | None) -> None:
    assert code_frame(SOURCE, line, 1) == []


@pytest.mark.parametrize("column", [0, -1, 99])
def test_a_column_that_is_not_there(column: int) -> None:
    assert code_frame(SOURCE, 1, column)[-1] == "    | ^"


def test_a_long_line_is_cut_around_the_place() -> None:
    shown, caret = code_frame("x" * 5000 + "!" + "y" * 5000, 1, 5001)
    assert len(shown) < 120
    assert shown[caret.index("^")] == "!"


def test_escape_sequences_do_not_pass() -> None:
    assert "\x1b" not in "".join(code_frame("a\x1b[2Jb", 1, 1))
