"""Errors as people and programs see them."""

import json
import sqlite3
import sys
import unicodedata

import pytest
from sqlalchemy.exc import OperationalError

from lodger.engine.core.errors import InputError, Unavailable, Usage
from lodger.engine.core.plain_text import visible
from lodger.engine.output.failure import described, tell, under
from lodger.sandbox.errors import WallUnavailable


def test_one_renderer_for_every_error_that_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    texts = ("what", "because", "do this")
    for error in (
        InputError.told("a_code", *texts),
        Unavailable.told("a_code", *texts),
        WallUnavailable("a_code", "what", why="because", fix="do this"),
    ):
        assert tell(error, as_json=False) == 1
        said = capsys.readouterr()
        assert (said.out, said.err) == ("", "error: what  [a_code]\n  why: because\n  fix: do this\n")
        assert tell(error, as_json=True) == 1
        assert json.loads(capsys.readouterr().out)["error"] == {
            "code": "a_code", "message": "what", "why": "because", "fix": "do this",
        }  # fmt: skip


def test_wrong_usage_ends_with_two() -> None:
    assert tell(Usage("no_case"), as_json=True) == 2


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("file is not a database", "not_a_database"),
        ("attempt to write a readonly database", "database_read_only"),
        ("database or disk is full", "disk_full"),
        ("database is locked", "database_busy"),
        ("something new", "database_error"),
    ],
)
def test_what_sqlite_says_is_translated(words: str, code: str) -> None:
    error = OperationalError("SELECT 1", {}, sqlite3.OperationalError(words))
    assert described(error)["code"] == code
    assert described(error)["fix"]


def test_an_unexpected_error_is_called_a_bug() -> None:
    try:
        {}["absent"]
    except KeyError as error:
        body = described(error)
    assert body["code"] == "internal_error"
    assert "test_failure.py" in body["why"]
    assert "bug in Lodger" in body["fix"]


def test_a_system_error_names_the_file() -> None:
    assert "'/some/file'" in described(PermissionError(13, "Permission denied", "/some/file"))["message"]


def test_a_deadline_is_no_error_of_a_file() -> None:
    try:
        raise TimeoutError
    except TimeoutError as error:
        body = described(error)
    assert body["code"] == "internal_error"
    assert "TimeoutError" in body["message"]


def test_the_caret_stands_beneath_the_character() -> None:
    text, caret = under("FREQ=DALY", 5).split("\n")
    assert text[caret.index("^")] == "D"
    text, caret = under("x" * 500 + "!", 500).split("\n")
    assert text[caret.index("^")] == "!"


def test_no_character_without_a_glyph_reaches_a_terminal() -> None:
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if character not in "\n\t" and unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            assert visible(character).isascii(), hex(code)
            assert visible(character).isprintable(), hex(code)
            assert json.loads(f'"{visible(character)}"') == character
    tagged = "ok\U000e0069\U000e0067\u200b\u2028\u2029\u2066"
    assert visible(tagged) == "ok\\udb40\\udc69\\udb40\\udc67\\u200b\\u2028\\u2029\\u2066"
    characters = "é😀 שלום नमस्ते 日本語"
    assert visible(characters) == characters


def test_the_caret_stands_beneath_the_character_after_an_escape() -> None:
    text, caret = under("a\u200bb!", 3).split("\n")
    assert text[caret.index("^")] == "!"
