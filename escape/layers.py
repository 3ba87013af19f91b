"""The layers that cases name, with what each one stops: the walls of the sandbox, and further checks of runtime and engine."""

from dataclasses import dataclass

from lodger.sandbox.doctor import WALLS


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer and what it stops."""

    name: str
    stops: str


_OTHERS = (
    # time
    Layer("soft_stop", "a script that runs too long, where its engine polls the interrupt handler"),
    Layer("cpu_watch", "CPU time beyond the limit, read by the parent from the worker's clock"),
    Layer("wall_clock", "a script that waits forever, by the parent's deadline"),
    # memory
    Layer("store_limit", "linear memory of the guest beyond the limit"),
    Layer("engine_memory", "memory of the native engine beyond the limit"),
    Layer("table_limit", "large tables of a module"),
    Layer("guest_stack", "recursion, by a trap at the end of the guest's stack"),
    Layer("engine_stack", "recursion, by stack checks of the native engine"),
    Layer("checked_pointers", "addresses and lengths that point outside the guest's memory"),
    Layer("fresh_process", "state left by one attempt for the next"),
    # floods
    Layer("worker_output", "a large result, before it leaves the guest"),
    Layer("parent_output", "a large result, before the parent copies it"),
    Layer("worker_log", "a flood of log lines, in the worker"),
    Layer("parent_log", "a flood of log lines, in the parent"),
    Layer("host_calls", "too many calls of the host"),
    Layer("frame_limit", "arguments larger than a frame"),
    Layer("json_depth", "values nested too deeply for a recursive parser"),
    Layer("source_bytes", "sources too large to compile"),
    Layer("wasm_bytes", "modules too large to compile"),
    Layer("input_bytes", "inputs too large to hold"),
    Layer("compile_limits", "modules that are costly to compile, by limits of the compiling worker"),
    # data exchanged with scripts
    Layer("strict_json", "values that two parsers read differently: NaN, duplicate keys, numbers out of range"),
    Layer("call_table", "calls with unknown names"),
    Layer("safe_errors", "texts of host exceptions in what a script can read"),
    Layer("bound_tenant", "claimed identities in calls: the socket identifies the tenant"),
    Layer("one_verdict", "frames after the answer: the parent decides once and kills the worker"),
    Layer("claimed_outcomes", "outcomes claimed by a worker that only the parent may decide"),
    Layer("parent_verdict", "outcomes claimed by a script's error"),
    Layer("call_state", "replies in another order than the calls"),
    Layer("name_check", "invalid call names"),
    Layer("flat_text", "objects, functions and handles: only text is exchanged"),
    Layer("plain_answers", "replies that contain code or change prototypes"),
    Layer("own_frames", "stack frames outside the script's modules"),
    # the realm
    Layer("primordials", "built-ins that a script replaced before the glue uses them"),
    Layer("glue_lists", "setters on shared prototypes, because the glue never assigns"),
    Layer("host_names", "a way from the script's global scope to the host's functions"),
    Layer("removed_globals", "shared memory and precise clocks"),
    Layer("written_once", "a value that changes between check and use"),
    Layer("hidden_frames", "the glue's stack frames and hooks on them"),
    Layer("coarse_clock", "timing finer than a millisecond"),
    Layer("reseed", "the same random numbers in every fork"),
    Layer("loader", "modules that are not part of the script"),
    Layer("empty_meta", "metadata of a module, such as its location"),
    Layer("source_text", "compiled code instead of source text"),
    Layer("no_paths", "paths and names of the host in what a script can read"),
    # WebAssembly commands
    Layer("nothing_opened", "files: a command has no folder and no descriptor beyond its streams"),
    Layer("no_arguments", "arguments and environment: a command has none"),
    Layer("closed_imports", "imports that do not exist"),
    Layer("proposals_off", "disabled parts of WebAssembly"),
    Layer("one_nan", "NaN bits that reveal the processor"),
    Layer("checked_result", "results that are not one JSON value"),
    Layer("checked_code", "compiled code supplied by a tenant"),
    # creation of a worker
    Layer("birth", "inherited descriptors, environment and threads: a worker has one socket only"),
    # the engine behind the sandbox
    Layer("tenant_predicate", "rows of another tenant, by one predicate"),
    Layer("tenant_keys", "keys of another tenant"),
    Layer("grants", "sets, columns, secrets and calls that were not granted"),
    Layer("bound_values", "values and names that become part of a statement"),
    Layer("budgets", "more queries, rows and mails than one attempt may have"),
    Layer("mail_checks", "a mail that contains several mails"),
    Layer("closed_addresses", "requests to this host, its network and its metadata service"),
    Layer("one_reading", "addresses that two parsers read differently"),
    Layer("bounded_rules", "rules that would be searched forever"),
    Layer("known_zones", "zones that are paths"),
    Layer("linear_patterns", "texts that are costly for backtracking patterns"),
    Layer("file_names", "files of scripts that tools take for their own"),
    Layer("marked_lines", "texts of scripts that look like other lines of a log"),
    Layer("limited_node", "files, programs and signals of Node.js that answers for a tenant"),
)

LAYERS: dict[str, Layer] = {
    **{wall.name: Layer(wall.name, wall.holds_off) for wall in WALLS},
    **{layer.name: layer for layer in _OTHERS},
}

#: Maps a layer of runtime ``quickjs`` to its counterpart on ``quickjs-native``.
_NATIVE = {
    "store_limit": "engine_memory",
    "guest_stack": "engine_stack",
    "soft_stop": "cpu_timer",
}


def on_runtime(name: str, runtime: str) -> str:
    """Return the name of a layer's counterpart on a runtime."""
    return _NATIVE.get(name, name) if runtime == "quickjs-native" else name
