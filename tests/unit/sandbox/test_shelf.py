"""The shelf of compiled modules: bounded in bytes, files and descriptors, in memory and on disk."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lodger.sandbox.sealed import Sealed, Sealing
from lodger.sandbox.shelf import Shelf


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    shelf = Shelf(b"k" * 32, most_bytes=1000, most=3)
    yield shelf
    shelf.close()


def put(shelf: Shelf, name: bytes, size: int = 10) -> None:
    sealing = shelf.begin(name)
    sealing.write(name * size)
    shelf.keep(name, sealing.finish()).close()


def there(shelf: Shelf, name: bytes) -> bool:
    found = shelf.find(name)
    if found is not None:
        found.close()
    return found is not None


def test_what_was_used_longest_ago_goes_first(shelf: Shelf) -> None:
    for name in (b"a", b"b", b"c"):
        put(shelf, name)
    assert there(shelf, b"a")
    put(shelf, b"d")
    assert [there(shelf, name) for name in (b"a", b"b", b"c", b"d")] == [True, False, True, True]


@pytest.mark.parametrize(("size", "kept"), [(499, True), (500, True), (501, False)])
def test_bytes_are_bounded(shelf: Shelf, size: int, kept: bool) -> None:
    put(shelf, b"a", 500)
    put(shelf, b"b", size)
    assert there(shelf, b"a") is kept
    assert there(shelf, b"b"), "the newest stays, whatever its size"


def test_what_was_given_out_outlives_its_place(shelf: Shelf) -> None:
    put(shelf, b"a")
    held = shelf.find(b"a")
    assert held is not None
    for name in (b"b", b"c", b"d"):
        put(shelf, name)
    assert not there(shelf, b"a")
    assert held.content() == b"a" * 10
    held.close()


def test_descriptors_are_bounded(shelf: Shelf) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for number in range(50):
        put(shelf, b"%d" % number)
    assert len(os.listdir("/proc/self/fd")) == before + 3


def test_putting_it_again_is_no_leak(shelf: Shelf) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        put(shelf, b"a", 400)
    assert len(os.listdir("/proc/self/fd")) == before + 1
    put(shelf, b"b", 400)
    assert there(shelf, b"a")


def test_every_part_of_a_binding_counts() -> None:
    bindings = {
        Shelf.binding("acme", b"one", fuel=False),
        Shelf.binding("acme", b"two", fuel=False),
        Shelf.binding("zeta", b"one", fuel=False),
        Shelf.binding("acme", b"one", fuel=True),
        Shelf.binding("acm", b"eone", fuel=False),
    }
    assert len(bindings) == 5


def sealed(key: bytes, binding: bytes, *chunks: bytes) -> bytes:
    sealing = Sealing(key, binding)
    for chunk in chunks:
        sealing.write(chunk)
    code: Sealed = sealing.finish()
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
    shelf = Shelf(b"k" * 32, folder=tmp_path)
    try:
        for number in range(40):
            binding = b"%d" % number
            sealing = shelf.begin(binding)
            sealing.write(b"code")
            code = sealing.finish()
            shelf.store("acme", binding, code)
            code.close()
        assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 32
        newest = shelf.fetch("acme", b"39")
        assert newest is not None
        newest.close()
        assert shelf.fetch("zeta", b"39") is None
    finally:
        shelf.close()


def test_no_names_of_tenants_on_disk(tmp_path: Path) -> None:
    shelf = Shelf(b"k" * 32, folder=tmp_path)
    place = shelf.place("../../acme", b"binding")
    assert place is not None
    assert place.parent.parent == tmp_path
    assert "acme" not in str(place.relative_to(tmp_path))
    shelf.close()
