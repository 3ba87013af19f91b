"""Boot order of the walls: the steps of the zygote and of a worker, in the only order that works as root and as an ordinary user.

Landlock before no_new_privs fails with EPERM; a change of uid clears the death signal; dumpable 0 makes oom_score_adj and uid_map
read-only; after a change of uid the engine's files are unreadable, so everything is loaded before it. A step that fails is recorded and
reported to the parent, which refuses to run without a wall that its profile requires.
"""

import errno
import os
import resource
import select

from lodger.sandbox.walls import cpu_timer, identity, landlock, namespaces, process, rlimits, seccomp
from lodger.sandbox.walls.libc import make_calls
from lodger.sandbox.walls.syscalls import NUMBER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lodger.sandbox.walls.libc import Call

#: Greater than any descriptor number.
_MAX_DESCRIPTORS = 0x7FFFFFFF
_CLOSE_RANGE = NUMBER["close_range"]
#: Time from the CPU limit to the first signal: the worker reads its clock earlier.
_SIGNAL_AFTER_MS = 8
#: A system call without effect, which a rehearsal makes instead of calls that cannot be undone.
_HARMLESS = (NUMBER["getpid"], 0, 0, 0, 0)


class Boot:
    """The walls of one zygote and its workers.

    Attributes:
        report: maps a wall's name to "" if it is active, otherwise to the reason why it is not.
    """

    def __init__(self, settings: "dict[str, str]") -> None:
        self.report: dict[str, str] = {}
        self._settings = settings
        self._runtime = settings["runtime"]
        self._uid = int(settings["uid"])
        self._stack_bytes = int(settings["stack_bytes"])
        self._memory_max = int(settings["memory_max_bytes"])
        self._cpu_ms_max = int(settings["cpu_ms_max"])
        self._grace_ms = int(settings["cpu_grace_ms"])
        self._open_files = int(settings["open_files"])
        self._parent = 0
        self._data_before = self._address_before = 0
        self._cpu_max = self._data_max = self._address_max = 0
        self._close_range = _CLOSE_RANGE
        # System calls of each worker: after the fork, to lower its limits, to install filter A, and when it is armed.
        self._numbers = rlimits.JobNumbers()
        self._uids: set[int] = set()  # of living workers
        self._last_uid = self._uid
        self._identity: tuple[Call, ...] = ()
        self._birth: tuple[Call, ...] = ()
        self._lowering: tuple[Call, ...] = ()
        self._locking: tuple[Call, ...] = ()
        self._arming: tuple[Call, ...] = ()
        self._filters: list[seccomp.Filter] = []  # kept alive: the system calls hold their addresses

    def _raise(self, wall: str, *steps: "tuple[Any, ...]") -> bool:
        """Call the steps of one wall, record the result in the report and return whether all succeeded."""
        try:
            for step, *arguments in steps:
                step(*arguments)
        except OSError as problem:
            self.report[wall] = f"{problem.strerror or problem} ({problem.errno})"
            return False
        self.report[wall] = ""
        return True

    # in the zygote, once

    def before_loading(self, descriptors: "tuple[int, ...]") -> None:
        """Close inherited descriptors, start a session and set the OOM score."""
        process.close_all_but((0, 1, 2, *descriptors))
        os.setsid()
        self._raise("oom", (process.offer_to_oom_killer,))

    def after_loading(self, launcher: int, outer: "tuple[str, ...]") -> None:
        """Raise the walls that a fork inherits; no file can be opened afterwards."""
        process.seal_code()  # the filter denies new executable pages; existing ones must not be writable
        self._address_before, self._data_before = _sizes()
        self._enter_namespaces(launcher, outer)
        self._raise("death_signal", (process.die_with_parent,), (_check_alive, launcher))
        os.close(launcher)
        self._raise("no_new_privs", (process.renounce_new_privileges,))
        self._raise("undumpable", (process.hide_memory,))
        process.restrict_speculation()
        self._raise("landlock", (landlock.restrict,))
        data_bytes = self._data_before + self._memory_max + rlimits.DATA_SLACK_BYTES
        self._raise("rlimits", (rlimits.set_inherited_limits, data_bytes, self._stack_bytes))
        self._cpu_max, self._data_max, self._address_max = rlimits.hard_limits()
        if not seccomp.available():
            self.report["seccomp"] = "the kernel or the architecture has no filter that kills the process"
        else:
            self._raise("seccomp")
        self._raise("cpu_timer", (cpu_timer.create,))  # only a test: each worker creates its own
        self._parent = os.getpid()
        self._prepare_worker()

    def _prepare_worker(self) -> None:
        """Prepare the system calls of each worker. A wall that failed in the zygote is not tried again in a worker."""
        stands = {wall for wall, why in self.report.items() if not why}
        birth = [process.OWN_SESSION]
        lowering: list[Call] = []
        if {"uid", "undumpable"} <= stands:
            birth.append(process.UNDUMPABLE)
        if "death_signal" in stands:
            birth.append(process.DEATH_SIGNAL)
        if "rlimits" in stands:
            birth += rlimits.worker_calls(self._open_files)
            lowering += self._numbers.settings()
            self._arming += rlimits.armed_worker_calls()
        if "cpu_timer" in stands:
            signals = self._runtime == "quickjs"
            birth += cpu_timer.CREATE_CALLS[: 1 + signals]
            lowering.append(cpu_timer.set_call(0, self._numbers.timer_at(0)))
            if signals:
                self._arming += (cpu_timer.set_call(1, self._numbers.timer_at(1)),)
        if "seccomp" in stands:
            self._filters = [
                seccomp.Filter(program(runtime=self._runtime))
                for program in (seccomp.first_filter, seccomp.second_filter)
            ]
            self._locking += (self._filters[0].install_call(),)
            self._arming += (self._filters[1].install_call(),)
        self._birth, self._lowering = tuple(birth), tuple(lowering)

    def rehearsal(self) -> "Boot":
        """Return a copy that runs the same code with system calls without effect, so that the interpreter specialises it before forks."""
        twin = Boot(self._settings | {"open_files": "0", "cpu_grace_ms": "0"})
        twin._close_range = _HARMLESS[0]
        twin._cpu_max, twin._data_max, twin._address_max = self._cpu_max, self._data_max, self._address_max
        twin._parent = os.getppid()
        twin._birth = twin._lowering = twin._locking = twin._arming = (_HARMLESS, _HARMLESS)
        return twin

    def _enter_namespaces(self, launcher: int, outer: "tuple[str, ...]") -> None:
        """Enter the namespaces that are left, let the launcher write the uid map, and record which are missing."""
        root = os.geteuid() == 0 and "user" not in outer
        entered = outer + namespaces.enter(("user", *namespaces.INNER) if root else namespaces.INNER)
        mapped = False
        if root and "user" in entered:
            os.write(launcher, b"m")
            mapped = os.read(launcher, 1) == b"y"
        missing = [name for name in namespaces.FLAGS if name not in entered]
        self.report["namespaces"] = "missing: " + " ".join(missing) if missing else ""
        if root and mapped:  # capabilities over the new namespaces survive: none of their uids is root
            self._raise("uid", (identity.change_uid, self._uid))
        if "mount" in entered:
            self._raise("root", (namespaces.empty_root,))
        else:
            self.report["root"] = "needs a mount namespace"
        if root and not mapped:
            self._raise("uid", (identity.change_uid, self._uid))
        elif not root:
            self.report["uid"] = "the engine is not root: workers share its uid"
        identity.drop_capabilities(own_uids=not self.report["uid"])

    def take_uid(self) -> int:
        """Reserve a user id for the next worker and return it; 0 if workers share the engine's. Raises OSError if all are in use."""
        if self.report["uid"]:
            return 0
        others = identity.UIDS_PER_ZYGOTE - 1
        for step in range(others):
            uid = self._uid + 1 + (self._last_uid - self._uid + step) % others
            if uid not in self._uids:
                self._uids.add(uid)
                self._last_uid = uid
                self._identity = identity.worker_calls(uid)
                return uid
        raise OSError(errno.EAGAIN, "every user id of this zygote is in use")

    def release_uid(self, uid: int) -> None:
        """Release the user id of a worker that has ended."""
        self._uids.discard(uid)

    # in each worker

    def in_worker(self, channel: int) -> None:
        """Raise the walls that a fork does not inherit, then install filter A. Every descriptor except ``channel`` is closed."""
        closing = self._close_range
        make_calls(((closing, 0, channel - 1, 0), (closing, channel + 1, _MAX_DESCRIPTORS, 0)))
        make_calls(self._identity)
        make_calls(self._birth)
        if os.getppid() != self._parent and process.DEATH_SIGNAL in self._birth:
            os._exit(0)
        self._lower(
            self._cpu_ms_max, self._data_max, self._address_max
        )  # same code as for a job, so its page faults happen now
        make_calls(self._locking)

    def in_armed_worker(self, limits: "dict[str, int]", code_bytes: int) -> None:
        """Lower the limits to the job's and install filter B: no limit, timer or filter can be changed afterwards.

        Args:
            code_bytes: size of the compiled code that the worker has loaded.
        """
        copies = (
            3 * (limits["source_bytes"] + limits["input_bytes"] + limits["result_bytes"]) + 2 * limits["frame_bytes"]
        )
        copies += 2 * code_bytes  # of compiled code: the worker's copy and the tables made from it
        grown = limits["memory_bytes"] + copies
        address_bytes = self._address_before + grown + rlimits.ADDRESS_SLACK_BYTES
        address_bytes += code_bytes + rlimits.ADDRESS_RESERVED_BYTES.get(self._runtime, 0)
        self._lower(limits["cpu_ms"], self._data_before + grown + rlimits.DATA_SLACK_BYTES, address_bytes)
        make_calls(self._arming)

    def _lower(self, cpu_ms: int, data_bytes: int, address_bytes: int) -> None:
        """Lower the limits of CPU time, private memory and address space to the job's, and set the CPU timer."""
        self._numbers.write(
            min(self._cpu_seconds(cpu_ms), self._cpu_max),
            min(data_bytes, self._data_max),
            min(address_bytes, self._address_max),
            cpu_ms + self._grace_ms,
            cpu_ms + _SIGNAL_AFTER_MS,
        )
        make_calls(self._lowering)

    def _cpu_seconds(self, cpu_ms: int) -> int:
        """Return the value of RLIMIT_CPU, which counts whole seconds and the warm-up: a fallback for the CPU timer."""
        return (cpu_ms + self._grace_ms) // 1000 + 2


def _check_alive(launcher: int) -> None:
    """Exit if the launcher died before the death signal was set: its end of the socket is closed then."""
    poll = select.poll()
    poll.register(launcher, 0)
    if poll.poll(0):
        os._exit(0)


def _sizes() -> "tuple[int, int]":
    """Return the bytes of this process that RLIMIT_AS and RLIMIT_DATA count: its address space, its writable private memory."""
    with open("/proc/self/statm", "rb") as statm:  # noqa: PTH123 - pathlib would make every fork dearer
        pages = statm.read().split()
    return int(pages[0]) * resource.getpagesize(), int(pages[5]) * resource.getpagesize()
