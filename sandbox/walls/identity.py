"""User ids: no supplementary group, ids of its own for the zygote and for each worker where the engine runs as root, no capability."""

import os
import struct

from lodger.sandbox.walls.libc import Call, address, buffer, prepared, syscall
from lodger.sandbox.walls.process import drop_bounding_set, keep_capabilities
from lodger.sandbox.walls.syscalls import NUMBER

#: User ids of one zygote: the first is its own, each of the others that of one living worker.
UIDS_PER_ZYGOTE = 4096

_VERSION_3 = 0x20080522
_CAPSET = NUMBER["capset"]
_CAP_KILL, _CAP_SETGID, _CAP_SETUID = 5, 6, 7
#: The death signal that a worker asked for counts as sent by the zygote: to another uid it needs CAP_KILL.
_OF_ZYGOTE = (1 << _CAP_KILL) | (1 << _CAP_SETGID) | (1 << _CAP_SETUID)

# At fixed addresses, so that a worker only points at them.
_header = buffer(struct.pack("=Ii", _VERSION_3, 0))
_nothing = buffer(bytes(24))
_of_zygote = buffer(struct.pack("=6I", _OF_ZYGOTE, _OF_ZYGOTE, 0, 0, 0, 0))


def become(uid: int) -> None:
    """Leave every group and take uid and gid, keeping capabilities for the mounts that follow. Raises OSError.

    The bounding set is emptied first: after the change CAP_SETPCAP is no longer effective where no user namespace gives it.
    """
    drop_bounding_set()
    keep_capabilities(True)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def drop_capabilities(*, own_uids: bool = False) -> None:
    """Empty every capability set, except for the three that a zygote needs whose workers have user ids of their own."""
    drop_bounding_set()
    kept = _of_zygote if own_uids else _nothing
    syscall(_CAPSET, address(_header), address(kept))
    keep_capabilities(False)


def of_worker(uid: int) -> "tuple[Call, ...]":
    """Return the calls by which a worker takes a uid and gid and gives up its last capabilities."""
    return (
        prepared(NUMBER["setresgid"], uid, uid, uid),
        prepared(NUMBER["setresuid"], uid, uid, uid),
        prepared(_CAPSET, address(_header), address(_nothing)),
    )
