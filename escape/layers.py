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
    Layer("soft_stop", "a script that runs too long, where its engine looks at the clock"),
    Layer("cpu_watch", "CPU time beyond the limit, read by the parent from the worker's clock"),
    Layer("wall_clock", "a script that waits for ever: the parent's own deadline"),
    Layer("fuel", "too many instructions, the same number on every machine"),
    # memory
    Layer("store_limit", "linear memory of the guest beyond the limit"),
    Layer("engine_memory", "memory of the native engine beyond the limit"),
    Layer("table_limit", "tables of a module beyond all need"),
    Layer("guest_stack", "recursion: the guest's stack ends in a trap, not in the worker's memory"),
    Layer("engine_stack", "recursion: the native engine looks at its stack"),
    Layer("checked_pointers", "addresses and lengths that point outside the guest's memory"),
    Layer("fresh_process", "what one attempt leaves behind for the next"),
    # floods
    Layer("worker_output", "a large result, before it leaves the guest"),
    Layer("parent_output", "a large result, before the parent copies it"),
    Layer("worker_log", "a flood of log lines, where it is cheap to stop"),
    Layer("parent_log", "a flood of log lines that a worker did not stop"),
    Layer("host_calls", "too many calls of the host"),
    Layer("frame_limit", "arguments larger than a frame"),
    Layer("json_depth", "values nested to break a recursive parser"),
    Layer("source_bytes", "sources too large to compile"),
    Layer("wasm_bytes", "modules too large to compile"),
    Layer("input_bytes", "inputs too large to hold"),
    Layer("compile_limits", "modules that are bombs to compile: they are compiled in a limited worker"),
    # data exchanged with scripts
    Layer("strict_json", "values that two parsers read differently: NaN, duplicate keys, numbers out of range"),
    Layer("call_table", "calls by names that are not in the table"),
    Layer("safe_errors", "text of our own exceptions in what a script can read"),
    Layer("bound_tenant", "a name for oneself inside a call: who asks is known by the socket"),
    Layer("one_verdict", "what comes after the answer: the parent decides once, and kills"),
    Layer("claimed_outcomes", "a worker's own word about what only the parent can know"),
    Layer("parent_verdict", "a script's own word about how it ended"),
    Layer("call_state", "answers in another order than the calls"),
    Layer("name_check", "names of calls that are no names"),
    Layer("flat_text", "objects, functions and handles: nothing but text crosses"),
    Layer("plain_answers", "answers that are code or change prototypes: they are data"),
    Layer("own_frames", "places in an error's stack that lie outside the script's own modules"),
    # the realm
    Layer("primordials", "built-ins that a script replaced before the glue uses them"),
    Layer("glue_lists", "setters on shared prototypes: the glue never assigns"),
    Layer("host_names", "a way from the script's global scope to the host's functions"),
    Layer("removed_globals", "shared memory and fine clocks"),
    Layer("written_once", "a value that changes between check and use"),
    Layer("hidden_frames", "the glue's own frames and hooks on them"),
    Layer("coarse_clock", "timing finer than a millisecond"),
    Layer("reseed", "the same random numbers in every fork"),
    Layer("loader", "modules that are not part of the script"),
    Layer("empty_meta", "what a module could learn of the place where it lies"),
    Layer("source_text", "compiled code in place of source text"),
    Layer("no_paths", "paths and names of the host in what a script can read"),
    # WebAssembly commands
    Layer("nothing_opened", "files: a command is given no folder and no descriptor beyond its streams"),
    Layer("no_arguments", "arguments and environment: a command has none"),
    Layer("closed_imports", "imports that nobody granted"),
    Layer("proposals_off", "parts of WebAssembly that no command needs"),
    Layer("one_nan", "bits of the processor in what a command computes"),
    Layer("checked_result", "results that are not one JSON value"),
    Layer("checked_code", "compiled code that a tenant supplies"),
    # creation of a worker
    Layer("birth", "what a worker inherits: it is born with one socket, no environment, no thread"),
    # the engine behind the sandbox
    Layer("tenant_predicate", "rows of another tenant: one predicate, written in one place"),
    Layer("tenant_keys", "keys of another tenant"),
    Layer("grants", "sets, columns, secrets and calls that were not granted"),
    Layer("bound_values", "values and names that become part of a statement"),
    Layer("budgets", "more questions, rows and mails than one attempt may have"),
    Layer("mail_checks", "a mail that is more than one mail"),
    Layer("closed_addresses", "requests to this host, its network and its metadata"),
    Layer("one_reading", "addresses that two parsers read differently"),
    Layer("bounded_rules", "rules made to be searched for ever"),
    Layer("known_zones", "zones that are paths"),
    Layer("linear_patterns", "texts made for patterns that try everything"),
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
    "fuel": "cpu_timer",
}


def on_runtime(name: str, runtime: str) -> str:
    """Return the name of a layer's counterpart on a runtime."""
    return _NATIVE.get(name, name) if runtime == "quickjs-native" else name
