"""Weakenings: how the matrix removes each layer, to prove that the suite detects the escape.

The matrix's boot program (:mod:`tests.escape.matrix.boot`) leaves out process walls, the weakened runtimes replace parts of the worker, a
realm is baked without a part, and limits are raised on one side of the socket or both. Limits are raised only so far that the escape is
visible, because the attacks must end.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lodger.escape.case import Case
from lodger.sandbox.doctor import WALLS
from lodger.sandbox.limits import LIMITS, MIB

MAXIMUM = {spec.name: spec.maximum for spec in LIMITS}
#: Bytes beyond the memory limit that a weakened runtime may use: more than the evidence tolerates.
EXCESS_BYTES = 96 * MIB


@dataclass(frozen=True, slots=True)
class Weakening:
    """Layers to remove.

    Attributes:
        without: process walls.
        worker: switches of the weakened runtimes.
        realm: edits of the realm's sources.
        parent: limits that the parent enforces.
        header: limits that the worker enforces.
        late_cpu_ms: delay of the parent's CPU deadline.
        late_wall_ms: delay of the parent's wall deadline.
        keeps_frames: whether the parent keeps every stack frame of an error.
        settings: other settings of the zygote.
        compiling: CPU milliseconds and bytes of one compilation.
        engine: layers removed from the host of a case or from the engine.
        host: "naive" for a careless host and parent; "same_realm" to run the next tenant's script in the same realm.
    """

    without: frozenset[str] = frozenset()
    worker: frozenset[str] = frozenset()
    realm: frozenset[str] = frozenset()
    parent: Mapping[str, int] = field(default_factory=dict)
    header: Mapping[str, int] = field(default_factory=dict)
    late_cpu_ms: int = 0
    late_wall_ms: int = 0
    keeps_frames: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    compiling: tuple[int, int] | None = None
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
            self.keeps_frames or other.keeps_frames,
            {**self.settings, **other.settings},
            self.compiling or other.compiling,
            self.engine | other.engine,
            self.host or other.host,
        )


def _parent(*names: str) -> Weakening:
    return Weakening(parent={name: MAXIMUM[name] for name in names})


def _header(*names: str) -> Weakening:
    return Weakening(header={name: MAXIMUM[name] for name in names})


def _both(*names: str) -> Weakening:
    return _parent(*names) | _header(*names)


def _worker(*switches: str) -> Weakening:
    return Weakening(worker=frozenset(switches))


def _realm(edit: str) -> Weakening:
    return Weakening(realm=frozenset({edit}))


_LOG = ("log_lines", "log_bytes", "log_line_bytes")
_OUTPUT = ("result_bytes", "frame_bytes")
_NAIVE = Weakening(host="naive")
_SHORT_STACK = Weakening(settings={"stack_bytes": str(1 << 20)})  # half of what a guest may use
_OF_THE_ENGINE = [
    "tenant_predicate", "tenant_keys", "grants", "bound_values", "budgets", "mail_checks", "closed_addresses",
    "one_reading", "bounded_rules", "known_zones", "linear_patterns", "file_names", "marked_lines", "limited_node",
]  # fmt: skip

#: Maps a layer to its weakening.
WEAKENINGS: dict[str, Weakening] = {
    **{wall.name: Weakening(without=frozenset({wall.name})) for wall in WALLS},
    # time
    "soft_stop": _worker("no_soft_stop"),
    "cpu_watch": Weakening(late_cpu_ms=1000, late_wall_ms=8000),
    "wall_clock": Weakening(late_wall_ms=4500),
    # memory
    "store_limit": _worker("no_store_limit"),
    "engine_memory": _worker("no_engine_memory"),
    "table_limit": _worker("no_table_limit"),
    "guest_stack": _SHORT_STACK,
    "engine_stack": _SHORT_STACK | _worker("no_engine_stack"),
    "checked_pointers": _worker("unchecked_pointers"),
    "fresh_process": Weakening(host="same_realm"),
    # floods
    "worker_output": _header(*_OUTPUT),
    "parent_output": _parent(*_OUTPUT),
    "worker_log": _header(*_LOG),
    "parent_log": _parent(*_LOG),
    "host_calls": _both("host_calls"),
    "frame_limit": _both("frame_bytes"),
    "json_depth": _both("json_depth"),
    "source_bytes": _both("source_bytes"),
    "wasm_bytes": _both("wasm_bytes"),
    "input_bytes": _both("input_bytes"),
    "compile_limits": Weakening(compiling=(1200, 512 * MIB)),
    # data exchanged with scripts
    "strict_json": _NAIVE,
    "call_table": _NAIVE,
    "safe_errors": _NAIVE,
    "bound_tenant": _NAIVE,
    "one_verdict": _NAIVE | _worker("goes_on"),
    "claimed_outcomes": _NAIVE,
    "checked_result": _NAIVE,
    "parent_verdict": _worker("believes_errors"),
    "call_state": _worker("mixed_answers"),
    "name_check": _NAIVE | _realm("any_name"),
    "flat_text": _realm("lenient_text"),
    "plain_answers": _realm("live_answers"),
    "own_frames": Weakening(keeps_frames=True),
    # the realm
    "primordials": _realm("live_builtins"),
    "glue_lists": _realm("assigned_lists"),
    "host_names": _realm("host_names"),
    "removed_globals": _realm("all_globals"),
    "written_once": _realm("written_twice"),
    "hidden_frames": _realm("shown_frames"),
    "coarse_clock": _worker("fine_clock"),
    "reseed": _worker("same_seed"),
    "loader": _worker("open_loader"),
    "empty_meta": _worker("told_place"),
    "source_text": _worker("takes_binaries"),
    "no_paths": _worker("tell_all"),
    # WebAssembly commands
    "nothing_opened": _worker("opened"),
    "no_arguments": _worker("arguments"),
    "closed_imports": _worker("any_import"),
    "proposals_off": _worker("proposals"),
    "one_nan": _worker("any_nan"),
    "checked_code": _worker("takes_binaries"),
    # creation of a worker
    "birth": Weakening(without=frozenset({"seccomp", "rlimits"}), worker=frozenset({"careless_birth"})),
    # the engine behind the sandbox
    **{name: Weakening(engine=frozenset({name})) for name in _OF_THE_ENGINE},
}

#: Maps the prefix of a case's id to a weakening that replaces that of its layer.
BY_CASE = {
    "E91-groups": Weakening(without=frozenset({"uid"}), worker=frozenset({"careless_zygote"})),
    "D66-residue": _worker("shared_notes"),
    "A2-converted-": _worker("converts") | _realm("kept_result"),
}


def of(case: Case) -> Weakening:
    """Return the weakening that removes the layer of a case."""
    own = next((weak for begin, weak in BY_CASE.items() if case.id.startswith(begin)), None)
    return own or WEAKENINGS[case.wall]


def of_others(case: Case) -> Weakening:
    """Return the weakening that removes the other layers that stop a case."""
    weak = Weakening()
    for name in case.behind:
        weak |= WEAKENINGS[name]
    return weak
