"""User ids and capabilities: a separate uid for the zygote and each worker if the engine is root, no supplementary group, no capability."""

import os
import struct

from lodger.sandbox.walls.libc import Call, address, buffer, prepare_call, syscall
from lodger.sandbox.walls.process import drop_bounding_set, keep_capabilities
from lodger.sandbox.walls.syscalls import NUMBER

#: Number of user ids of a zygote: the first is its own, the others are for its workers.
UIDS_PER_ZYGOTE = 4096

_VERSION_3 = 0x20080522
_CAPSET = NUMBER["capset"]
_CAP_KILL, _CAP_SETGID, _CAP_SETUID = 5, 6, 7
#: The kernel sends a worker's death signal in the name of the zygote, which needs CAP_KILL for another uid.
_OF_ZYGOTE = (1 << _CAP_KILL) | (1 << _CAP_SETGID) | (1 << _CAP_SETUID)

# Allocated in the zygote, so that the prepared calls of a worker can refer to them.
_header = buffer(struct.pack("=Ii", _VERSION_3, 0))
_nothing = buffer(bytes(24))
_of_zygote = buffer(struct.pack("=6I", _OF_ZYGOTE, _OF_ZYGOTE, 0, 0, 0, 0))
_SETRESGID, _SETRESUID = NUMBER["setresgid"], NUMBER["setresuid"]
_DROP = prepare_call(_CAPSET, address(_header), address(_nothing))


def change_uid(uid: int) -> None:
    """Drop all groups and change uid and gid, keeping capabilities for the mounts that follow. Raises OSError.

    The bounding set is emptied first: without a user namespace CAP_SETPCAP is not effective after the change.
    """
    drop_bounding_set()
    keep_capabilities(True)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def drop_capabilities(*, own_uids: bool = False) -> None:
    """Empty every capability set; ``own_uids`` keeps the three that a zygote needs to give each worker a uid of its own."""
    drop_bounding_set()
    kept = _of_zygote if own_uids else _nothing
    syscall(_CAPSET, address(_header), address(kept))
    keep_capabilities(False)


def worker_calls(uid: int) -> "tuple[Call, ...]":
    """Return the calls that change a worker's uid and gid and drop its last capabilities."""
    return (_SETRESGID, uid, uid, uid), (_SETRESUID, uid, uid, uid), _DROP
