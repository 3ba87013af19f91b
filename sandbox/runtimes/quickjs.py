"""The runtime for untrusted JavaScript: QuickJS inside WebAssembly inside the worker.

The realm is baked beforehand (:mod:`lodger.sandbox.runtimes.js.bake`): the module that the zygote maps already holds the booted engine
and the standard library in its data segment. ``prepare`` instantiates it before the fork, so that a worker opens no file;
``fresh`` gives it its own randomness; ``bound`` its limits; ``run`` loads the author's modules and pumps promise jobs until the
bootstrap hands over a result or an error. Conversion of either happens inside the guest, under the same limits.
"""

from lodger.sandbox.runtimes.js.guest import Guest, Host
from lodger.sandbox.runtimes.js.machine import Machine
from lodger.sandbox.runtimes.js.realm import QuickRealm
from lodger.sandbox.runtimes.warm_up import LIMITS, REHEARSALS, SCRIPT, Mute
from lodger.sandbox.walls.libc import Call, carry_out

_OPEN_MEMORY = 16 << 20  # before the header: what the touch block may hold


class _Still:
    """Stands in for a guest: asks the realm for what a first job asks, and runs nothing."""

    host = Host()
    maximum = 0

    def size(self) -> int:
        """Hold nothing."""
        return 0

    def limit(self, memory_bytes: int) -> None:
        """Nothing grows."""

    def jobs(self) -> int:
        """There are none."""
        return 0

    def apply(self, _function: int, _text: bytes, _undefined: int, _scratch: int) -> None:
        """Load a module, write a line, answer."""
        host = self.host
        host.clock_us()
        host.interrupted()
        for name in (b"lodger:module", host.resolve(b"lodger:module", b"main.js")):
            host.source(name or b"")
        host.call(ord("l"), b"1rehearsed")
        host.call(ord("d"), b"0 null")


class Runtime:
    """The runtime as the zygote holds it."""

    name = "quickjs"

    def __init__(self) -> None:
        self.machine: Machine | None = None
        self._metered: Guest | None = None
        self.numbers: dict[str, int] = {}
        self._ready: Guest | None = None
        self._copying: tuple[Call, ...] = ()

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
        for _ in range(REHEARSALS):  # what is built lazily on first use is built here, once for all workers
            spare = self.machine.instance(_OPEN_MEMORY)
            self._rehearse(spare)
            spare.close()
        guest = self._ready = self.machine.instance(_OPEN_MEMORY)
        for _ in range(REHEARSALS):
            self._woken(guest)
        self._copying = guest.copying(lambda: self._rehearse(guest))

    def fresh(self) -> "QuickRealm":
        """Take the prepared realm (once per process, later ones are made new), give it its own randomness and touch its pages."""
        if self.machine is None:
            raise RuntimeError("prepare comes first")
        guest, self._ready = self._ready or self.machine.instance(_OPEN_MEMORY), None
        return self._woken(guest)

    def _woken(self, guest: Guest) -> "QuickRealm":
        realm = QuickRealm(self.numbers, guest, self._metered)
        carry_out(self._copying)
        realm.reseed()
        self._touch(guest)
        self._rehearse(_Still())  # type: ignore[arg-type]  # what a realm asks of a guest here, it has
        return realm

    def _rehearse(self, spare: Guest) -> None:
        # A whole attempt of ours in an instance that no job ever sees: nothing can be left behind, because nothing is shared. In the
        # zygote with a real one; in each worker only our own code walks the path, for a real instance would cost each of them 80 page
        # faults of its memory and a sixth of its CPU time, to spare the job 40 of the 90 that are left.
        realm = QuickRealm(self.numbers, spare, None)
        realm.bound(LIMITS)
        realm.run(SCRIPT, Mute())

    def _touch(self, guest: Guest) -> None:
        # The way into the guest and out of it, once: it leaves nothing behind.
        guest.apply(self.numbers["touch"], b"", self.numbers["undefined"], self.numbers["scratch"])
        guest.jobs()
