"""esbuild beside a script is run only if no other user could have put it there."""

import os
from pathlib import Path

import pytest
from tests.e2e.command import inside

FAKE = '#!/bin/sh\necho ran > "${0%/*}/was-run"\n'


def installed(folder: Path) -> Path:
    """A program in place of esbuild, as npm installs it in a folder."""
    program = folder / "node_modules" / "esbuild" / "bin" / "esbuild"
    program.parent.mkdir(parents=True)
    program.write_text(FAKE)
    program.chmod(0o755)
    return program


def bundle(script: Path) -> str:
    """What lodger bundle says about a script."""
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text("export default () => 1")
    return inside("bundle", script, "--out", script.parent / "out").err


@pytest.mark.parametrize("part", ["node_modules", "node_modules/esbuild/bin/esbuild"])
def test_a_program_that_everyone_can_change_is_not_run(tmp_path: Path, part: str) -> None:
    program = installed(tmp_path)
    (tmp_path / part).chmod(0o777)
    assert "[program_untrusted]" in bundle(tmp_path / "scripts" / "job.js")
    assert not (program.parent / "was-run").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_program_of_another_user_in_a_parent_folder_is_not_run(tmp_path: Path) -> None:
    program = installed(tmp_path)
    os.chown(program, 65534, 65534)
    assert "[program_untrusted]" in bundle(tmp_path / "shop" / "scripts" / "job.js")
    assert not (program.parent / "was-run").exists()


def test_a_program_of_this_user_is_run(tmp_path: Path) -> None:
    program = installed(tmp_path)
    bundle(tmp_path / "scripts" / "job.js")
    assert (program.parent / "was-run").exists()
