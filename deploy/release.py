"""Build Lodger's sdist and wheel and try the wheel in clean environments: python deploy/release.py package|release.

Needs the group ``dev``. ``release`` also tries each Python from 3.11 to 3.14 that is on this machine, and writes SBOM and digests.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
#: Imports each package and reads a file of one.
_PROBE = (
    "import importlib.resources as r, lodger.bench, lodger.engine, lodger.escape, lodger.sandbox, lodger.stdlib;"
    "js = [f for f in (r.files('lodger.stdlib') / 'js').iterdir() if f.name.endswith('.js')];"
    "assert js and js[0].read_text(); from lodger import Engine, AsyncEngine, __version__; print(__version__, len(js), 'scripts')"
)


def run(*command: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None) -> None:
    """Run a command, or end this program with its exit code."""
    print("·", " ".join(str(part) for part in command), flush=True)
    code = subprocess.call([str(part) for part in command], cwd=cwd, env=env)
    if code:
        sys.exit(code)


def build(folder: Path = DIST) -> Path:
    """Build the sdist, and from it the wheel; return the wheel."""
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    (wheel,) = folder.glob("*.whl")
    return wheel


def try_wheel(python: str, wheel: Path, clean: Path) -> None:
    """Install a wheel and run its commands in a new environment whose PATH has no compiler, npm or git."""
    run(python, "-m", "venv", clean)
    bare = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    bare["PATH"] = str(clean / "bin")
    run(clean / "bin/python", "-m", "pip", "install", "--quiet", "--only-binary", ":all:", f"{wheel}[cli]", env=bare)
    run(clean / "bin/python", "-I", "-c", _PROBE, cwd=clean, env=bare)
    for command in (
        ("--version",),
        ("escape", "--case", "A3-array-constructor", "--runtime", "quickjs"),
        ("bench", "rules"),
        ("demo", "--for", "2s"),
        ("next", "FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0", "-n", "1"),
    ):
        run(clean / "bin/lodger", *command, cwd=clean, env=bare)


def interpreters() -> dict[str, str]:
    """Return the supported Python versions of this machine, on PATH or of pyenv, by name."""
    found = {}
    for minor in range(11, 15):
        name = f"python3.{minor}"
        places = [shutil.which(name), *sorted(map(str, Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/{name}")))]
        for place in filter(None, places):
            if subprocess.call([place, "-c", ""], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0:
                found[name] = place
                break
        else:
            print(f"· NOT TRIED: {name} is not on this machine", flush=True)
    return found


def package() -> None:
    """Build, and try the wheel on this Python."""
    wheel = build()
    with tempfile.TemporaryDirectory() as folder:
        try_wheel(sys.executable, wheel, Path(folder) / "clean")


def release() -> None:
    """Build, try the wheel on each Python and beside the packages of the lock, and write SBOM and digests."""
    wheel = build()
    with tempfile.TemporaryDirectory() as folder:
        for name, python in interpreters().items():
            try_wheel(python, wheel, Path(folder) / name)
        # As an operator installs it, with every extra: pip compares each file with the lock's digests.
        whole = Path(folder) / "whole"
        venv.create(whole, with_pip=True)
        for wanted in (("--require-hashes", "-r", ROOT / "deploy/requirements.lock"), ("--no-deps", wheel)):
            run(whole / "bin/python", "-m", "pip", "install", "--quiet", *wanted)
        run(whole / "bin/lodger", "doctor", "--probe")
    run(sys.executable, ROOT / "deploy/sbom.py", DIST / "sbom.cdx.json")
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(DIST.iterdir())]
    (DIST / "SHA256SUMS").write_text("".join(lines))
    print("".join(lines), end="")


if __name__ == "__main__":
    {"package": package, "release": release}[sys.argv[1]]()
