"""The layers of the wall that cases name: what each stops, and how the matrix takes it away to prove that the suite can see.

A process wall is taken away in the zygote (setting ``without``), a part of the worker by the weakened runtimes
(:mod:`lodger.sandbox.escape.weakened` and its siblings), a part of the realm by baking it without
(:mod:`lodger.sandbox.escape.realms`), a limit by lifting it on one side of the socket or on both. What is lifted is lifted far enough to be
seen and no further: the attacks of the matrix must end.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from lodger.sandbox.limits import LIMITS, MIB
from lodger.sandbox.wall import WALLS

_NONE: Mapping[str, int] = MappingProxyType({})
_MOST = {spec.name: spec.maximum for spec in LIMITS}


@dataclass(frozen=True, slots=True)
class Weakening:
    """What to take away.

    Attributes:
        without: process walls.
        worker: switches of the weakened runtimes.
        realm: edits of the realm's sources.
        parent: limits as the parent holds them.
        header: limits as the worker is told them.
        late_cpu_ms: by how much the parent's look at the worker's CPU clock comes late.
        late_wall_ms: the same of its own clock.
        settings: what the zygote is told otherwise.
        engine: layers that the host of a case, or the engine that it asks, is to lack.
        host: "naive" answers calls, and takes results, the way a careless host would; "same_realm" runs the next tenant's script in the
            same realm.
    """

    without: frozenset[str] = frozenset()
    worker: frozenset[str] = frozenset()
    realm: frozenset[str] = frozenset()
    parent: Mapping[str, int] = field(default_factory=lambda: _NONE)
    header: Mapping[str, int] = field(default_factory=lambda: _NONE)
    late_cpu_ms: int = 0
    late_wall_ms: int = 0
    settings: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    engine: frozenset[str] = frozenset()
    host: str = ""

    def __or__(self, other: "Weakening") -> "Weakening":
        return Weakening(
            self.without | other.without,
            self.worker | other.worker,
            self.realm | other.realm,
            {**self.parent, **other.parent},
            {**self.header, **other.header},
            max(self.late_cpu_ms, other.late_cpu_ms),
            max(self.late_wall_ms, other.late_wall_ms),
            {**self.settings, **other.settings},
            self.engine | other.engine,
            self.host or other.host,
        )


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer and how it is taken away."""

    name: str
    stops: str
    weakening: Weakening


def _parent(*names: str) -> Weakening:
    return Weakening(parent={name: _MOST[name] for name in names})


def _header(*names: str) -> Weakening:
    return Weakening(header={name: _MOST[name] for name in names})


def _both(*names: str) -> Weakening:
    return _parent(*names) | _header(*names)


def _worker(*switches: str) -> Weakening:
    return Weakening(worker=frozenset(switches))


def _realm(edit: str) -> Weakening:
    return Weakening(realm=frozenset({edit}))


_LOG = ("log_lines", "log_bytes", "log_line_bytes")
_NAIVE = Weakening(host="naive")
_SHORT_STACK = Weakening(settings={"stack_bytes": str(1 << 20)})  # half of what a guest may use of it

_CLOCKS = (
    Layer("soft_stop", "a script that runs too long, where its engine looks at the clock", _worker("no_soft_stop")),
    Layer(
        "cpu_watch",
        "CPU time beyond the limit, read by the parent from the worker's clock",
        Weakening(late_cpu_ms=250, late_wall_ms=5000),
    ),
    Layer("wall_clock", "a script that waits for ever: the parent's own deadline", Weakening(late_wall_ms=1300)),
    Layer("fuel", "too many instructions, the same number on every machine", _worker("no_fuel")),
)
_MEMORY = (
    Layer("store_limit", "linear memory of the guest beyond the limit", _worker("no_store_limit")),
    Layer("engine_memory", "memory of the native engine beyond the limit", _worker("no_engine_memory")),
    Layer("table_limit", "tables of a module beyond all need", _worker("no_table_limit")),
    Layer("guest_stack", "recursion: the guest's stack ends in a trap, not in the worker's memory", _SHORT_STACK),
    Layer("engine_stack", "recursion: the native engine looks at its stack", _SHORT_STACK | _worker("no_engine_stack")),
    Layer(
        "checked_pointers",
        "addresses and lengths that point outside the guest's memory",
        _worker("unchecked_pointers"),
    ),
    Layer("fresh_process", "what one attempt leaves behind for the next", Weakening(host="same_realm")),
)
_FLOODS = (
    Layer("worker_output", "a large result, before it leaves the guest", _header("result_bytes", "frame_bytes")),
    Layer("parent_output", "a large result, before the parent copies it", _parent("result_bytes", "frame_bytes")),
    Layer("worker_log", "a flood of log lines, where it is cheap to stop", _header(*_LOG)),
    Layer("parent_log", "a flood of log lines that a worker did not stop", _parent(*_LOG)),
    Layer("host_calls", "too many calls of the host", _both("host_calls")),
    Layer("frame_limit", "arguments larger than a frame", _both("frame_bytes")),
    Layer("json_depth", "values nested to break a recursive parser", _both("json_depth")),
    Layer("source_bytes", "sources too large to compile", _both("source_bytes")),
    Layer("wasm_bytes", "modules too large to compile", _both("wasm_bytes")),
    Layer("input_bytes", "inputs too large to hold", _both("input_bytes")),
    Layer(
        "compile_limits",
        "modules that are bombs to compile: they are compiled in a limited worker",
        Weakening(settings={"escape_compiling": f"1200 {512 * MIB}"}),
    ),
)
_CROSSING = (
    Layer("strict_json", "values that two parsers read differently: NaN, duplicate keys, numbers out of range", _NAIVE),
    Layer("call_table", "calls by names that are not in the table", _NAIVE),
    Layer("safe_errors", "text of our own exceptions in what a script can read", _NAIVE),
    Layer("bound_tenant", "a name for oneself inside a call: who asks is known by the socket", _NAIVE),
    Layer(
        "one_verdict", "what comes after the answer: the parent decides once, and kills", _NAIVE | _worker("goes_on")
    ),
    Layer("claimed_outcomes", "a worker's own word about what only the parent can know", _NAIVE),
    Layer("parent_verdict", "a script's own word about how it ended", _worker("believes_errors")),
    Layer("call_state", "answers in another order than the calls", _worker("mixed_answers")),
    Layer("name_check", "names of calls that are no names", _NAIVE | _realm("any_name")),
    Layer("flat_text", "objects, functions and handles: nothing but text crosses", _realm("lenient_text")),
    Layer("plain_answers", "answers that are code or change prototypes: they are data", _realm("live_answers")),
)
_REALM = (
    Layer("primordials", "built-ins that a script replaced before the glue uses them", _realm("live_builtins")),
    Layer("glue_lists", "setters on shared prototypes: the glue never assigns", _realm("assigned_lists")),
    Layer("host_names", "a way from the script's global scope to the host's functions", _realm("host_names")),
    Layer("removed_globals", "shared memory and fine clocks", _realm("all_globals")),
    Layer("written_once", "a value that changes between check and use", _realm("written_twice")),
    Layer("hidden_frames", "the glue's own frames and hooks on them", _realm("shown_frames")),
    Layer("coarse_clock", "timing finer than a millisecond", _worker("fine_clock") | _realm("fine_clock")),
    Layer("reseed", "the same random numbers in every fork", _worker("same_seed")),
    Layer("loader", "modules that are not part of the script", _worker("open_loader")),
    Layer("empty_meta", "what a module could learn of the place where it lies", _worker("told_place")),
    Layer("source_text", "compiled code in place of source text", _worker("takes_binaries")),
    Layer("no_paths", "paths and names of the host in what a script can read", _worker("tell_all")),
)
_COMMANDS = (
    Layer(
        "nothing_opened", "files: a command is given no folder and no descriptor beyond its streams", _worker("opened")
    ),
    Layer("no_arguments", "arguments and environment: a command has none", _worker("arguments")),
    Layer("closed_imports", "imports that nobody granted", _worker("any_import")),
    Layer("proposals_off", "parts of WebAssembly that no command needs", _worker("proposals")),
    Layer("one_nan", "bits of the processor in what a command computes", _worker("any_nan")),
    Layer("checked_result", "results that are not one JSON value", _NAIVE),
    Layer("checked_code", "compiled code that a tenant supplies", _worker("takes_binaries")),
)
_BIRTH = (
    Layer(
        "birth",
        "what a worker inherits: it is born with one socket, no environment, no thread",
        Weakening(without=frozenset({"seccomp", "rlimits"}), worker=frozenset({"careless_birth"})),
    ),
)


def _engine(name: str, stops: str) -> Layer:
    return Layer(name, stops, Weakening(engine=frozenset({name})))


_ENGINE = (
    _engine("tenant_predicate", "rows of another tenant: one predicate, written in one place"),
    _engine("tenant_keys", "keys of another tenant"),
    _engine("grants", "sets, columns, secrets and calls that were not granted"),
    _engine("bound_values", "values and names that become part of a statement"),
    _engine("budgets", "more questions, rows and mails than one attempt may have"),
    _engine("mail_checks", "a mail that is more than one mail"),
    _engine("closed_addresses", "requests to this host, its network and its metadata"),
    _engine("one_reading", "addresses that two parsers read differently"),
    _engine("bounded_rules", "rules made to be searched for ever"),
    _engine("known_zones", "zones that are paths"),
    _engine("linear_patterns", "texts made for patterns that try everything"),
)

LAYERS: dict[str, Layer] = {
    **{wall.name: Layer(wall.name, wall.holds_off, Weakening(without=frozenset({wall.name}))) for wall in WALLS},
    **{
        layer.name: layer
        for layer in (*_CLOCKS, *_MEMORY, *_FLOODS, *_CROSSING, *_REALM, *_COMMANDS, *_BIRTH, *_ENGINE)
    },
}

#: What stands in the place of a layer of runtime ``quickjs`` where the engine is native.
_NATIVE = {
    "store_limit": "engine_memory",
    "guest_stack": "engine_stack",
    "soft_stop": "cpu_timer",
    "fuel": "cpu_timer",
}

#: What the memory of a weakened runtime may hold beyond the limit: more than evidence overlooks.
EXCESS_BYTES = 96 * MIB


def on_runtime(name: str, runtime: str) -> str:
    """Give the layer that stands in its place on a runtime."""
    return _NATIVE.get(name, name) if runtime == "quickjs-native" else name
