"""The public names, pinned: adding or losing one is a decision, not an accident."""

import ast
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
        "Bundle", "CallHandler", "Job", "Limits", "Outcome", "Pool", "Report", "ScriptError", "Usage",
    },
    "lodger.stdlib": set(),
}  # fmt: skip


@pytest.mark.parametrize("package", sorted(PUBLIC))
def test_names(package: str) -> None:
    module = import_module(package)
    assert set(getattr(module, "__all__", ())) == PUBLIC[package]
    for name in PUBLIC[package]:
        assert getattr(module, name) is not None


@pytest.mark.parametrize(
    ("without", "code", "said"),
    [
        ("typer", "from lodger.engine.cli import main; main()", "pip install 'lodger[cli]'"),
        ("httpx2", "from lodger.engine.client import Client", "pip install 'lodger[client]'"),
        ("httpx2", "from lodger.engine.client import AsyncClient", "pip install 'lodger[client]'"),
    ],
)
def test_the_base_alone_says_which_extra_is_missing(without: str, code: str, said: str) -> None:
    hidden = f"import sys; sys.path.insert(0, '.'); sys.modules[{without!r}] = None; sys.argv[1:] = ['tenant', 'list']"
    done = subprocess.run([sys.executable, "-c", f"{hidden}; {code}"], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert said in done.stderr


def test_every_public_method_of_a_noun_is_an_operation() -> None:
    """One without the decorator would be on the synchronous engine alone."""
    from inspect import getmembers, isfunction

    from lodger.engine.features import TABLE

    methods = {
        f"{noun}.{name}"
        for noun, kind in TABLE.nouns.items()
        for name, _ in getmembers(kind, isfunction)
        if name[0] != "_"
    }
    assert methods == set(TABLE.operations)
    assert {each.name for each in TABLE.operations.values() if each.declared.local is None} == {
        each.name for each in TABLE.routes
    }


def test_a_new_verb_needs_one_place(tmp_path: Path) -> None:
    """A verb that only the noun declares is on both engines, both clients, the server, the command line and in the reference."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.one_more_verb", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "everywhere"


def test_each_kind_of_event_has_a_class_with_its_details() -> None:
    from typing import get_args

    from lodger.engine.core import events

    assert set(events.CLASSES) == set(get_args(events.EventKind))
    assert set(events.CLASSES.values()) == set(get_args(events.AnyEvent))
    sources = {path: path.read_text() for path in Path(__file__).parents[1].joinpath("engine").rglob("*.py")}
    for path, source in sources.items():
        for node in ast.walk(ast.parse(source)) if re.search(r"\.(_report|event)\(", source) else ():
            publishes = (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in {"_report", "event"}
            )
            if publishes and node.args and getattr(node.args[0], "value", None) in events.CLASSES:
                kind = node.args[0].value
                declared = get_args(events.CLASSES[kind].__orig_bases__[0])[1]
                given = {each.arg for each in node.keywords if each.arg}
                assert given <= set(getattr(declared, "__annotations__", ())), f"{path}: {kind}"
    assert type(events.Event("undelivered", 1)) is events.DeliveredEvent


def test_the_tenant_stands_first_in_every_verb() -> None:
    """In each operation the tenant is the first parameter (behind a transaction), or a keyword."""
    from inspect import Parameter, getmembers, isfunction, signature

    from lodger.engine import aio, client, sync, testing
    from lodger.engine.features import TABLE

    kinds = [*TABLE.nouns.values(), sync.Engine, aio.Engine, client.Client, client.AsyncClient, testing.Stage]
    seen: set[str] = set()
    wrong = []
    for kind in kinds:
        for name, verb in getmembers(kind, isfunction):
            if name[0] == "_" or name in {"carry", "stream"}:
                continue
            given = list(signature(verb).parameters.values())[1:]
            owners = [each for each in given if "tenant" in each.name]
            if owners:
                seen.add(f"{kind.__name__}.{name}")
            for each in owners:
                behind = [before.name for before in given[: given.index(each)]]
                keyword = each.kind is Parameter.KEYWORD_ONLY
                # A column that names the owner of a row is no tenant, and a batch creates many.
                if each.name not in {"tenant_column", "tenants"} and (
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
