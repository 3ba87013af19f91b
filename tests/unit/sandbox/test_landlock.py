"""The widest Landlock ruleset of this kernel, of older ones and of a future one."""

import errno
import struct

import pytest

from lodger.sandbox.walls import landlock

#: Number of rights on paths, network and scopes by ABI version, from linux/landlock.h.
KNOWN = {1: (13, 0, 0), 2: (14, 0, 0), 3: (15, 0, 0), 4: (15, 2, 0), 5: (16, 2, 0), 6: (16, 2, 2), 7: (16, 2, 2)}


class Kernel:
    """Imitation of landlock_create_ruleset(2) with some rights, which counts open descriptors."""

    def __init__(self, *rights: int) -> None:
        self.rights = rights
        self.made = 0

    def create(self, rights: dict[str, int]) -> int:
        words = struct.unpack(f"={len(landlock.ruleset(rights)) // 8}Q", landlock.ruleset(rights))
        known = [count for count in self.rights if count]
        if any(words[len(known) :]):
            raise OSError(errno.E2BIG, "")
        if any(word >> count for word, count in zip(words, known, strict=False)):
            raise OSError(errno.EINVAL, "")
        self.made += 1
        return 1000


@pytest.mark.parametrize("rights", [*KNOWN.values(), (17, 4, 3), (20, 2, 9)], ids=str)
def test_every_right_that_a_kernel_knows_is_denied(
    rights: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = Kernel(*rights)
    monkeypatch.setattr(landlock, "_create", kernel.create)
    monkeypatch.setattr(landlock.os, "close", lambda _descriptor: None)
    assert tuple(landlock.supported_rights().values()) == rights


def test_another_refusal_is_not_taken_for_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_rights: dict[str, int]) -> int:
        raise OSError(errno.EMFILE, "")

    monkeypatch.setattr(landlock, "_create", full)
    with pytest.raises(OSError) as refused:
        landlock.supported_rights()
    assert refused.value.errno == errno.EMFILE


def test_this_kernel() -> None:
    abi = landlock.abi()
    if not abi:
        pytest.skip("NOT TESTED with Landlock: this kernel has none")
    found = tuple(landlock.supported_rights().values())
    known = KNOWN[min(abi, max(KNOWN))]
    assert all(got >= minimum for got, minimum in zip(found, known, strict=True))
    if abi in KNOWN:
        assert found == known
