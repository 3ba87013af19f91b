"""Contents of the wheel, and that the commands which live beside the engine run from it."""

import json
import os
import runpy
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {"engine", "sandbox", "stdlib", "escape", "bench"}


def build(folder: Path) -> Path:
    """Build the wheel of this tree."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (wheel,) = folder.glob("*.whl")
    return wheel


def files(wheel: Path) -> list[str]:
    """Return what is in a wheel beside its metadata."""
    names = zipfile.ZipFile(wheel).namelist()
    return [name for name in names if ".dist-info/" not in name]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("dist"))


def test_nothing_that_only_developers_need_is_in_it(wheel: Path) -> None:
    names = [PurePosixPath(name) for name in files(wheel)]
    assert {name.parts[0] for name in names} == {"lodger"}
    assert {name.parts[1] for name in names} == PACKAGES | {"__init__.py", "py.typed"}
    modules = {f"lodger/{path.relative_to(ROOT)}" for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    left_out = {each for each in modules if each.startswith("lodger/bench/developer/")}
    assert {str(name) for name in names if name.suffix == ".py"} == modules - left_out | {"lodger/__init__.py"}
    for name in names:
        assert name.suffix in {
            ".py", ".js", ".wat", ".sql", ".txt", ".cjs", ".ts", ".mako", ".json", ".toml", ".typed", ".html",
            ".css", ".svg", ".md", ".po", "",
        }, name  # fmt: skip
        words = set(name.parts[:-1]) | {name.stem}
        assert not words & {"tests", "conftest", "simulator", "matrix", "sim"}, name
        assert not any(word.startswith(("test_", "weak", "careless")) for word in words), name


def test_what_npm_packages_lack_is_fetched_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hook = runpy.run_path(str(ROOT / "hatch_build.py"))
    assert hook["missing"](ROOT) == {}, "the wheel was built"
    shutil.copytree(ROOT / "stdlib" / "npm", tmp_path / "stdlib" / "npm")
    shutil.copy(ROOT / "stdlib" / "npm_packages.toml", tmp_path / "stdlib")
    assert hook["missing"](tmp_path) == {}
    licence = tmp_path / "stdlib" / "npm" / "temporal-polyfill" / "LICENSE"
    licence.write_text("changed")
    assert list(hook["missing"](tmp_path)) == ["temporal-polyfill"]
    licence.unlink()
    assert list(hook["missing"](tmp_path)) == ["temporal-polyfill"]
    fetch = hook["fetch"]
    monkeypatch.setitem(fetch.__globals__, "_TIMEOUT_S", 0)
    with pytest.raises(SystemExit, match="npm has not fetched temporal-polyfill@1, which the build needs, within 0 s"):
        fetch("temporal-polyfill", {"version": "1"}, tmp_path)


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's files: what the first command compiles serves the next."""
    folder = tmp_path_factory.mktemp("installed")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        ("bench", "frames", "--frames", "1000", "--json"),
        ("escape", "--case", "A3-array-constructor", "--runtime", "quickjs-native", "--json"),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_a_command_beside_the_engine_runs_from_it(installed: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    code = (
        f"import sys; sys.path[:] = [sys.argv.pop(1), *(each for each in sys.path if each != {str(ROOT)!r})];"
        "import lodger.engine as e; assert e.__file__.startswith(sys.path[0]);"
        "from lodger.engine.cli import main; main()"
    )
    command = [sys.executable, "-I", "-c", code, str(installed), *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)


def test_it_installs_without_compiler_npm_or_git(wheel: Path, tmp_path: Path) -> None:
    """Into a new environment, with a PATH of that environment alone; every dependency must be a wheel."""
    place = tmp_path / "clean"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True, timeout=100)
    env = {"PATH": str(place / "bin"), "HOME": str(tmp_path), "PIP_CACHE_DIR": str(Path.home() / ".cache" / "pip")}
    env |= {name: text for name, text in os.environ.items() if name.startswith(("PIP_", "SSL_"))}

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        text = "return 6 * 7;"
        return subprocess.run(
            command, cwd=tmp_path, env=env, input=text, capture_output=True, text=True, timeout=250, check=False
        )

    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    install = ("--python", str(place), "install", "--no-compile", "--only-binary", ":all:", f"{wheel}[cli]")
    installed = run(*pip, *install)
    if installed.returncode and run(*pip, "download", "--no-deps", "--dest", str(tmp_path), "tzdata").returncode:
        pytest.skip("NOT TESTED with a package index: none can be reached (give this machine access to PyPI)")
    assert installed.returncode == 0, installed.stderr
    done = run(str(place / "bin" / "lodger"), "exec", "--json", "-")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["result"] == 42
    # Last, because the command has compiled most of it.
    names = "from lodger import Engine, AsyncEngine, Client, AsyncClient, __version__; print(__version__)"
    versions = run(str(place / "bin" / "python"), "-I", "-c", names)
    assert versions.stdout.strip() == version("lodger"), versions.stderr
    assert [name for name in ("cc", "gcc", "npm", "git") if shutil.which(name, path=env["PATH"])] == []
