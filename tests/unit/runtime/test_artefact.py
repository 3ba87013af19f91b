"""Cache of the baked realm: keyed by content, used only if no other user can have written it."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from lodger.escape.arena import write_source
from lodger.sandbox.runtimes.js import artefact
from lodger.sandbox.runtimes.js.artefact import Artefact, RealmUnavailable, ensure, is_ours, read_sources, realm_key


@pytest.fixture(scope="module")
def first(tmp_path_factory) -> tuple[Artefact, list[str]]:
    """A realm that is baked for a user whose home cannot be written, and what is said meanwhile."""
    folder, said = tmp_path_factory.mktemp("realm"), list[str]()
    (folder / "file").write_text("")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LODGER_CACHE_DIR", raising=False)
        patch.setenv("XDG_CACHE_HOME", str(folder / "file" / "below"))
        patch.setattr(artefact.tempfile, "gettempdir", lambda: str(folder))
        found = ensure(progress=said.append)
    assert found.module.is_relative_to(folder / f"lodger-{os.geteuid()}")
    return found, said


@pytest.fixture
def baked(first) -> Path:
    return first[0].module.parent.parent


@pytest.fixture
def kept(baked, tmp_path) -> Path:
    """Return a folder with a copy of a baked realm, because baking takes two CPU seconds."""
    shutil.copytree(baked, tmp_path / "kept", copy_function=shutil.copy2)
    said: list[str] = []
    ensure(tmp_path / "kept", progress=said.append)
    assert said == [], "the copy is as good as what was baked"
    return tmp_path / "kept"


def entry(folder: Path) -> Path:
    (found,) = [path for path in folder.iterdir() if not path.name.startswith(".")]
    return found


def test_the_first_time_says_so_and_a_home_that_cannot_be_written_is_passed_by(first, baked) -> None:
    found, said = first
    assert len(said) == 1
    assert set(found.settings()) == {"library", "artefact", "numbers"}
    assert [path.name for path in baked.iterdir() if path.name.startswith(".")] == []


def test_everything_is_in_the_key(monkeypatch) -> None:
    plain = realm_key(read_sources())
    assert plain == realm_key(read_sources())
    assert plain != realm_key([*read_sources(), ("cap-x.js", "")])
    monkeypatch.setattr(artefact, "version", lambda name: "0")
    assert realm_key(read_sources()) != plain


@pytest.mark.slow  # bakes a realm
def test_a_torn_file_is_baked_again_bakes_are_equal_and_the_longest_unused_realm_goes(kept, baked, monkeypatch) -> None:
    monkeypatch.setattr(artefact, "_KEPT", 2)
    module = entry(kept) / "realm.cwasm"
    first, second = (shutil.copytree(entry(baked), kept / name) for name in ("a" * 64, "b" * 64))
    (kept / "modules").mkdir()
    os.utime(second, (1, 1))
    os.utime(first, (2, 2))
    module.write_bytes(module.read_bytes()[:-1])
    said: list[str] = []
    two = ensure(kept, progress=said.append)
    assert len(said) == 1
    one = ensure(baked, progress=said.append)
    assert len(said) == 1, "the other was kept"
    assert one.numbers == two.numbers
    assert one.module.read_bytes() == two.module.read_bytes()
    assert not stat.S_IMODE(two.module.stat().st_mode) & 0o022
    assert {each.name for each in kept.iterdir() if each.name[0] != "."} == {
        module.parent.name,
        first.name,
        "modules",
    }, "what is no realm stays"


def test_a_file_that_others_may_write_is_not_read(kept) -> None:
    module, numbers = entry(kept) / "realm.cwasm", entry(kept) / "realm.numbers"
    for path, mode in ((module, 0o620), (module, 0o602), (numbers, 0o620), (numbers, 0o602), (entry(kept), 0o702)):
        before = stat.S_IMODE(path.stat().st_mode)
        path.chmod(mode)
        assert artefact.read_baked(entry(kept)) is None, (path, oct(mode))
        path.chmod(before)
        assert artefact.read_baked(entry(kept)) is not None


def test_a_folder_that_others_may_write_is_not_used(tmp_path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(RealmUnavailable) as failure:
        ensure(tmp_path)
    assert "other users can write" in failure.value.why
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_nobodys(tmp_path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert is_ours(tmp_path / "real")
    assert not is_ours(tmp_path / "link")


@pytest.mark.root
@pytest.mark.skipif(
    os.geteuid() != 0, reason="NOT TESTED as root: needs root to make a file of somebody else (run as root)"
)
def test_a_file_of_somebody_else_is_not_read(tmp_path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"")
    path.chmod(0o600)
    assert is_ours(path)
    os.chown(path, 12345, 12345)
    assert not is_ours(path)


def test_a_fault_of_the_folder_and_one_of_the_process_are_told_apart(tmp_path, monkeypatch) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RealmUnavailable, match="no folder") as failure:
        ensure(tmp_path / "file" / "below")
    assert "LODGER_CACHE_DIR" in failure.value.fix
    monkeypatch.setattr(sys, "executable", str(tmp_path / "absent"))
    with pytest.raises(RealmUnavailable, match="could not be built") as failure:
        ensure(tmp_path)
    assert failure.value.why == "its process: No such file or directory"


@pytest.mark.root
def test_a_folder_whose_file_system_takes_no_realm_is_named(tmp_path) -> None:
    (tmp_path / "home").mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "mode=700,noexec", "none", tmp_path / "home"], check=False
    ).returncode:
        pytest.skip("NOT TESTED with a file system of its own: mounting one needs root")
    try:
        with pytest.raises(RealmUnavailable, match="no folder") as failure:
            ensure(tmp_path / "home")
        assert "noexec" in failure.value.why
    finally:
        subprocess.run(["umount", tmp_path / "home"], check=True)


def test_the_suite_of_attacks_takes_the_first_folder_that_can_be_written_or_the_one_that_is_set(
    tmp_path, monkeypatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.delenv("LODGER_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "below"))
    monkeypatch.setattr(artefact.tempfile, "gettempdir", lambda: str(tmp_path))
    assert write_source("a.js", "").parent == tmp_path / f"lodger-{os.geteuid()}"
    monkeypatch.setenv("LODGER_CACHE_DIR", "set")
    monkeypatch.chdir(tmp_path)
    assert write_source("a.js", "").parent == tmp_path / "set"


def test_a_broken_capability_is_named(tmp_path) -> None:
    with pytest.raises(RealmUnavailable) as failure:
        artefact.baked([*read_sources(), ("cap-bad.js", "let = =")], tmp_path)
    assert "cap-bad.js" in failure.value.why
    assert [path.name for path in tmp_path.iterdir()] == []
