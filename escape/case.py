"""One attack as data: what it tries, which wall stops it, how it must end, and what its own evidence is."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from lodger.escape.evidence import Trial, by_outcome
from lodger.escape.layers import LAYERS, on_runtime
from lodger.sandbox.job import Host, Report
from lodger.sandbox.limits import Limits
from lodger.sandbox.outcome import Outcome

_ID = re.compile(r"([A-I])(\d{1,3})-[a-z0-9-]+")
_MODULE = re.compile(r"^\s*(export|import)\b|\bexport default\b", re.MULTILINE)

#: Evidence: looks at one trial, gives the observation in words, raises Escaped when the attack got what it wanted.
Seen = Callable[[Trial], str]
#: Looks at an armed worker from outside while it waits in the call ``hold``; gives facts for the evidence.
Inspect = Callable[[int], Mapping[str, str]]
#: Makes the parent's end of the script's calls. May raise Unseen.
MakeHost = Callable[[Limits], Host]
#: Asks a part of the engine that no worker is needed for. Blocks at most a few seconds.
AuditContext = Callable[[], Report]

#: Where a script runs unless it says otherwise.
SCRIPTS = ("quickjs", "quickjs-native")
GUEST = ("quickjs",)
NATIVE = ("quickjs-native",)
COMMANDS = ("wasm",)
ENGINE = ("engine",)
_NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Case:
    """One attack.

    Attributes:
        id: letter and number of the catalogue's class, then a name: ``B16-reverse``. It keeps it for ever.
        wall: the layer that stops it, a name of :data:`lodger.escape.layers.LAYERS`.
        mechanism: how it attacks, in a few words; (class, wall, mechanism) is unique.
        script: body of an async function of ``{ bridge, action }``, or a whole module when it exports something.
        expect: the outcomes that are right; the first is the usual one.
        seen: its own evidence; by default what the expected outcome lets one measure.
        story: the attack in one sentence, for the report.
        behind: other layers that would stop it too; a proof of its wall alone takes them away.
        limits: lower limits than the suite's.
        modules: further files of the script.
        context: JSON text handed to the script.
        inspect: looks at the worker from outside while it holds.
        runtimes: where it can run.
        tries: how often the script runs in fresh workers; the trial then carries all results.
        fuel: instruction ceiling, 0 for none.
        wasm: for runtime ``wasm`` in place of a script: the module, or what makes it.
        guest: makes the module that runs in the engine's place, as if a script had taken the engine over.
        host: makes the parent's end of the calls, when the suite's own harmless one does not do.
        act: for runtime ``engine``: asks the engine itself, no script runs.
        on: fields that are different on one runtime.
    """

    id: str
    wall: str
    mechanism: str
    script: str = ""
    expect: tuple[Outcome, ...] = (Outcome.OK,)
    seen: Seen = by_outcome
    story: str = ""
    behind: tuple[str, ...] = ()
    limits: Mapping[str, int] = field(default_factory=lambda: _NONE)
    modules: Mapping[str, str] = field(default_factory=lambda: _NONE)
    context: str = '{"action":{"id":"escape"}}'
    inspect: Inspect | None = None
    runtimes: tuple[str, ...] = SCRIPTS
    tries: int = 1
    fuel: int = 0
    wasm: bytes | Callable[[], bytes] | None = None
    guest: Callable[[], bytes] | None = None
    host: MakeHost | None = None
    act: AuditContext | None = None
    on: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: _NONE)

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise ValueError(f"case id {self.id!r} is not like B16-reverse")
        if unknown := {self.wall, *self.behind} - set(LAYERS):
            raise ValueError(
                f"{self.id}: there is no layer {', '.join(sorted(unknown))}; lodger escape --list names them"
            )

    @property
    def letter(self) -> str:
        """The catalogue's chapter."""
        return self.id[0]

    @property
    def number(self) -> int:
        """The catalogue's class."""
        return int(self.id[1:].partition("-")[0])

    @property
    def attack(self) -> tuple[int, str]:
        """What it is a variant of: cases of one class with one story count as one attack in the figures."""
        return self.number, self.story

    @property
    def triple(self) -> tuple[int, str, str]:
        """What makes it a case of its own."""
        return self.number, self.wall, self.mechanism

    def at(self, runtime: str) -> "Case":
        """Give the case as it is tried on one runtime: its walls by the names that they have there, and what is different."""
        changes = dict(self.on.get(runtime, _NONE))
        wall = changes.pop("wall", None) or on_runtime(self.wall, runtime)
        behind = changes.pop("behind", None)
        if behind is None:
            behind = tuple(dict.fromkeys(on_runtime(name, runtime) for name in self.behind))
        behind = tuple(name for name in behind if name != wall)
        return replace(self, wall=wall, behind=behind, on=_NONE, **changes)

    def sources(self) -> dict[str, str]:
        """Give the script as modules, the entry first; nothing for a module of WebAssembly."""
        if self.wasm is not None:
            return {}
        main = self.script
        if not _MODULE.search(main):
            main = f"export default async function ({{ bridge, action }}) {{\n{main}\n}}\n"
        return {"main.js": main, **self.modules}

    def module(self) -> bytes | None:
        """Give the module of WebAssembly, if it is one."""
        return self.wasm() if callable(self.wasm) else self.wasm
