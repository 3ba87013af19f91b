"""Write the bill of materials of a release, CycloneDX JSON: python deploy/sbom.py FILE. Run by `make release`.

It names every package of deploy/requirements.lock with its digests, and every file of others that runs inside the sandbox.
"""

import base64
import json
import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from lodger.sandbox.runtimes.js.guest import GUEST_SHA256
from lodger.sandbox.runtimes.native_libraries import DIGESTS

ROOT = Path(__file__).resolve().parent.parent


def of_the_lock() -> dict[str, Any]:
    """Return the bill of the lock file."""
    command = [sys.executable, "-m", "cyclonedx_py", "requirements", "--output-reproducible", "--no-validate"]
    places = ["--pyproject", str(ROOT / "pyproject.toml"), str(ROOT / "deploy" / "requirements.lock")]
    done = subprocess.run([*command, *places], check=True, stdout=subprocess.PIPE)
    return dict(json.loads(done.stdout))


def inside_the_sandbox() -> list[dict[str, Any]]:
    """Return the components that are not packages of the lock: native libraries, the guest, and files of npm packages."""
    found = [
        _file(f"{library} of {wheel}", library, digest)
        for library, wheels in DIGESTS.items()
        for digest, wheel in wheels.items()
    ]
    found.append(_file("_guest.wasm", "_guest.wasm", GUEST_SHA256))
    listed = tomllib.loads((files("lodger.stdlib") / "npm_packages.toml").read_text("utf-8"))
    for name, about in listed.items():
        package = {
            "type": "library",
            "bom-ref": f"npm-{name}",
            "name": name,
            "version": about["version"],
            "purl": f"pkg:npm/{name}@{about['version']}",
            "hashes": [
                {"alg": "SHA-512", "content": base64.b64decode(about["integrity"].removeprefix("sha512-")).hex()}
            ],
            "licenses": [{"license": {"id": about["licence"]}}],
            "components": [_file(f"{name} {path}", path, digest) for path, digest in about["files"].items()],
        }
        found.append(package)
    return found


def bundled(folder: Path, known: set[str]) -> list[dict[str, Any]]:
    """Return the components of a lock file of npm's that are bundled and not known, without the tools that bundle them, and types."""
    lock = json.loads((folder / "package-lock.json").read_text("utf-8"))
    return [
        {
            "type": "library",
            "bom-ref": f"npm-{path.removeprefix('node_modules/')}",
            "name": name,
            "version": about["version"],
            "purl": f"pkg:npm/{name.replace('@', '%40')}@{about['version']}",
            "hashes": [
                {"alg": "SHA-512", "content": base64.b64decode(about["integrity"].removeprefix("sha512-")).hex()}
            ],
            "licenses": [{"license": {"id": about["license"]}}],
        }
        for path, about in lock["packages"].items()
        if (name := path.rpartition("node_modules/")[2]) not in ("", *known)
        and "esbuild" not in path
        and "@types" not in path
    ]


def _file(ref: str, name: str, digest: str) -> dict[str, Any]:
    return {"type": "file", "bom-ref": ref, "name": name, "hashes": [{"alg": "SHA-256", "content": digest}]}


def bill() -> dict[str, Any]:
    """Return the whole bill: Lodger depends on all of it."""
    bom = of_the_lock()
    bom["components"] += inside_the_sandbox()
    for folder in (ROOT / "stdlib" / "packages", ROOT / "engine" / "web" / "bundle"):
        bom["components"] += bundled(folder, {each["name"] for each in bom["components"]})
    root = bom["metadata"]["component"]["bom-ref"]
    refs = sorted(each["bom-ref"] for each in bom["components"])
    bom["dependencies"] = [{"ref": root, "dependsOn": refs}, *({"ref": ref} for ref in refs)]
    return bom


def check(bom: dict[str, Any]) -> None:
    """Raise ValueError if a bill is not valid by the schema of CycloneDX."""
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(bom))
    if error is not None:
        raise ValueError(str(error))


if __name__ == "__main__":
    BILL = bill()
    check(BILL)
    Path(sys.argv[1]).write_text(json.dumps(BILL, indent=1, sort_keys=True) + "\n")
