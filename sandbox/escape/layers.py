"""The layers of the wall that cases name: what each stops, and how the matrix takes it away to prove that the suite can see.

A process wall is taken away in the zygote (setting ``without``), a part of the worker by :mod:`lodger.sandbox.escape.weakened`,
a part of the realm by baking it without (:mod:`lodger.sandbox.escape.realms`), a limit by raising it to the maximum on one side
of the socket or on both.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from lodger.sandbox.limits import LIMITS
from lodger.sandbox.wall import WALLS

_NONE: Mapping[str, int] = MappingProxyType({})
_MOST = {spec.name: spec.maximum for spec in LIMITS}


@dataclass(frozen=True, slots=True)
class Weakening:
    """What to take away.

    Attributes:
        without: process walls.
        worker: switches of the weakened runtime.
        realm: edits of the realm's sources.
        parent: limits as the parent holds them.
        header: limits as the worker is told them.
        host: "naive" answers calls the way a careless host would; "same_realm" runs the next tenant's script in the same realm.
    """

    without: frozenset[str] = frozenset()
    worker: frozenset[str] = frozenset()
    realm: frozenset[str] = frozenset()
    parent: Mapping[str, int] = field(default_factory=lambda: _NONE)
    header: Mapping[str, int] = field(default_factory=lambda: _NONE)
    host: str = ""

    def __or__(self, other: "Weakening") -> "Weakening":
        return Weakening(
            self.without | other.without,
            self.worker | other.worker,
            self.realm | other.realm,
            {**self.parent, **other.parent},
            {**self.header, **other.header},
            self.host or other.host,
        )


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer; ``weakening`` is None when it cannot be taken away alone (the report says so)."""

    name: str
    stops: str
    weakening: Weakening | None


def _parent(*names: str) -> Weakening:
    return Weakening(parent={name: _MOST[name] for name in names})


def _header(*names: str) -> Weakening:
    return Weakening(header={name: _MOST[name] for name in names})


def _both(*names: str) -> Weakening:
    return _parent(*names) | _header(*names)


def _worker(switch: str) -> Weakening:
    return Weakening(worker=frozenset({switch}))


def _realm(edit: str) -> Weakening:
    return Weakening(realm=frozenset({edit}))


_LOG = ("log_lines", "log_bytes", "log_line_bytes")
_INNER = (
    Layer("soft_stop", "a script that runs too long, where its engine looks at the clock", _worker("no_soft_stop")),
    Layer("cpu_watch", "CPU time beyond the limit, read by the parent from the worker's clock", _parent("cpu_ms")),
    Layer("wall_clock", "a script that waits for ever: the parent's own deadline", Weakening(parent={"wall_ms": 3000})),
    Layer("fuel", "too many instructions, the same number on every machine", Weakening(header={"fuel": 0})),
    Layer("store_limit", "linear memory of the guest beyond the limit", _worker("no_store_limit")),
    Layer("guest_stack", "recursion: the guest's stack ends in a trap, not in the worker's memory", None),
    Layer("guest_memory", "a memory error of the JavaScript engine: it stays in the guest's linear memory", None),
    Layer("fresh_process", "what one attempt leaves behind for the next", Weakening(host="same_realm")),
    Layer("worker_output", "a large result, before it leaves the guest", _header("result_bytes", "frame_bytes")),
    Layer("parent_output", "a large result, before the parent copies it", _parent("result_bytes", "frame_bytes")),
    Layer("worker_log", "a flood of log lines, where it is cheap to stop", _header(*_LOG)),
    Layer("parent_log", "a flood of log lines that a worker did not stop", _parent(*_LOG)),
    Layer("host_calls", "too many calls of the host", _both("host_calls")),
    Layer("frame_limit", "arguments larger than a frame", _both("frame_bytes")),
    Layer("json_depth", "values nested to break a recursive parser", _both("json_depth")),
    Layer("source_bytes", "sources too large to compile", _both("source_bytes")),
    Layer("input_bytes", "inputs too large to hold", _both("input_bytes")),
    Layer(
        "strict_json",
        "values that two parsers read differently: NaN, duplicate keys, numbers out of range",
        Weakening(host="naive"),
    ),
    Layer("call_table", "calls by names that are not in the table", Weakening(host="naive")),
    Layer("safe_errors", "text of our own exceptions in what a script can read", Weakening(host="naive")),
    Layer("primordials", "built-ins that a script replaced before the glue uses them", _realm("live_builtins")),
    Layer("host_names", "a way from the script's global scope to the host's functions", _realm("host_names")),
    Layer("removed_globals", "shared memory and fine clocks", _realm("all_globals")),
    Layer("coarse_clock", "timing finer than a millisecond", _worker("fine_clock")),
    Layer("glue_lists", "setters on shared prototypes: the glue never writes by an ordinary assignment", None),
    Layer("written_once", "a value that changes between check and use", _realm("written_twice")),
    Layer("reseed", "the same random numbers in every fork", _worker("same_seed")),
    Layer("loader", "modules that are not part of the script", _worker("open_loader")),
    Layer("parent_verdict", "a worker's or a script's own word about how it ended", None),
    Layer("empty_meta", "what a module could learn of the place where it lies", None),
    Layer("source_text", "compiled code in place of source text", None),
    Layer("no_paths", "paths and names of the host in what a script can read", _worker("tell_all")),
    Layer("strict_result", "results that two parsers read differently", None),
    Layer("name_check", "names of calls and modules that are no names, or ours", None),
    Layer("flat_text", "objects, functions and handles: nothing but text crosses", None),
    Layer("birth", "what a worker inherits: it is born with one socket, no environment, no thread", None),
    Layer("call_state", "two answers to one call, answers to no call", None),
)

LAYERS: dict[str, Layer] = {
    **{wall.name: Layer(wall.name, wall.holds_off, Weakening(without=frozenset({wall.name}))) for wall in WALLS},
    **{layer.name: layer for layer in _INNER},
}
