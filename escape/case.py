"""A case: one attack as data, with the wall that stops it, its expected outcome and its evidence."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from lodger.escape.evidence import Trial, by_outcome
from lodger.escape.layers import LAYERS, on_runtime
from lodger.sandbox.job import CallHandler, Report
from lodger.sandbox.limits import Limits
from lodger.sandbox.outcome import Outcome

_ID = re.compile(r"([A-I])(\d{1,3})-[a-z0-9-]+")
_MODULE = re.compile(r"^\s*(export|import)\b|\bexport default\b", re.MULTILINE)

#: Evidence: checks one trial and returns the observation in words. Raises Escaped if the attack succeeded.
Seen = Callable[[Trial], str]
#: Inspects an armed worker from outside while it waits in the call ``hold``; returns facts for the evidence.
Inspect = Callable[[int], Mapping[str, str]]
#: Returns the host of the script's calls. May raise Unseen.
MakeHost = Callable[[Limits], CallHandler]
#: Attacks a part of the engine without a worker. Blocks at most a few seconds.
DirectAttack = Callable[[], Report]

#: Default runtimes of a case.
SCRIPTS = ("quickjs", "quickjs-native")
COMMANDS = ("wasm",)
ENGINE = ("engine",)
_NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Case:
    """One attack.

    Attributes:
        id: letter and number of the catalogue's class, then a name: ``B16-reverse``. It never changes.
        wall: the layer that stops it, a key of :data:`lodger.escape.layers.LAYERS`.
        mechanism: how it attacks, in a few words; (class, wall, mechanism) is unique.
        script: body of an async function of ``{ bridge, action }``, or a module if it exports something.
        expect: correct outcomes; the first is the usual one.
        seen: its evidence; by default the measurements of the outcome.
        story: the attack in one sentence, for the report.
        behind: other layers that would stop it too; removed when its wall is tested alone.
        limits: lower limits than the suite's.
        modules: further files of the script.
        context: JSON text given to the script.
        inspect: inspects the worker while it waits in ``hold``.
        runtimes: runtimes on which it can run.
        tries: number of runs in new workers; the trial holds all results.
        wasm: for runtime ``wasm`` instead of a script: the module, or a function that returns it.
        guest: returns a module that runs instead of the engine, as if a script had taken the engine over.
        host: returns the host of the calls, if the suite's default host does not suffice.
        act: for runtime ``engine``: attacks the engine without a script.
        on: fields that differ on one runtime.
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
    wasm: bytes | Callable[[], bytes] | None = None
    guest: Callable[[], bytes] | None = None
    host: MakeHost | None = None
    act: DirectAttack | None = None
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
        """Letter of the chapter in the catalogue."""
        return self.id[0]

    @property
    def number(self) -> int:
        """Number of the attack's class in the catalogue."""
        return int(self.id[1:].partition("-")[0])

    @property
    def attack(self) -> tuple[int, str]:
        """Key of the attack: cases of one class with the same story count as one attack in the figures."""
        return self.number, self.story

    @property
    def triple(self) -> tuple[int, str, str]:
        """Class, wall and mechanism, unique to the case."""
        return self.number, self.wall, self.mechanism

    def at(self, runtime: str) -> "Case":
        """Return the case for one runtime, with that runtime's walls and different fields."""
        changes = dict(self.on.get(runtime, _NONE))
        wall = changes.pop("wall", None) or on_runtime(self.wall, runtime)
        behind = changes.pop("behind", None)
        if behind is None:
            behind = tuple(dict.fromkeys(on_runtime(name, runtime) for name in self.behind))
        behind = tuple(name for name in behind if name != wall)
        return replace(self, wall=wall, behind=behind, on=_NONE, **changes)

    def sources(self) -> dict[str, str]:
        """Return the script as modules, the entry first; empty for a WebAssembly module."""
        if self.wasm is not None:
            return {}
        main = self.script
        if not _MODULE.search(main):
            main = f"export default async function ({{ bridge, action }}) {{\n{main}\n}}\n"
        return {"main.js": main, **self.modules}

    def module(self) -> bytes | None:
        """Return the case's WebAssembly module, None if it has a script."""
        return self.wasm() if callable(self.wasm) else self.wasm
