"""The launcher: a process with one thread between the engine and the zygote, for steps that only a parent process can take.

It enters the pid namespace (which takes effect for children only) and, if the engine runs as root, writes the uid map of the zygote's user
namespace from outside. A death signal ends it with the engine, and the zygote with it.
"""

import os

from lodger.sandbox.walls import identity, namespaces, process


def descend(settings: "dict[str, str]", control: int) -> "tuple[int, tuple[str, ...]]":
    """Fork the zygote and return in it, with a socket to the launcher and the namespaces entered so far. The launcher never returns."""
    import _socket

    engine = os.getppid()
    process.die_with_parent()
    if os.getppid() != engine:
        os._exit(0)
    root = os.geteuid() == 0
    outer = outer_namespaces(root)
    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    child = os.fork()
    if child == 0:
        launcher = os.dup(theirs.fileno())
        ours.close()
        theirs.close()
        return launcher, outer
    os.close(control)
    theirs.close()
    while ours.recv(1) == b"m":
        try:
            uid = int(settings["uid"])
            namespaces.write_maps(str(child), uid, uid, privileged=True, count=identity.UIDS_PER_ZYGOTE)
            ours.send(b"y")
        except OSError:
            ours.send(b"n")
    status = os.waitpid(child, 0)[1]
    os._exit(0 if status == 0 else 1)


def outer_namespaces(root: bool) -> "tuple[str, ...]":
    """Enter the namespaces that take effect for children only, and return their names."""
    uid, gid = os.geteuid(), os.getegid()
    if root:
        entered = namespaces.enter(("pid",))
        if entered:
            return entered
    try:
        namespaces.unshare(("user", "pid"))
    except OSError:
        return ()
    try:
        namespaces.write_maps("self", uid, gid, privileged=False)
    except OSError:
        pass
    return ("user", "pid")
