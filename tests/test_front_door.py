"""What an editable installation gives: the front door, files in engine/, and types that mypy and pyright find."""

import re
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

import lodger

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("engine", "sandbox", "stdlib", "escape", "bench")


PROGRAM = """
from lodger.engine.recurrence.parse import parse_rule
from lodger.engine.recurrence.rule import RuleSpec
parse_rule(RuleSpec("every 90s"))
"""


def python(code: str, folder: Path) -> str:
    """Output of a program in a fresh process that knows the tree only by its installation."""
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_bare_name_is_the_synchronous_one() -> None:
    assert lodger.__version__ == version("lodger")
    for kind in (lodger.Engine, lodger.Client):
        assert hasattr(kind, "__enter__")
    for kind in (lodger.AsyncEngine, lodger.AsyncClient):
        assert hasattr(kind, "__aenter__")
    assert set(dir(lodger)) >= {"engine", "__all__"}
    with pytest.raises(AttributeError, match="'lodger' has no attribute 'Motor'"):
        _ = lodger.Motor


def test_the_front_door_alone_loads_no_package(tmp_path: Path) -> None:
    code = "import sys; before = set(sys.modules); import lodger; print(*sorted(set(sys.modules) - before))"
    assert python(code, tmp_path).split() == ["lodger"]


def test_modules_and_tracebacks_name_the_files_of_the_checkout(tmp_path: Path) -> None:
    """Tracebacks, breakpoints and coverage name files as the module and its code objects do."""
    code = (
        "import importlib, pkgutil, traceback, lodger\n"
        f"for package in {PACKAGES}:\n"
        "    found = importlib.import_module(f'lodger.{package}')\n"
        "    print(found.__file__, next(pkgutil.iter_modules(found.__path__, f'lodger.{package}.')).module_finder.path)\n"
        "import lodger.engine.node.node as node\n"
        "print(node.__file__)\n"
        "from lodger.engine.recurrence.parse import parse_rule\n"
        "from lodger.engine.recurrence.rule import RuleSpec\n"
        "try: parse_rule(RuleSpec('FREQ=NEVER'))\n"
        "except Exception as error: print(traceback.extract_tb(error.__traceback__)[-1].filename)"
    )
    *packages, module, frame = python(code, tmp_path).splitlines()
    assert packages == [f"{ROOT}/{package}/__init__.py {ROOT}/{package}" for package in PACKAGES]
    assert module == f"{ROOT}/engine/node/node.py"
    assert frame.startswith(f"{ROOT}/engine/recurrence/")


def test_a_breakpoint_in_engine_is_reached(tmp_path: Path) -> None:
    path = ROOT / "engine/recurrence/parse.py"
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if text.startswith("def parse_rule"))
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    commands = f"break {path}:{line + 1}\ncontinue\nwhere\nquit\n"
    done = subprocess.run(
        [sys.executable, "-m", "pdb", program], input=commands, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert f"Breakpoint 1 at {path}" in done.stdout, done.stdout + done.stderr
    assert f"> {path}(" in done.stdout


USES = """
from lodger import AsyncClient, AsyncEngine, Client, Engine
from lodger.engine.core.events import DeliveredEvent
from lodger.engine.core.settings import Settings


async def use(engine: Engine, later: AsyncEngine, client: Client, asked: AsyncClient, settings: Settings) -> None:
    reveal_type(engine.tenants.create("acme"))
    reveal_type(await later.tenants.create("acme", labels=["a"]))
    reveal_type(client.tenants.create("acme"))
    reveal_type(await asked.tenants.create("acme"))
    reveal_type(await asked.run_in("acme", "job", "5m"))
    async for entry in later.audit.export("acme"):
        reveal_type(entry)
    async for event in later.events():
        if event.kind == "slowed":
            reveal_type(event.details["to_ms"])
        elif isinstance(event, DeliveredEvent):
            reveal_type(event.details["tries"])
    reveal_type(settings.poll_s)
    engine.tenants.create("acme", colour="red")
    client.tenants.get(7)
    asked.tenants.get("acme").id
"""
#: What is wrong in the last three lines: a parameter that does not exist, an argument of another type, a result that is not awaited.
WRONG = {
    "mypy": ["call-arg", "arg-type", "attr-defined"],
    "pyright": ["reportCallIssue", "reportArgumentType", "reportAttributeAccessIssue"],
}


#: What Lodger's own packages use is not checked again.
MYPY = """
[mypy]
strict = True
follow_imports = silent
[mypy-sqlalchemy.*,pydantic.*,fastapi.*,starlette.*,alembic.*,httpx2.*,typer.*,rich.*,opentelemetry.*,cryptography.*,psycopg.*,anyio.*]
follow_imports = skip
"""


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_type_checkers_of_users_find_the_packages(checker: str, tmp_path: Path) -> None:
    """In a project of its own, in the checker's strict mode; verbs are checked with nothing written twice."""
    (tmp_path / "uses.py").write_text(USES)
    if checker == "mypy":
        (tmp_path / "mypy.ini").write_text(MYPY)
        command = ["-m", "mypy", "--cache-dir", str(ROOT / ".mypy_cache" / "of_users")]
    else:
        pytest.importorskip("pyright", reason="NOT TESTED with pyright: it is not installed (pip install pyright)")
        command = ["-m", "pyright", "--pythonpath", sys.executable]
        (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    done = subprocess.run(
        [sys.executable, *command, "uses.py"], cwd=tmp_path, capture_output=True, text=True, timeout=280
    )
    revealed = re.findall(r'(?:Revealed type is|information: Type of .* is) "(?:[\w.]+\.)?(\w+)"', done.stdout)
    assert revealed == [*["Tenant"] * 4, "Action", "AuditEntry", "float", "int", "float"], done.stdout + done.stderr
    refused = re.findall("|".join(WRONG[checker]), done.stdout)
    assert refused == WRONG[checker], done.stdout


def test_every_public_import_of_the_page_exists() -> None:
    page = (Path(__file__).parents[1] / "docs" / "embedding.md").read_text().partition("## Public imports")[2]
    lines = re.findall(r"from (lodger[\w.]*) import ([\w, ]+)", page)
    assert len(lines) > 10
    for module, names in lines:
        for name in names.split(", "):
            assert hasattr(import_module(module), name), f"{module}.{name}"
