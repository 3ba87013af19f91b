"""Namespaces for users, processes, network, mounts, IPC and host names, and an empty root directory.

An ordinary user can enter the others only inside a user namespace. As root, only the pid namespace is entered before the zygote loads its
files, because in a user namespace root cannot read other users' files; the rest follow afterwards.
"""

import os

from lodger.sandbox.walls.libc import address, buffer, mount, syscall, unmount_lazily
from lodger.sandbox.walls.syscalls import NUMBER

#: CLONE_NEW* flags by the names in reports.
FLAGS = {
    "user": 0x10000000,
    "pid": 0x20000000,
    "net": 0x40000000,
    "mount": 0x00020000,
    "ipc": 0x08000000,
    "uts": 0x04000000,
}
INNER = ("net", "mount", "ipc", "uts")

_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REMOUNT = 1, 2, 4, 8, 32
_MS_REC, _MS_PRIVATE = 0x4000, 0x40000


def unshare(names: "tuple[str, ...]") -> None:
    """Enter new namespaces at once; pid takes effect for children. Raises OSError."""
    flags = 0
    for name in names:
        flags |= FLAGS[name]
    syscall(NUMBER["unshare"], flags)


def enter(names: "tuple[str, ...]") -> "tuple[str, ...]":
    """Enter as many namespaces as the host allows, at once if possible, and return their names."""
    try:
        unshare(names)
    except OSError:
        entered = []
        for name in names:
            try:
                unshare((name,))
            except OSError:
                continue
            entered.append(name)
        return tuple(entered)
    return names


def write_maps(pid: str, uid: int, gid: int, privileged: bool, count: int = 1) -> None:
    """Map ``count`` uids and gids, from these on, to themselves in the user namespace of a process. Raises OSError."""
    if not privileged:
        _write(f"/proc/{pid}/setgroups", b"deny")
    _write(f"/proc/{pid}/gid_map", b"%d %d %d" % (gid, gid, count))
    _write(f"/proc/{pid}/uid_map", b"%d %d %d" % (uid, uid, count))


def _write(path: str, content: bytes) -> None:
    """Write a file of /proc; raises OSError."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)


def empty_root() -> None:
    """Make an empty read-only file system the root; mapped files stay mapped. Needs a mount namespace. Raises OSError."""
    mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None)
    for place in (b"/tmp", b"/run", b"/mnt", b"/dev", b"/proc"):
        try:
            mount(b"lodger", place, b"tmpfs", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, b"size=4k,nr_inodes=2,mode=555")
        except OSError:
            continue
        break
    else:
        raise OSError("no folder to mount an empty root on")
    os.chdir(place)
    here = buffer(b".\0")
    syscall(NUMBER["pivot_root"], address(here), address(here))
    unmount_lazily(b".")
    os.chdir("/")
    mount(b"lodger", b"/", None, _MS_REMOUNT | _MS_RDONLY | _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, None)
