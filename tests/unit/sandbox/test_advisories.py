"""The list of known errors of the engines: complete for what is pinned, and every open one contained."""

import tomllib
from pathlib import Path

import pytest

from lodger.sandbox import advisories
from lodger.sandbox.doctor import Doctor
from lodger.sandbox.runtimes.native_libraries import DIGESTS
from lodger.stdlib import npm_packages

ROOT = Path(__file__).resolve().parents[3]


def test_the_list_is_of_the_pinned_versions() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [
        *project["dependencies"],
        *project["optional-dependencies"]["native"],
        *project["optional-dependencies"]["node"],
    ]
    pinned = dict(each.split("==") for each in needed if "==" in each)
    found = {each.package: each.installed for each in advisories.examine()}
    packages = {f"npm:{name}": about["version"] for name, about in npm_packages.table().items()}
    assert found == pinned | packages
    wheels = {wheel.rsplit(" ", 2)[0] for wheels in DIGESTS.values() for wheel in wheels.values()}
    assert wheels <= {f"{package} {version}" for package, version in pinned.items()}


def test_every_open_error_is_contained() -> None:
    states = advisories.examine()
    assert [state for state in states if state.uncontained] == []
    assert any(state.open for state in states), "the guest has known errors"


def test_an_error_that_nothing_contains_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    new = advisories.Advisory("CVE-2027-1", ("wasmtime",), "an escape", fixed_in="50.0.2")
    monkeypatch.setattr(advisories, "advisories", lambda: (new,))
    (wasmtime, *_) = Doctor.as_json(())["advisories"]["engines"]
    assert (wasmtime["open"], wasmtime["uncontained"]) == (("CVE-2027-1",), ("CVE-2027-1",))


def test_another_version_than_the_listed_one_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advisories, "version", lambda _package: "99.0")
    states = [each for each in advisories.examine() if not each.package.startswith("npm:")]
    assert states
    assert all("unlisted version" in each.uncontained for each in states)
