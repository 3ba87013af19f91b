"""Cache of compiled modules: bounds of bytes, files and descriptors, in memory and on disk."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lodger.sandbox.wasm import code_cache
from lodger.sandbox.wasm.code_cache import CodeCache
from lodger.sandbox.wasm.sealed_code import SealedCode, SealedCodeWriter


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[CodeCache]:
    monkeypatch.setattr(code_cache, "KEPT_BYTES", 1000)
    monkeypatch.setattr(code_cache, "KEPT", 3)
    cache = CodeCache(b"k" * 32)
    yield cache
    cache.close()


def put(cache: CodeCache, name: bytes, size: int = 10) -> None:
    sealing = cache.begin(name)
    sealing.write(name * size)
    cache.keep(name, sealing.finish()).close()


def is_kept(cache: CodeCache, name: bytes) -> bool:
    found = cache.find(name)
    if found is not None:
        found.close()
    return found is not None


def test_what_was_used_longest_ago_goes_first(cache: CodeCache) -> None:
    for name in (b"a", b"b", b"c"):
        put(cache, name)
    assert is_kept(cache, b"a")
    put(cache, b"d")
    assert [is_kept(cache, name) for name in (b"a", b"b", b"c", b"d")] == [True, False, True, True]


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


def sealed(key: bytes, binding: bytes, *chunks: bytes) -> bytes:
    sealing = SealedCodeWriter(key, binding)
    for chunk in chunks:
        sealing.write(chunk)
    code: SealedCode = sealing.finish()
    code.close()
    sealing.drop()
    return code.seal


def test_a_seal_depends_on_key_binding_and_code_and_not_on_chunks() -> None:
    assert sealed(b"k", b"ab", b"cd") == sealed(b"k", b"ab", b"c", b"d")
    assert (
        len(
            {
                sealed(b"k", b"ab", b"cd"),
                sealed(b"j", b"ab", b"cd"),
                sealed(b"k", b"abc", b"d"),
                sealed(b"k", b"ab", b"ce"),
            }
        )
        == 4
    )


def test_a_tenants_files_are_bounded(tmp_path: Path) -> None:
    cache = CodeCache(b"k" * 32, folder=tmp_path)
    try:
        for number in range(40):
            binding = b"%d" % number
            sealing = cache.begin(binding)
            sealing.write(b"code")
            code = sealing.finish()
            cache.store("acme", binding, code)
            code.close()
        assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 32
        newest = cache.fetch("acme", b"39")
        assert newest is not None
        newest.close()
        assert cache.fetch("zeta", b"39") is None
    finally:
        cache.close()
