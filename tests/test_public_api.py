"""The public names, pinned: adding or losing one is a decision, not an accident."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

PUBLIC = {
    "lodger.engine": {"Engine"},
    "lodger.engine.client": {"AsyncClient", "Client"},
    "lodger.engine.testing": {"FakeClock", "Sent", "Stage"},
    "lodger.sandbox": {
        "Bundle",
        "Host",
        "Job",
        "Limits",
        "Outcome",
        "Pool",
        "Report",
        "ScriptError",
        "Usage",
    },
    "lodger.stdlib": set(),
}


@pytest.mark.parametrize("package", sorted(PUBLIC))
def test_names(package: str) -> None:
    module = import_module(package)
    assert set(getattr(module, "__all__", ())) == PUBLIC[package]
    for name in PUBLIC[package]:
        assert getattr(module, name) is not None


def test_the_worker_imports_nothing_heavy() -> None:
    """A worker's package import may not drag the parent side along: each module makes every fork dearer."""
    code = "import sys; sys.path.insert(0, sys.argv[1]); import lodger.sandbox.frames; print(*sorted(sys.modules))"
    out = subprocess.run(
        [sys.executable, "-I", "-S", "-E", "-c", code, ".dev"], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {
        "typing",
        "enum",
        "dataclasses",
        "asyncio",
        "threading",
        "json",
        "msgspec",
        "wasmtime",
        "logging",
        "random",
    }
    assert not heavy & set(out)


@pytest.mark.parametrize(
    ("without", "code", "said"),
    [
        ("typer", "from lodger.engine.cli import main; main()", "pip install 'lodger[cli]'"),
        ("httpx2", "from lodger.engine.client import Client", "pip install 'lodger[client]'"),
        ("httpx2", "from lodger.engine.client import AsyncClient", "pip install 'lodger[client]'"),
    ],
)
def test_the_base_alone_says_which_extra_is_missing(without: str, code: str, said: str) -> None:
    hidden = (
        f"import sys; sys.path.insert(0, '.dev'); sys.modules[{without!r}] = None; sys.argv[1:] = ['tenant', 'list']"
    )
    done = subprocess.run([sys.executable, "-c", f"{hidden}; {code}"], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert said in done.stderr


def test_a_new_verb_is_asked_everywhere() -> None:
    """A verb of the engine stands in five places, or says why not: without one of them half of its users miss it.

    The nouns for asyncio (engine/service/async_nouns.py), the routes (engine/service/operations/table.py), the audit's
    table (tests/store/test_audit.py), the walk over engine and server
    (tests/api/every_verb.py), the command line (its noun in engine/cli). A failure names the place.
    """
    from inspect import getmembers, isfunction

    from tests.api import test_route_table
    from tests.store import test_audit

    from lodger.engine.service import async_nouns
    from lodger.engine.service import engine as sync
    from lodger.engine.service.nouns.noun import Verbs
    from lodger.engine.service.operations.table import NOT_HERE, NOUNS, ROUTES

    of_engine = {name for name, kind in vars(sync).items() if isinstance(kind, type) and issubclass(kind, Verbs)}
    assert {kind.__name__ for kind in NOUNS.values()} == of_engine, "NOUNS of engine/service/operations/table.py"
    verbs = {
        f"{noun}.{verb}" for noun, kind in NOUNS.items() for verb, _ in getmembers(kind, isfunction) if verb[0] != "_"
    }
    assert {route.name for route in ROUTES} | set(NOT_HERE) == verbs, "engine/service/operations/table.py"
    assert set(test_audit.CHANGES) | test_audit.READS | test_audit.UNLOGGED == verbs, "tests/store/test_audit.py"
    walked = set(re.findall(r'said\(\s*"([\w.]+)"', (Path(__file__).parent / "api" / "every_verb.py").read_text()))
    assert verbs - set(NOT_HERE) <= walked <= verbs, "tests/api/every_verb.py"
    in_paths = {name for route in ROUTES for name in re.findall(r"{(\w+)}", route.path)}
    assert in_paths == set(test_route_table.NAMES), "NAMES of tests/api/test_route_table.py"
    for noun, kind in NOUNS.items():
        shell = getattr(async_nouns, kind.__name__)
        mine = {verb.partition(".")[2] for verb in verbs if verb.startswith(f"{noun}.")} - {"put_handler"}
        assert mine <= set(vars(shell)), "engine/service/async_nouns.py"


def test_the_tenant_stands_first_in_every_verb() -> None:
    """Whoever knows one verb knows where the others want to be told whose: first (behind a transaction), or by name alone."""
    from inspect import Parameter, getmembers, isfunction, signature

    from lodger.engine import client, sync, testing
    from lodger.engine.service import async_engine
    from lodger.engine.service.operations.table import NOUNS

    kinds = [*NOUNS.values(), sync.Engine, async_engine.Engine, client.Client, client.AsyncClient, testing.Stage]
    seen: set[str] = set()
    wrong = []
    for kind in kinds:
        for name, verb in getmembers(kind, isfunction):
            if name[0] == "_" or name in {"carry", "stream"}:
                continue
            given = list(signature(verb).parameters.values())[1:]
            whose = [each for each in given if "tenant" in each.name]
            if whose:
                seen.add(f"{kind.__name__}.{name}")
            for each in whose:
                behind = [before.name for before in given[: given.index(each)]]
                keyword = each.kind is Parameter.KEYWORD_ONLY
                # A column that says whose a row is, is no tenant.
                if each.name != "tenant_column" and (
                    each.name != "tenant_id" or not (keyword or behind in ([], ["connection"]))
                ):
                    wrong.append(f"{kind.__module__}.{kind.__name__}.{name}{signature(verb)}")
    assert not wrong
    assert {
        "Actions.run_now",
        "Actions.get",
        "Tokens.create",
        "Engine.live",
        "Client.run_at",
        "Engine.record_changed",
    } <= seen
