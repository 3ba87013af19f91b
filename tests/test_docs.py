"""The documentation is held to the code: commands parse, Python and scripts run or compile, links lead somewhere, no code is left out."""

import os
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests import reference_pages
from tests.pages import blocks, parse

from lodger.engine.service.hooks import HOOKS
from lodger.engine.sync import Engine

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")),
    ROOT / "examples" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
#: Pages that tests/test_guides.py carries out.
GUIDES = [page for page in PAGES if page.parent.name in ("how-to", "tutorials")]


@pytest.fixture(scope="module")
def commands() -> Any:
    """Everything that the command line has."""
    return reference_pages.everything()


def test_benchmarks_run_as_their_pages_say() -> None:
    """From the project's folder, with nothing but ``python``: what imports the tests finds them by itself."""
    scripts = {path.name: path.read_text() for path in (ROOT / "bench/developer").glob("*.py")}
    for text in (*scripts.values(), *(page.read_text() for page in PAGES)):
        assert set(re.findall(r"python bench/developer/(\w+\.py)", text)) <= set(scripts)
        assert not re.search(r"PYTHONPATH=\S* python bench", text)
    for name, text in scripts.items():
        uses = text.find("from tests.")
        assert uses < 0 or "sys.path.append(" in text[:uses], f"{name} does not find tests/"


def commands_of(line: str) -> list[list[str]]:
    """Return the words of each command of a line of shell, without its comment."""
    lexer = shlex.shlex(line.partition(" #")[0], posix=True, punctuation_chars=";&|")
    lexer.whitespace_split = True
    found: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set(";&|"):
            found.append([])
        else:
            found[-1].append(word)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_of_a_page_can_be_said(page: Path, commands: Any) -> None:
    for block in blocks("sh", page):
        for line in block.replace("\\\n", " ").splitlines():
            for words in commands_of(line):
                if words and words[0] == "lodger":
                    parse(commands, words[1:])
                elif words and words[0] == "make":
                    assert words[1] in make_targets(), line
    for target in re.findall(r"`make ([a-z]+)", page.read_text()):
        assert target in make_targets(), f"make {target}"
    for said in re.findall(r"`lodger ([a-z][a-z -]*)", page.read_text()):
        first, *rest = said.split()
        assert first in commands.commands, f"lodger {first}"
        found = commands.commands[first]
        if hasattr(found, "commands") and rest and not rest[0].startswith("-"):
            assert rest[0] in found.commands, f"lodger {said}"


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_a_command_that_is_none_is_found(commands: Any) -> None:
    parse(commands, ["tenant", "create", "acme", "--limits", "{}"])
    for wrong in (["tenent", "list"], ["tenant", "lisst"]):
        with pytest.raises(AssertionError):
            parse(commands, wrong)
    with pytest.raises(Exception, match="No such option"):
        parse(commands, ["tenant", "create", "acme", "--limit", "{}"])


def test_python_of_the_pages_compiles_and_what_stands_alone_runs(tmp_path: Path) -> None:
    """A block that begins with its imports runs, in a folder of its own; the others go on from what is told around them."""
    alone = []
    for page in PAGES:
        for number, block in enumerate(blocks("python", page) if page not in GUIDES else ()):
            compile(block, f"{page.name}-{number}", "exec")
            if "import" in block.split("\n", 1)[0] and "sys.stdin" not in block:
                alone.append(f"{page.parent.name}-{page.name}-{number}")
                (tmp_path / alone[-1]).mkdir()
                (tmp_path / alone[-1] / "block.py").write_text(block)
    code = (
        "import os, runpy, sys\nfor each in sys.argv[1:]:\n    os.chdir(each)\n    print(each, file=sys.stderr)\n"
        "    runpy.run_path('block.py', run_name='__main__')\n    os.chdir('..')"
    )
    env = os.environ | {"PYTHONPATH": str(ROOT), "LODGER_SQLITE_SYNCHRONOUS": "NORMAL"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *alone], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=250, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_every_script_of_the_pages_compiles(tmp_path: Path) -> None:
    with Engine.open(str(tmp_path / "ledger.db")) as engine:
        engine.tenants.create("acme")
        for page in PAGES:
            for block in blocks("js", page):
                if re.search(r'from "(testing"|\./|lib:)', block):  # it needs other files: tests/test_guides.py runs it
                    continue
                if "node:" in block:  # of a receiver of webhooks; tests/e2e/test_messages_out.py runs it
                    continue
                source = block if "export default" in block else f"export default async (api) => {{\n{block}\n}}"
                if source != block and re.search(r"^export const", block, re.MULTILINE):  # of a library
                    source = block + "export default () => null;\n"
                checked = engine.scripts.check("acme", source)
                assert checked.ok, f"{page.name}: {checked}\n{block}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in target:
            continue
        place, _, anchor = target.partition("#")
        there = (page.parent / place).resolve() if place else page
        assert there.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", there.read_text(), re.MULTILINE)
            anchors = {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
            assert anchor in anchors, target


def test_every_page_stands_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        if page.name != "index.md":
            assert f"({page.relative_to(ROOT / 'docs')})" in index, page


def test_references_of_docstrings_name_what_exists() -> None:
    """``:class:`lodger.…``` and the like: a module, or a name in one."""
    sources = [path for folder in ("engine", "sandbox", "stdlib", "escape") for path in (ROOT / folder).rglob("*.py")]
    text = "".join(path.read_text() for path in sources)
    found = set(re.findall(r":(?:attr|class|data|exc|func|meth|mod):`~?(lodger\.[\w.]+)`", text))
    assert len(found) > 100
    missing = []
    for name in sorted(found):
        try:
            pkgutil.resolve_name(name)
        except (ImportError, AttributeError) as error:
            missing.append(f"{name}: {error}")
    assert missing == []


def test_hooks_are_told() -> None:
    page = (ROOT / "docs" / "embedding.md").read_text()
    for spec in HOOKS:
        assert f"| `{spec.name}` |" in page


@pytest.mark.parametrize("page", reference_pages.PAGES, ids=lambda page: page.name)
def test_what_is_made_from_the_table_is_up_to_date(page: Path) -> None:
    assert page.read_text() == reference_pages.written(page), "make docs"
