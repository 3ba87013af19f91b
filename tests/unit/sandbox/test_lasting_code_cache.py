"""Cache of compiled code on disk: one key for a user's engines, bounds per tenant and in total, checks of owner and seal."""

import logging
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from lodger.sandbox.wasm import disk_cache
from lodger.sandbox.wasm import disk_cache as code_folder
from lodger.sandbox.wasm.code_cache import CodeCache
from lodger.sandbox.wasm.disk_cache import DiskCache, lasting_key
from lodger.sandbox.wasm.sealed_code import SealedCode, SealedCodeWriter

KEY = b"k" * 32
ROOT = Path(__file__).resolve().parents[3]


def sealed(key: bytes, binding: bytes, size: int = 100) -> SealedCode:
    sealing = SealedCodeWriter(key, binding)
    sealing.write(b"x" * size)
    return sealing.finish()


def put(folder: DiskCache, tenant: str, name: str, size: int = 100) -> None:
    code = sealed(KEY, name.encode(), size)
    folder.store(tenant, name.encode(), code)
    code.close()


def is_kept(folder: DiskCache, tenant: str, name: str) -> bool:
    found = folder.fetch(tenant, name.encode())
    if found is not None:
        found.close()
    return found is not None


def size(place: Path) -> int:
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())


def keys_at_once(folder: Path) -> list[bytes]:
    found: list[bytes] = []
    barrier = threading.Barrier(8)

    def ask() -> None:
        barrier.wait()
        found.append(lasting_key(folder))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_the_same_key_for_everybody_who_comes_at_once(tmp_path: Path) -> None:
    found = keys_at_once(tmp_path)
    for number in range(10):
        assert len(set(keys_at_once(tmp_path / str(number)))) == 1
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from pathlib import Path\nfrom lodger.sandbox.wasm.disk_cache import lasting_key\n"
        "print(lasting_key(Path(sys.argv[1])).hex())"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "other")], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    reported = {process.communicate()[0].strip() for process in processes}
    assert len(set(found)) == len(reported) == 1
    assert found[0].hex() not in reported
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["key"], "no torn file stays"


@pytest.mark.parametrize("how", ["short", "empty", "readable", "a link", "writable"])
def test_a_key_that_somebody_could_know_is_not_used(tmp_path: Path, how: str) -> None:
    first = lasting_key(tmp_path)
    place = tmp_path / "key"
    if how in ("short", "empty"):
        place.write_bytes(first[: 31 if how == "short" else 0])
    elif how == "readable":
        place.chmod(0o640)
    elif how == "a link":
        place.rename(tmp_path / "moved")
        place.symlink_to(tmp_path / "moved")
    else:
        place.chmod(0o602)
    second = lasting_key(tmp_path)
    assert second != first
    assert len(second) == 32
    assert place.stat().st_mode & 0o777 == 0o600
    assert not place.is_symlink()
    assert lasting_key(tmp_path) == second


def test_a_cache_that_others_may_write_keeps_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tmp_path.chmod(0o777)
    with caplog.at_level(logging.WARNING, "lodger.sandbox"):
        cache = CodeCache.lasting(tmp_path)
    assert cache.place("acme", b"m") is None
    assert "in memory only" in caplog.text
    assert not list(tmp_path.iterdir())
    tmp_path.chmod(0o700)
    (tmp_path / "modules").mkdir(mode=0o777)
    (tmp_path / "modules").chmod(0o777)
    assert CodeCache.lasting(tmp_path).place("acme", b"m") is None


def test_two_engines_share_what_either_compiled(tmp_path: Path) -> None:
    first, second = CodeCache.lasting(tmp_path), CodeCache.lasting(tmp_path)
    sealing = first.begin(b"m")
    sealing.write(b"code")
    code = sealing.finish()
    first.store("acme", b"m", code)
    code.close()
    found = second.fetch("acme", b"m")
    assert found is not None
    assert found.content() == b"code"
    found.close()
    assert second.fetch("zeta", b"m") is None


def test_all_together_are_bounded_and_the_latest_used_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_cache, "MAX_BYTES", 8000)
    folder = DiskCache(KEY, tmp_path)
    for number in range(12):
        put(folder, f"tenant{number}", "m", 900)
        for path in tmp_path.rglob("*"):
            if path.is_file():
                os.utime(path, (path.stat().st_mtime - 10,) * 2)
        assert is_kept(folder, "tenant0", "m"), "used again and again"
    assert size(tmp_path) <= 8000
    assert is_kept(folder, "tenant11", "m")
    assert not is_kept(folder, "tenant1", "m")


def test_one_tenant_never_drives_out_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_cache, "MAX_BYTES", 80_000)
    folder = DiskCache(KEY, tmp_path)
    put(folder, "quiet", "m", 5000)
    for number in range(40):
        put(folder, "loud", f"m{number}", 4000)
    assert is_kept(folder, "quiet", "m")
    assert size(tmp_path) <= 5032 + 80_000 // 8
    put(folder, "loud", "huge", 20_000)
    assert not is_kept(folder, "loud", "huge"), "larger than a tenant's share: compiled again each time"
    assert is_kept(folder, "loud", "m39")


def test_a_disk_that_is_full_is_no_fault_of_the_module(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = DiskCache(KEY, tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    import signal

    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with caplog.at_level(logging.WARNING, "lodger.sandbox"):
            code = sealed_beforehand(hard)
            resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
            folder.store("acme", b"m", code)
            code.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert "could not be written" in caplog.text
    assert not [path for path in tmp_path.rglob("*") if path.is_file()], "and nothing torn stays"


def sealed_beforehand(hard: int) -> SealedCode:
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    return sealed(KEY, b"m", 5000)


def test_what_a_killed_engine_left_half_written_is_thrown_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_cache, "MAX_BYTES", 80_000)
    folder = DiskCache(KEY, tmp_path)
    put(folder, "acme", "m", 4000)
    torn = folder.place("acme", b"m").parent / "tmpabc"
    torn.write_bytes(b"x" * 4000)
    os.utime(torn, (1, 1))
    for number in range(3):
        put(folder, "acme", f"m{number}", 3000)
    assert not torn.exists()


@pytest.mark.parametrize("binding", [b"", b"\0", b"../../etc/passwd", b"x" * 10_000])
def test_names_are_hashes_whatever_they_are_made_of(tmp_path: Path, binding: bytes) -> None:
    folder = DiskCache(KEY, tmp_path)
    place = folder.place("../" + "t" * 500, binding)
    assert place.parent.parent == tmp_path
    assert len(place.name) == len(place.parent.name) == 40
    assert folder.fetch("t", binding) is None


def test_a_folder_swapped_for_a_link_is_not_followed(tmp_path: Path) -> None:
    folder = DiskCache(KEY, tmp_path / "modules")
    put(folder, "acme", "m")
    real = folder.place("acme", b"m").parent
    real.rename(tmp_path / "elsewhere")
    real.symlink_to(tmp_path / "elsewhere")
    assert not is_kept(folder, "acme", "m")


def test_what_is_tampered_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = DiskCache(KEY, tmp_path)
    put(folder, "acme", "m")
    place = folder.place("acme", b"m")
    content = bytearray(place.read_bytes())
    content[40] ^= 1
    place.write_bytes(content)
    assert not is_kept(folder, "acme", "m")
    assert not place.exists()
    place.write_bytes(content)
    monkeypatch.setattr(code_folder.hmac, "compare_digest", lambda *_: True)
    assert is_kept(folder, "acme", "m"), "with the comparison taken away it is believed: the test can see"
