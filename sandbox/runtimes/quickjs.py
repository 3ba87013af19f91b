"""The runtime for untrusted JavaScript: QuickJS inside WebAssembly inside the worker.

The realm is baked beforehand (:mod:`lodger.sandbox.runtimes.bake`): the module that the zygote maps already holds the booted engine
and the standard library in its data segment. ``prepare`` instantiates it before the fork, so that a worker opens no file;
``fresh`` gives it its own randomness; ``bound`` its limits; ``run`` loads the author's modules and pumps promise jobs until the
bootstrap hands over a result or an error. Conversion of either happens inside the guest, under the same limits.
"""

import time

from lodger.sandbox.runtimes.answer import cut, quoted
from lodger.sandbox.runtimes.guest import Guest
from lodger.sandbox.runtimes.machine import Machine
from lodger.sandbox.runtimes.realm import QuickRealm

#: What a worker calls of the kernel between its first filter and its end, measured with strace; the socket is the channel's.
SYSCALLS = (
    "read",
    "write",
    "sendto",
    "recvfrom",
    "sendmsg",
    "recvmsg",
    "poll",  # ppoll on aarch64: Channel.wait
    "ppoll",
    "mmap",
    "munmap",
    "mprotect",  # one per 64 KiB of guest memory growth
    "mremap",
    "madvise",
    "brk",
    "getrandom",
    "clock_gettime",  # CPU clock for the soft stop; the wall clock comes from the vDSO
    "rt_sigreturn",  # a stack overflow of the guest is a SIGSEGV that wasmtime answers
    "rt_sigprocmask",
    "sigaltstack",
    "gettid",
    "futex",
    "exit",
    "exit_group",
)

_OPEN_MEMORY = 16 << 20  # before the header: what the touch block may hold


class Runtime:
    """The runtime as the zygote holds it."""

    name = "quickjs"
    syscalls = SYSCALLS

    def __init__(self) -> None:
        self.machine: Machine | None = None
        self._metered: Guest | None = None
        self.numbers: dict[str, int] = {}
        self._ready: Guest | None = None

    def prepare(self, settings: dict[str, str]) -> None:
        """Map the artefact and make an instance. Settings: ``library``, ``artefact``, ``numbers``; ``fuel_artefact`` for metered runs."""
        self.numbers = {}
        for pair in settings["numbers"].split():
            name, _, value = pair.partition("=")
            self.numbers[name] = int(value)
        self.machine = Machine(settings["library"])
        self.machine.load(settings["artefact"])
        if settings.get("fuel_artefact"):
            fuelled = Machine(settings["library"], fuel=True)
            fuelled.load(settings["fuel_artefact"])
            self._metered = fuelled.instance(_OPEN_MEMORY)
        self._ready = self.machine.instance(_OPEN_MEMORY)
        for _ in range(3):
            self._touch(self._ready)
        cut(
            quoted("é").encode(), 3
        )  # first uses of what a job needs build lazily made structures once, for all workers
        time.process_time_ns()

    def fresh(self) -> "QuickRealm":
        """Take the prepared realm (once per process, later ones are made new), give it its own randomness and touch its pages."""
        if self.machine is None:
            raise RuntimeError("prepare comes first")
        guest, self._ready = self._ready or self.machine.instance(_OPEN_MEMORY), None
        metered, self._metered = self._metered, None
        realm = QuickRealm(self.numbers, guest, metered)
        realm.reseed()
        self._touch(guest)
        return realm

    def _touch(self, guest: Guest) -> None:
        # A constant of ours through every path of a job that leaves nothing behind: strings in, a call, jobs.
        guest.apply(
            self.numbers["touch"],
            b'{"a":[1,"b",{"c":null}]}',
            self.numbers["undefined"],
            self.numbers["scratch"],
        )
        guest.jobs()
