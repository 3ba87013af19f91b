"""The operator's list of packages: exact versions with digests, no registry, and everything that the extras ask for."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from tests.deploy.lock_file import ENTRY, LOCK, locked
from tests.e2e.command import ROOT


def test_every_entry_has_a_version_and_digests() -> None:
    rest = re.sub(r"^#.*\n", "", ENTRY.sub("", LOCK), flags=re.MULTILINE)
    assert not rest.strip(), rest
    assert "://" not in LOCK


def test_everything_that_an_operator_needs_is_in_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {name: extra for name, extra in project["optional-dependencies"].items() if name not in {"all", "mcp"}}
    wanted = [*project["dependencies"], *(one for extra in extras.values() for one in extra)]
    found = locked()
    for text in wanted:
        requirement = Requirement(text)
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        assert requirement.specifier.contains(found[name], prereleases=True), text


@pytest.mark.parametrize("package", ["wasmtime", "quickjs-ng", "quickjs-rs"])
def test_what_runs_inside_the_sandbox_is_the_pinned_version(package: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = [*project["dependencies"], *project["optional-dependencies"]["native"]]
    assert f"{package}=={locked()[package]}" in pinned


def test_the_contributors_lock_names_the_public_index_alone() -> None:
    """``uv.lock``, as ``uv lock`` writes it: every package and version that the project asks for, from PyPI."""
    text = (ROOT / "uv.lock").read_text()
    assert set(re.findall(r"\w+://[^/\"]+", text)) == {"https://pypi.org", "https://files.pythonhosted.org"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found = {each["name"]: each.get("version") for each in tomllib.loads(text)["package"]}
    groups = [one for group in project["dependency-groups"].values() for one in group]
    for requirement in map(Requirement, [*project["project"]["dependencies"], *groups]):
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        assert requirement.specifier.contains(found[name], prereleases=True), requirement
