"""The runtime ``quickjs`` for untrusted JavaScript: QuickJS inside WebAssembly inside the worker.

The realm is baked in advance (:mod:`lodger.sandbox.runtimes.js.bake`): the data segment of the module that the zygote maps holds the booted
engine and the standard library. ``prepare`` instantiates it before the fork, so that a worker opens no file; ``fresh`` seeds it; ``bound``
sets its limits; ``run`` loads the author's modules and runs promise jobs until there is a result or an error. Both are converted to JSON
inside the guest, under the same limits.
"""

from lodger.sandbox.runtimes.js import overrun
from lodger.sandbox.runtimes.js.guest import Guest, HostFunctions
from lodger.sandbox.runtimes.js.machine import Machine
from lodger.sandbox.runtimes.js.realm import QuickRealm
from lodger.sandbox.runtimes.warm_up import LIMITS, REHEARSALS, SCRIPT, NullChannel
from lodger.sandbox.runtimes.written import WrittenPages, region, view

_OPEN_MEMORY = 16 << 20  # memory limit until the header arrives
_MAPPED_AT_ONCE = 65536  # bytes of a file that the kernel maps at one page fault


class _RehearsalGuest:
    """Stand-in for a guest in rehearsals: makes the calls of a first job to the realm and runs no code in the guest."""

    host = HostFunctions()
    maximum = 0

    def __init__(self, guest: Guest) -> None:
        self.size = guest.size
        self.used = guest.used
        self.limit = guest.limit
        self.poke = guest.poke

    def jobs(self) -> int:
        """Return 0: there are no jobs."""
        return 0

    def apply(self, _function: int, _text: bytes, _undefined: int, _scratch: int) -> None:
        """Load a module, write a log line and send a result."""
        host = self.host
        host.clock_us()
        host.interrupted()
        for name in (b"lodger:module", host.modules.resolve(b"lodger:module", b"main.js")):
            host.modules.source(name)
        host.call(ord("l"), b"1rehearsed")
        host.call(ord("d"), b"0 null")


class Runtime:
    """The runtime, held by the zygote."""

    def __init__(self) -> None:
        self.machine: Machine | None = None
        self.numbers: dict[str, int] = {}
        self._ready: Guest | None = None
        self._written: WrittenPages | None = None
        self._code = memoryview(b"")

    def prepare(self, settings: dict[str, str]) -> None:
        """Map the baked realm and create an instance. Settings: ``library``, ``artefact``, ``numbers``."""
        self.numbers = {}
        for pair in settings["numbers"].split():
            name, _, value = pair.partition("=")
            self.numbers[name] = int(value)
        self.machine = Machine(settings["library"])
        self.machine.load(settings["artefact"])
        code = region(settings["artefact"], "r-xp")
        self._code = view(*code)
        for _ in range(REHEARSALS):  # builds what is created lazily, once for all workers
            spare = self.machine.instance(_OPEN_MEMORY)
            self._rehearse(spare)
            spare.close()
        guest = self._ready = self.machine.instance(_OPEN_MEMORY)
        guest.resolve_functions()
        for _ in range(REHEARSALS):
            self._warmed_up(guest)
        overrun.install(guest, self.numbers["interrupt_counter"], code)
        self._written = guest.written_pages(lambda: self._rehearse(guest))
        self._written.copy()

    def fresh(self) -> "QuickRealm":
        """Return the prepared realm (once per process, later ones are new), seeded and warmed up."""
        if self.machine is None:
            raise RuntimeError("call prepare() first")
        guest, self._ready = self._ready or self.machine.instance(_OPEN_MEMORY), None
        return self._warmed_up(guest)

    def _warmed_up(self, guest: Guest) -> "QuickRealm":
        """Return a realm on a guest, after a rehearsal whose page faults its job does not have."""
        realm = QuickRealm(self.numbers, guest)
        if self._written is not None:
            self._written.copy()
        self._rehearse(_RehearsalGuest(guest))  # type: ignore[arg-type]  # it has the methods that a realm uses here
        realm.reseed()
        self._touch(guest)
        return realm

    def _rehearse(self, spare: Guest) -> None:
        """Run a script once, so that its pages are in memory before the fork."""
        # Runs a whole attempt in an instance that no job uses. Workers rehearse with a replacement of the guest: a real instance would
        # cost each 80 page faults and save the job only 40.
        realm = QuickRealm(self.numbers, spare)
        realm.bound(LIMITS)
        realm.run(SCRIPT, NullChannel())

    def _touch(self, guest: Guest) -> None:
        """Make one call into the guest and back, without effect, and read its code, so that the page faults happen before a job."""
        guest.apply(self.numbers["touch"], b"", self.numbers["undefined"], self.numbers["scratch"])
        guest.jobs()
        code = self._code
        for place in range(0, len(code), _MAPPED_AT_ONCE):
            code[place]
