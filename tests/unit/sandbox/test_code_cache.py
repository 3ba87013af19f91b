"""Cache of compiled modules, in memory and on disk: bounds of bytes, files and descriptors, in total and per tenant; one key for a
user's engines; checks of owner and seal."""

import logging
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lodger.sandbox.wasm import code_cache, disk_cache
from lodger.sandbox.wasm.code_cache import CodeCache
from lodger.sandbox.wasm.disk_cache import DiskCache, lasting_key
from lodger.sandbox.wasm.sealed_code import SealedCode, SealedCodeWriter

KEY = b"k" * 32
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[CodeCache]:
    monkeypatch.setattr(code_cache, "KEPT_BYTES", 1000)
    monkeypatch.setattr(code_cache, "KEPT", 3)
    cache = CodeCache(b"k" * 32)
    yield cache
    cache.close()


def put(cache: CodeCache, name: bytes, size: int = 10, tenant: str = "acme") -> None:
    sealing = cache.begin(name)
    sealing.write(name * size)
    cache.keep(tenant, name, sealing.finish()).close()


def closed(found: SealedCode | None) -> bool:
    """Whether code was found; it is closed."""
    if found is not None:
        found.close()
    return found is not None


def is_kept(cache: CodeCache, name: bytes) -> bool:
    return closed(cache.find(name))


def is_there(folder: DiskCache, tenant: str, name: str) -> bool:
    return closed(folder.fetch(tenant, name.encode()))


def test_what_was_used_longest_ago_goes_first(cache: CodeCache) -> None:
    for name in (b"a", b"b", b"c"):
        put(cache, name)
    assert is_kept(cache, b"a")
    put(cache, b"d")
    assert [is_kept(cache, name) for name in (b"a", b"b", b"c", b"d")] == [True, False, True, True]


@pytest.mark.parametrize("size", [10, 400])
def test_a_tenant_displaces_its_own_code_before_that_of_others(cache: CodeCache, size: int) -> None:
    put(cache, b"z", 300, "zeta")
    for name in (b"a", b"b", b"c", b"d"):
        put(cache, name, size)
    assert is_kept(cache, b"z")
    assert is_kept(cache, b"d")


@pytest.mark.parametrize(("size", "kept"), [(499, True), (500, True), (501, False)])
def test_bytes_are_bounded(cache: CodeCache, size: int, kept: bool) -> None:
    put(cache, b"a", 500)
    put(cache, b"b", size)
    assert is_kept(cache, b"a") is kept
    assert is_kept(cache, b"b"), "the newest stays, whatever its size"


def test_what_was_given_out_outlives_its_place(cache: CodeCache) -> None:
    put(cache, b"a")
    held = cache.find(b"a")
    assert held is not None
    for name in (b"b", b"c", b"d"):
        put(cache, name)
    assert not is_kept(cache, b"a")
    assert held.content() == b"a" * 10
    held.close()


def test_descriptors_are_bounded(cache: CodeCache) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for number in range(50):
        put(cache, b"%d" % number)
    assert len(os.listdir("/proc/self/fd")) == before + 3


def test_putting_it_again_is_no_leak(cache: CodeCache) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        put(cache, b"a", 400)
    assert len(os.listdir("/proc/self/fd")) == before + 1
    put(cache, b"b", 400)
    assert is_kept(cache, b"a")


def test_every_part_of_a_binding_counts() -> None:
    bindings = {
        CodeCache.binding("acme", b"one"),
        CodeCache.binding("acme", b"two"),
        CodeCache.binding("zeta", b"one"),
        CodeCache.binding("acm", b"eone"),
    }
    assert len(bindings) == 4


def sealed(key: bytes, binding: bytes, *chunks: bytes) -> SealedCode:
    sealing = SealedCodeWriter(key, binding)
    for chunk in chunks:
        sealing.write(chunk)
    return sealing.finish()


def seal(key: bytes, binding: bytes, *chunks: bytes) -> bytes:
    code = sealed(key, binding, *chunks)
    code.close()
    return code.seal


def test_a_seal_depends_on_key_binding_and_code_and_not_on_chunks() -> None:
    assert seal(b"k", b"ab", b"cd") == seal(b"k", b"ab", b"c", b"d")
    others = [seal(b"j", b"ab", b"cd"), seal(b"k", b"abc", b"d"), seal(b"k", b"ab", b"ce")]
    assert len({seal(b"k", b"ab", b"cd"), *others}) == 4


def test_a_tenants_files_are_bounded(tmp_path: Path) -> None:
    cache = DiskCache(b"k" * 32, tmp_path)
    for number in range(40):
        code = sealed(b"k" * 32, b"%d" % number, b"code")
        cache.store("acme", b"%d" % number, code)
        code.close()
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 32
    assert closed(cache.fetch("acme", b"39"))
    assert not closed(cache.fetch("zeta", b"39"))


def store(folder: DiskCache, tenant: str, name: str, size: int = 100) -> None:
    code = sealed(KEY, name.encode(), b"x" * size)
    folder.store(tenant, name.encode(), code)
    code.close()


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
    assert cache.disk is None
    assert "in memory only" in caplog.text
    assert not list(tmp_path.iterdir())
    tmp_path.chmod(0o700)
    (tmp_path / "modules").mkdir(mode=0o777)
    (tmp_path / "modules").chmod(0o777)
    assert CodeCache.lasting(tmp_path).disk is None


def test_all_together_are_bounded_and_the_latest_used_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_cache, "MAX_BYTES", 8000)
    folder = DiskCache(KEY, tmp_path)
    for number in range(12):
        store(folder, f"tenant{number}", "m", 900)
        for path in tmp_path.rglob("*"):
            if path.is_file():
                os.utime(path, (path.stat().st_mtime - 10,) * 2)
        assert is_there(folder, "tenant0", "m"), "used again and again"
    assert size(tmp_path) <= 8000
    assert is_there(folder, "tenant11", "m")
    assert not is_there(folder, "tenant1", "m")


def test_one_tenant_never_drives_out_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_cache, "MAX_BYTES", 80_000)
    folder = DiskCache(KEY, tmp_path)
    store(folder, "quiet", "m", 5000)
    for number in range(40):
        store(folder, "loud", f"m{number}", 4000)
    assert is_there(folder, "quiet", "m")
    assert size(tmp_path) <= 5032 + 80_000 // 8
    store(folder, "loud", "huge", 20_000)
    assert not is_there(folder, "loud", "huge"), "larger than a tenant's share: compiled again each time"
    assert is_there(folder, "loud", "m39")


def test_a_disk_that_is_full_is_no_fault_of_the_module(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = DiskCache(KEY, tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
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
    return sealed(KEY, b"m", b"x" * 5000)


def test_what_a_killed_engine_left_half_written_is_thrown_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_cache, "MAX_BYTES", 80_000)
    folder = DiskCache(KEY, tmp_path)
    store(folder, "acme", "m", 4000)
    torn = folder.place("acme", b"m").parent / "tmpabc"
    torn.write_bytes(b"x" * 4000)
    os.utime(torn, (1, 1))
    for number in range(3):
        store(folder, "acme", f"m{number}", 3000)
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
    store(folder, "acme", "m")
    real = folder.place("acme", b"m").parent
    real.rename(tmp_path / "elsewhere")
    real.symlink_to(tmp_path / "elsewhere")
    assert not is_there(folder, "acme", "m")


def test_what_is_tampered_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = DiskCache(KEY, tmp_path)
    store(folder, "acme", "m")
    place = folder.place("acme", b"m")
    content = bytearray(place.read_bytes())
    content[40] ^= 1
    place.write_bytes(content)
    assert not is_there(folder, "acme", "m")
    assert not place.exists()
    place.write_bytes(content)
    monkeypatch.setattr(disk_cache.hmac, "compare_digest", lambda *_: True)
    assert is_there(folder, "acme", "m"), "with the comparison taken away it is believed: the test can see"
