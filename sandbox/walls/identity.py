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
_CAP_SETGID, _CAP_SETUID = 6, 7
_CHANGE_OF_USER = (1 << _CAP_SETGID) | (1 << _CAP_SETUID)

# At fixed addresses, so that a worker only points at them.
_header = buffer(struct.pack("=Ii", _VERSION_3, 0))
_nothing = buffer(bytes(24))
_change_of_user = buffer(struct.pack("=6I", _CHANGE_OF_USER, _CHANGE_OF_USER, 0, 0, 0, 0))


def become(uid: int) -> None:
    """Leave every group and take uid and gid, keeping capabilities for the mounts that follow. Raises OSError.

    The bounding set is emptied first: after the change CAP_SETPCAP is no longer effective where no user namespace gives it.
    """
    drop_bounding_set()
    keep_capabilities(True)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def drop_capabilities(*, keep_change_of_user: bool = False) -> None:
    """Empty every capability set, in the zygote except for the two by which a worker takes a user id of its own."""
    drop_bounding_set()
    kept = _change_of_user if keep_change_of_user else _nothing
    syscall(_CAPSET, address(_header), address(kept))
    keep_capabilities(False)


def of_worker(uid: int) -> "tuple[Call, ...]":
    """Return the calls by which a worker takes a uid and gid and gives up its last capabilities."""
    return (
        prepared(NUMBER["setresgid"], uid, uid, uid),
        prepared(NUMBER["setresuid"], uid, uid, uid),
        prepared(_CAPSET, address(_header), address(_nothing)),
    )
