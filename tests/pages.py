"""Code blocks of pages, and commands in them."""

from pathlib import Path
from typing import Any

import typer
from tests import guides

from lodger.engine.cli.place import EVERYWHERE


def blocks(language: str, page: Path) -> list[str]:
    return [step.text for step in guides.steps(page.read_text()) if step.language == language]


def parse(commands: Any, words: list[str]) -> None:
    """Read a command line as far as its options go; nothing is carried out."""
    command = commands
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        assert words[0] in command.commands, f"there is no {words[0]}"
        command, words = command.commands[words[0]], words[1:]
    command.make_parser(typer.Context(command)).parse_args(args=[word for word in words if word not in EVERYWHERE])
