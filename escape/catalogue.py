"""The attack classes of the catalogue (docs/escape-suite.md): titles by number, and chapters."""

import tomllib
from pathlib import Path
from typing import Any

TABLES: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
CHAPTERS: dict[str, str] = {letter: chapter.pop("title") for letter, chapter in TABLES["chapters"].items()}
#: Chapters of classes.
LETTERS: dict[int, str] = {int(number): letter for letter, chapter in TABLES["chapters"].items() for number in chapter}
CLASSES: dict[int, str] = {number: TABLES["chapters"][letter][str(number)] for number, letter in LETTERS.items()}


def title(number: int) -> str:
    """Return the title of a class."""
    return CLASSES.get(number, f"class {number}")
