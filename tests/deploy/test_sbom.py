"""The bill of materials of a release names what is installed and what runs inside the sandbox, with digests; changed files do not run."""

import hashlib
import importlib.util
import json
import shutil
from pathlib import Path
from types import ModuleType

import pytest
from tests.deploy.lock_file import digests
from tests.e2e.command import ROOT, lodger

from lodger.sandbox.runtimes.js.artefact import find_guest, find_library
from lodger.sandbox.runtimes.native_libraries import find_binding


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def change_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.fixture(scope="module")
def sbom() -> ModuleType:
    pytest.importorskip(
        "cyclonedx_py", reason="NOT TESTED with cyclonedx-bom: it is not installed (pip install cyclonedx-bom)"
    )
    spec = importlib.util.spec_from_file_location("sbom", ROOT / "deploy" / "sbom.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_bill_names_every_package_of_the_lock_and_every_file_inside_the_sandbox(sbom: ModuleType) -> None:
    bill = sbom.bill()
    # Each URL takes the schema's check a twentieth of a second, and components of one kind have the same fields.
    sbom.check(bill | {"components": bill["components"][::10]})
    listed = {
        (each["name"], each.get("version")): {
            found["content"] for place in each.get("externalReferences", []) for found in place.get("hashes", [])
        }
        for each in bill["components"]
    }
    assert digests()
    for package, wanted in digests().items():
        assert listed[package] == wanted, package
    text = str(bill)
    npm = [path for path in (ROOT / "stdlib" / "npm").rglob("*") if path.is_file()]
    assert npm
    for path in (find_library(), find_binding(), find_guest(), *npm):
        assert sha256(path) in text, path
    # A bill that breaks the schema is refused.
    first = bill["components"][0]
    first.pop("name")
    with pytest.raises(ValueError, match="'name' is a required property"):
        sbom.check(bill | {"components": [first]})


def test_packages_inside_of_packages_have_their_own_names(sbom: ModuleType, tmp_path: Path) -> None:
    about = {"version": "1.2.3", "integrity": "sha512-AAAA", "license": "MIT"}
    paths = [
        "",
        "node_modules/a",
        "node_modules/a/node_modules/@b/c",
        "node_modules/a/node_modules/known",
        "node_modules/@types/a",
    ]
    (tmp_path / "package-lock.json").write_text(json.dumps({"packages": dict.fromkeys(paths, about)}))
    found = [(each["name"], each["purl"]) for each in sbom.bundled(tmp_path, {"known"})]
    assert found == [("a", "pkg:npm/a@1.2.3"), ("@b/c", "pkg:npm/%40b/c@1.2.3")]


def test_a_guest_with_another_byte_is_not_baked(tmp_path: Path) -> None:
    package = find_guest().parent
    shutil.copytree(package, tmp_path / package.name)
    change_a_byte(tmp_path / package.name / find_guest().name)
    said = lodger(
        "exec",
        "-",
        "--json",
        stdin="return 1;",
        PYTHONPATH=f"{tmp_path}:{ROOT}",
        XDG_CACHE_HOME=str(tmp_path / "cache"),
    )
    assert said.code == 1
    assert said.json["error"]["code"] == "bake_failed"
    assert not list((tmp_path / "cache").rglob("realm.cwasm"))


def test_a_file_of_an_npm_package_with_another_byte_is_refused(tmp_path: Path) -> None:
    for name in ("npm_packages.py", "npm_packages.toml"):
        shutil.copy2(ROOT / "stdlib" / name, tmp_path)
    shutil.copytree(ROOT / "stdlib" / "npm", tmp_path / "npm")
    spec = importlib.util.spec_from_file_location("copied_packages", tmp_path / "npm_packages.py")
    assert spec is not None
    assert spec.loader is not None
    packages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(packages)
    packages.check()
    change_a_byte(next((tmp_path / "npm" / "temporal-polyfill").rglob("*.js")))
    with pytest.raises(packages.PackageBroken, match="is not the file of"):
        packages.check()
