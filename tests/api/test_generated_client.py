"""Clients that generators make of the description: Python's with its defaults passes calls of every kind, Go's and Java's compile.

The generator wants older packages than Lodger does, so it is installed apart: ``pipx install openapi-python-client``, or a virtual
environment whose program is named by ``LODGER_CLIENT_GENERATOR``. ``LODGER_OPENAPI_GENERATOR`` names the jar of openapi-generator:
the package openapi-generator-cli holds it.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.api.running_api import RunningApi
from tests.escape.commands import HELLO

GENERATOR = shutil.which(os.environ.get("LODGER_CLIENT_GENERATOR", "openapi-python-client"))


@pytest.mark.skipif(
    GENERATOR is None, reason="NOT TESTED with openapi-python-client: it is not installed (pipx install)"
)
def test_a_generated_client_passes_calls(lodge: RunningApi, tmp_path: Path) -> None:
    (tmp_path / "openapi.json").write_text(json.dumps(lodge.ask("GET", "/openapi.json").json()))
    shutil.copy(Path(__file__).with_name("generated_calls.py"), tmp_path / "calls.py")
    program = Path(str(GENERATOR)).resolve()
    generate = ("generate", "--path", "openapi.json", "--output-path", "out", "--meta", "none")
    calls = (program.parent / "python", "calls.py", lodge.url, lodge.token("admin"), HELLO.hex())
    said = []
    for command in ((program, *generate), calls):
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        said.append(ran.stdout)
    assert "will not be generated" not in said[0]
    assert said[1] == "every call was answered\n"


JAR = os.environ.get("LODGER_OPENAPI_GENERATOR", "")


def one_type(value: Any) -> Any:
    """Return a description in which a value of several types has any: the generator of Java makes no code for those that compiles."""
    if isinstance(value, list):
        return [one_type(each) for each in value]
    if not isinstance(value, dict):
        return value
    several = sum(each.get("type") != "null" for each in value.get("anyOf", ())) > 1
    return {name: one_type(each) for name, each in value.items() if not (several and name == "anyOf")}


@pytest.mark.parametrize(
    ("language", "compiler", "options"),
    [
        ("go", "go", ()),
        ("java", "javac", ("--library", "native", "--additional-properties", "openApiNullable=false")),
    ],
)
def test_the_output_of_openapi_generator_compiles(
    lodge: RunningApi, tmp_path: Path, language: str, compiler: str, options: tuple[str, ...]
) -> None:
    missing = [name for name in ("java", compiler) if shutil.which(name) is None]
    if missing or not Path(JAR).is_file():
        pytest.skip(
            f"NOT TESTED with openapi-generator: {', '.join(missing) or 'LODGER_OPENAPI_GENERATOR names no jar'}"
        )
    description = lodge.ask("GET", "/openapi.json").json()
    (tmp_path / "openapi.json").write_text(json.dumps(one_type(description) if language == "java" else description))
    run = (
        "java",
        "-jar",
        JAR,
        "generate",
        "-g",
        language,
        "-i",
        "openapi.json",
        "-o",
        "out",
        *options,
    )
    made = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=180, check=False)
    assert made.returncode == 0, made.stdout[-2000:] + made.stderr[-2000:]
    out = tmp_path / "out"
    if language == "go":
        # The generator names a newer version of the language than the code needs.
        module = out / "go.mod"
        module.write_text("".join(line for line in module.read_text().splitlines(keepends=True) if line[:3] != "go "))
        build: tuple[str, ...] = ("go", "build", "./...")
    else:
        # Its project takes this annotation from Maven; everything else is in the generator's jar.
        place = out / "src/main/java/javax/annotation/Generated.java"
        place.parent.mkdir(parents=True)
        place.write_text(
            "package javax.annotation; public @interface Generated { String value(); String date(); String comments(); }"
        )
        sources = [str(each) for each in sorted((out / "src/main").rglob("*.java"))]
        build = ("javac", "-nowarn", "-proc:none", "-cp", JAR, "-d", "classes", *sources)
    built = subprocess.run(build, cwd=out, capture_output=True, text=True, timeout=180, check=False)
    assert built.returncode == 0, built.stdout[-2000:] + built.stderr[-2000:]
