"""Each how-to guide and tutorial is carried out: its files, commands and Python in order, on a real ledger with real workers."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.guides import Guide, steps

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted((ROOT / "docs" / "how-to").glob("*.md")) + sorted((ROOT / "docs" / "tutorials").glob("*.md"))
#: What guides begin with, besides an empty folder; tutorials begin with nothing.
INDEX = (ROOT / "docs" / "index.md").read_text().partition("\n## How-to guides\n")[2].partition("\n## ")[0]
FIRST_STEPS = "[These steps](../index.md#how-to-guides) come first"


def own_tests(page: Path) -> list[str]:
    """Return the tests that a guide names as its own: it needs other programs, and is not carried out here."""
    return re.findall(r"`(tests/[\w/.]+)`", page.read_text())


@contextmanager
def guide_in(folder: Path) -> Iterator[Guide]:
    """A guide that is carried out in a folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("COLUMNS", "200")
        patch.setenv("LODGER_PROFILES", str(folder / "profiles.toml"))
        patch.setenv("LODGER_SQLITE_SYNCHRONOUS", "NORMAL")
        before = dict(os.environ)
        yield Guide(folder)
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture(scope="session")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder after the first steps, which guides begin with a copy of."""
    folder = tmp_path_factory.mktemp("begun")
    with guide_in(folder) as guide:
        guide.play(INDEX)
    return folder


@pytest.fixture
def guide(tmp_path: Path) -> Iterator[Guide]:
    """A guide in an empty folder."""
    with guide_in(tmp_path) as guide:
        yield guide


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_guide(page: Path, guide: Guide, begun: Path) -> None:
    if names := own_tests(page):
        assert [name for name in names if not (ROOT / name).exists()] == []
        return
    if FIRST_STEPS in page.read_text():
        shutil.copytree(begun, guide.folder, dirs_exist_ok=True)
    guide.play(page.read_text())
    assert guide.carried_out, "no block of this guide is carried out; let it name its test (`tests/…`)"
    assert guide.compared, "the guide shows no output"


def test_a_wrong_output_is_found(guide: Guide, begun: Path) -> None:
    shutil.copytree(begun, guide.folder, dirs_exist_ok=True)
    page = "```sh\nlodger schedule list acme\n```\n```text\n{}\n```\n"
    guide.play(page.format("none"))
    with pytest.raises(AssertionError, match="the page shows"):
        guide.play(page.format("two schedules"))


def test_a_failing_command_is_found(guide: Guide) -> None:
    guide.play("```sh\nlodger tenant show nobody  # exit code 1\n```\n")
    with pytest.raises(AssertionError, match="ended with 1"):
        guide.play("```sh\nlodger tenant show nobody\n```\n")


def test_blocks_of_a_list_are_read() -> None:
    (step,) = steps('1. Write it:\n\n   ```js title="a.js"\n   export default () => 1;\n   ```\n')
    assert (step.language, step.title, step.text) == ("js", "a.js", "export default () => 1;\n")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_form_of_a_guide(page: Path) -> None:
    """A guide is short, says when to use it, and leads on."""
    text = page.read_text()
    assert text.startswith("# ")
    if page.parent.name == "how-to" and not own_tests(page):
        assert len(text.splitlines()) <= 120
        assert "\n## See also\n" in text
        assert FIRST_STEPS in text
