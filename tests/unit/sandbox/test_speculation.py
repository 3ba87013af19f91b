"""A zygote asks the kernel for both mitigations of speculation, and a refusal of either one ends nothing."""

import errno

import pytest

from lodger.sandbox.walls import process
from lodger.sandbox.walls.syscalls import NUMBER

#: PR_SET_SPECULATION_CTRL with PR_SPEC_FORCE_DISABLE, of PR_SPEC_STORE_BYPASS and PR_SPEC_INDIRECT_BRANCH (linux/prctl.h).
ASKED = [(NUMBER["prctl"], 53, 0, 8, 0, 0), (NUMBER["prctl"], 53, 1, 8, 0, 0)]


@pytest.mark.parametrize("refusal", [None, errno.ENXIO, errno.EPERM, errno.ENODEV])
def test_both_are_requested_whatever_is_refused(refusal: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, ...]] = []

    def syscall(*words: int) -> int:
        asked.append(words)
        if refusal is not None:
            raise OSError(refusal, "refused")
        return 0

    monkeypatch.setattr(process, "syscall", syscall)
    process.restrict_speculation()
    assert asked == ASKED
