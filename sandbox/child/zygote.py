"""The zygote: holds the prepared runtime and forks workers on request. It never reads a tenant's byte or a secret.

Executed by absolute path as ``python -I -S -E zygote.py CONTROL SANDBOX_FOLDER`` with an empty environment. It imports only what is cheap
to fork; ``tests/unit/sandbox/test_zygote_modules.py`` pins the list.

Control messages (SOCK_SEQPACKET). Received: the settings, then ``s`` for each worker to fork; end of file ends the zygote and its workers.
Sent: ``Z`` + report when ready · ``W`` + PID with [socket, pidfd] for a forked worker · ``N`` if a fork failed · ``D`` + DEATH for a
reaped worker · ``F`` + text if the zygote failed to start.
"""

import sys

if __name__ == "__main__":  # without site-packages: only the package folder with this file can be imported
    _lodger = type(sys)("lodger")
    _lodger.__path__ = [sys.argv[2].rpartition("/")[0]]
    sys.modules["lodger"] = _lodger

import _socket
import gc
import os
import select
import struct

from lodger.sandbox.child import settings, worker
from lodger.sandbox.child.boot import Boot
from lodger.sandbox.walls import identity, namespaces, process
from lodger.sandbox.walls.libc import address, buffer, fork, make_calls, prepare_call
from lodger.sandbox.walls.syscalls import NUMBER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lodger.sandbox.runtime import Runtime

PID = struct.Struct("<i")
DEATH = struct.Struct("<iiqqqq")  # pid, wait status, user µs, system µs, peak resident bytes, minor faults
_RIGHTS = struct.Struct("@ii")
# os.wait4 would import a module at each call: a tenth of the page faults that a worker costs the zygote.
_STATUS = struct.Struct("@i")
_USAGE = struct.Struct("@18l")  # struct rusage
_status, _usage = buffer(bytes(_STATUS.size)), buffer(bytes(_USAGE.size))
_WAIT4, *_WAIT_FOR = prepare_call(NUMBER["wait4"], address(_status), 0, address(_usage))


def load_runtime(name: str) -> "Runtime":
    """Import ``lodger.sandbox.runtimes.<name>`` and return its runtime."""
    module = __import__("lodger.sandbox.runtimes." + name.replace("-", "_"), fromlist=["Runtime"])
    runtime: Runtime = module.Runtime()
    return runtime


def start_launcher(settings: "dict[str, str]", control: int) -> "tuple[int, tuple[str, ...]]":
    """Fork the zygote and return in it, with a socket to the launcher and the namespaces entered so far.

    This process stays as the launcher, with one thread, for steps that only a parent process can take, and never returns: it has entered
    the pid namespace, which takes effect for children, and if the engine runs as root it writes the uid map of the zygote's user namespace
    from outside. A death signal ends it with the engine, and the zygote with it.
    """
    engine = os.getppid()
    process.die_with_parent()
    if os.getppid() != engine:
        os._exit(0)
    root = os.geteuid() == 0
    outer = enter_outer_namespaces(root)
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


def enter_outer_namespaces(root: bool) -> "tuple[str, ...]":
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


class Zygote:
    """The zygote's loop: forks workers, sends them to the engine and reaps them."""

    def __init__(self, control: "_socket.socket", boot: Boot, runtime: "Runtime") -> None:
        self._control = control
        self._boot = boot
        self._runtime = runtime
        self._poll = select.poll()
        self._poll.register(control.fileno(), select.POLLIN)
        self._workers: dict[int, tuple[int, int]] = {}  # pidfd → pid and uid

    def serve(self) -> None:
        """Serve requests until the engine closes the control socket."""
        control, poll = self._control, self._poll.poll
        asked = control.fileno()
        while True:
            for descriptor, _event in poll():
                if descriptor == asked:
                    if not control.recv(64):
                        return
                    self._spawn()
                else:
                    self._reap(descriptor)

    def _spawn(self) -> None:
        """Fork a worker and send its socket to the parent."""
        pid = pidfd = -1
        uid = 0
        ends: tuple[_socket.socket, ...] = ()
        try:
            uid = self._boot.take_uid()
            ours, theirs = ends = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
            pid = fork()
            if pid == 0:
                worker.run_worker(theirs.fileno(), self._boot, self._runtime)
            theirs.close()
            pidfd = os.pidfd_open(pid)  # raises OSError if the fork failed (pid -1)
        except OSError:  # out of processes, memory or descriptors: the engine asks again later
            for end in ends:
                end.close()
            if pid > 0:
                os.kill(pid, 9)
                os.waitpid(pid, 0)
            self._boot.release_uid(uid)
            self._control.send(b"N")
            return
        self._workers[pidfd] = (pid, uid)
        self._poll.register(pidfd, select.POLLIN)
        rights = _RIGHTS.pack(ours.fileno(), pidfd)
        try:
            self._control.sendmsg([b"W" + PID.pack(pid)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
        finally:
            ours.close()

    def _reap(self, pidfd: int) -> None:
        """Collect the exit status of an ended worker, and report it to the engine."""
        pid, uid = self._workers.pop(pidfd)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        make_calls(((_WAIT4, pid, *_WAIT_FOR),))
        self._boot.release_uid(uid)
        (status,) = _STATUS.unpack(_status)
        user_s, user_us, system_s, system_us, peak_kib, _, _, _, faults, *_ = _USAGE.unpack(_usage)
        times = (user_s * 1_000_000 + user_us, system_s * 1_000_000 + system_us)
        self._control.send(b"D" + DEATH.pack(pid, status, *times, peak_kib * 1024, faults))


def main() -> None:
    """Start the zygote and serve until the engine ends."""
    control = _socket.socket(fileno=int(sys.argv[1]))
    received = settings.decode(control.recv(1 << 16))
    launcher, outer = start_launcher(received, control.fileno())
    try:
        boot = Boot(received)
        boot.before_loading((control.fileno(), launcher))
        runtime = load_runtime(received["runtime"])
        runtime.prepare(received)
        boot.after_loading(launcher, outer)
        worker.rehearse(boot.rehearsal())
        zygote = Zygote(control, boot, runtime)
    except BaseException as problem:  # noqa: BLE001 - any error is reported to the operator
        control.send(b"F" + f"{type(problem).__name__}: {problem}".encode("utf-8", "replace")[:4000])
        os._exit(1)
    gc.collect()
    gc.freeze()
    gc.disable()
    facts = [f"{wall}\0{why}\0" for wall, why in boot.report.items()]
    facts.append(f"modules\0{' '.join(sorted(sys.modules))}\0")
    control.send(b"Z" + "".join(facts).encode())
    try:
        zygote.serve()
    except OSError:
        pass  # the engine ended
    os._exit(0)


if __name__ == "__main__":
    main()
