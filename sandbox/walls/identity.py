"""Who a worker is: no supplementary group, a uid and gid of its own where the engine runs as root, no capability."""

import os
import struct

from lodger.sandbox.walls.libc import address, buffer, syscall
from lodger.sandbox.walls.process import drop_bounding_set, keep_capabilities
from lodger.sandbox.walls.syscalls import NUMBER

_VERSION_3 = 0x20080522


def become(uid: int) -> None:
    """Leave every group and take uid and gid, keeping capabilities for the mounts that follow. Raises OSError.

    The bounding set is emptied first: after the change CAP_SETPCAP is no longer effective where no user namespace gives it.
    """
    drop_bounding_set()
    keep_capabilities(True)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def drop_capabilities() -> None:
    """Empty every capability set."""
    drop_bounding_set()
    header = buffer(struct.pack("=Ii", _VERSION_3, 0))
    nothing = buffer(bytes(24))
    syscall(NUMBER["capset"], address(header), address(nothing))
    keep_capabilities(False)
