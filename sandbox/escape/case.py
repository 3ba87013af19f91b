"""One attack as data: what it tries, which wall stops it, how it must end, and what its own evidence is."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from lodger.sandbox.escape.evidence import Trial, by_outcome
from lodger.sandbox.escape.layers import Weakening
from lodger.sandbox.outcome import Outcome

_ID = re.compile(r"([A-I])(\d{1,3})-[a-z0-9-]+")
_MODULE = re.compile(r"^\s*(export|import)\b|\bexport default\b", re.MULTILINE)

#: Evidence: looks at one trial, gives the observation in words, raises Escaped when the attack got what it wanted.
Seen = Callable[[Trial], str]
#: Looks at an armed worker from outside while it waits in the call ``hold``; gives facts for the evidence.
Inspect = Callable[[int], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Case:
    """One attack.

    Attributes:
        id: letter and number of the catalogue's class, then a name: ``B16-reverse``. It keeps it for ever.
        wall: the layer that stops it, a name of :data:`lodger.sandbox.escape.layers.LAYERS`.
        mechanism: how it attacks, in a few words; (class, wall, mechanism) is unique.
        script: body of an async function of ``{ bridge, action }``, or a whole module when it exports something.
        expect: the outcomes that are right; the first is the usual one.
        seen: its own evidence; by default what the expected outcome lets one measure.
        story: the attack in one sentence, for the report.
        behind: other layers that would stop it too; the matrix takes them away to see its wall alone.
        limits: lower limits than the suite's.
        modules: further files of the script.
        context: JSON text handed to the script.
        inspect: looks at the worker from outside while it holds.
        runtimes: where it can run.
        weaken: the layer's weakening for this case, when the layer's own does not fit.
        tries: how often the script runs in fresh workers; the trial then carries all results.
        fuel: instruction ceiling, 0 for none.
    """

    id: str
    wall: str
    mechanism: str
    script: str
    expect: tuple[Outcome, ...] = (Outcome.OK,)
    seen: Seen = by_outcome
    story: str = ""
    behind: tuple[str, ...] = ()
    limits: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    modules: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    context: str = '{"action":{"id":"escape"}}'
    inspect: Inspect | None = None
    runtimes: tuple[str, ...] = ("quickjs",)
    weaken: Weakening | None = None
    tries: int = 1
    fuel: int = 0

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise ValueError(f"case id {self.id!r} is not like B16-reverse")

    @property
    def letter(self) -> str:
        """The catalogue's chapter."""
        return self.id[0]

    @property
    def number(self) -> int:
        """The catalogue's class."""
        return int(self.id[1:].partition("-")[0])

    @property
    def triple(self) -> tuple[int, str, str]:
        """What makes it a case of its own."""
        return self.number, self.wall, self.mechanism

    def sources(self) -> dict[str, str]:
        """Give the script as modules, the entry first."""
        main = self.script
        if not _MODULE.search(main):
            main = f"export default async function ({{ bridge, action }}) {{\n{main}\n}}\n"
        return {"main.js": main, **self.modules}
