"""Chapter E, from outside: the walls of a waiting worker, one by one, as the kernel reports them.

Attacks by native code inside a worker are in tests/escape, because an installed Lodger cannot run them.
"""

from lodger.escape.attack_files import cases_of
from lodger.escape.case import COMMANDS, SCRIPTS, Case
from lodger.escape.evidence import fact
from lodger.escape.modules import command
from lodger.escape.worker_facts import NEEDLE, inspect_worker, residue

ALL = (*SCRIPTS, *COMMANDS)
_BIRTH = ("root", "namespaces")
#: class, wall, fact, correct values, what an attack would use otherwise, other walls that stop it too
_FACTS: tuple[tuple[int, str, str, tuple[str, ...], str, tuple[str, ...]], ...] = (
    (73, "seccomp", "seccomp", ("filter",), "any system call", ()),
    (89, "seccomp", "filters", ("2",), "calls that only arming needs", ()),
    (75, "no_new_privs", "no_new_privs", ("1",), "set-uid programs", ("seccomp", "landlock")),
    (91, "uid", "capabilities", ("none",), "a capability that was left", ("namespaces",)),
    (77, "uid", "uid", ("its own",), "what belongs to the engine's user", ("namespaces",)),
    (91, "uid", "gid", ("its own",), "what belongs to the engine's group", ("namespaces",)),
    (91, "uid", "groups", ("none",), "a group that was kept", ("namespaces",)),
    (30, "rlimits", "limit of processes", ("zero",), "forks", ()),
    (32, "rlimits", "limit of file size", ("zero",), "filling a disk", ()),
    (81, "rlimits", "limit of core", ("zero",), "a core dump with a tenant's data", ()),
    (31, "rlimits", "limit of open files", ("small",), "descriptors without end", ()),
    (90, "rlimits", "limit of locked memory", ("zero",), "memory that cannot be swapped", ()),
    (85, "rlimits", "limit of message queues", ("zero",), "message queues", ()),
    (23, "rlimits", "limit of data", ("bounded",), "memory past the engine's own count", ()),
    (15, "rlimits", "limit of cpu seconds", ("small", "bounded"), "CPU time when every clock of ours fails", ()),
    (15, "cpu_timer", "cpu timer", ("armed",), "CPU time while the parent is slow", ()),
    (95, "oom", "oom score", ("1000",), "memory shortage that takes the engine", ()),
    (77, "namespaces", "pid namespace", ("its own",), "other processes", ()),
    (78, "namespaces", "pids", ("its own numbers",), "signals to pids of the host", ()),
    (87, "namespaces", "net namespace", ("its own",), "the network", ()),
    (87, "namespaces", "network devices", ("none",), "a network device", ()),
    (87, "namespaces", "routes", ("none",), "a route", ()),
    (83, "namespaces", "mnt namespace", ("its own",), "mounts", ("root",)),
    (85, "namespaces", "ipc namespace", ("its own",), "shared memory of the host", ()),
    (80, "namespaces", "uts namespace", ("its own",), "the host's name", ()),
    (91, "namespaces", "user namespace", ("its own",), "users of the host", ()),
    (74, "root", "root", ("empty",), "any file", ()),
    (74, "root", "mounts", ("one, read-only",), "a writable mount", ()),
    # how a worker is created, not a single wall
    (79, "birth", "descriptors", ("one socket",), "a descriptor that was inherited", _BIRTH),
    (80, "birth", "arguments", ("no secret",), "a secret among the arguments", _BIRTH),
    (80, "birth", "working folder", ("/",), "a working folder of the engine", _BIRTH),
    (93, "birth", "threads", ("1",), "a thread without a filter", _BIRTH),
    (77, "birth", "traced", ("no",), "a tracer that was let in", _BIRTH),
    (85, "birth", "shared memory", ("none",), "memory shared with another worker", _BIRTH),
    (34, "birth", "terminated", ("not ignored",), "a signal that is ignored", _BIRTH),
    (76, "seccomp", "writable code", ("none",), "memory that is writable and executable: trampolines of our own callbacks", ()),
)  # fmt: skip


def _id(number: int, name: str) -> str:
    """Return the id of a case from its number and name."""
    return f"{'B' if number < 37 else 'E'}{number}-{name.replace(' ', '-').replace('_', '-')}"


CASES = [
    *(
        Case(
            _id(number, name),
            wall,
            what,
            "await bridge.call('hold', null); return true;",
            seen=fact(name, *wanted),
            story="While the script waits, the kernel's view of the worker shows its walls.",
            behind=behind,
            inspect=inspect_worker,
            limits={"wall_ms": 5000},
            runtimes=("quickjs", "wasm") if name == "writable code" else ALL,
            on={"wasm": {"wasm": lambda: command("(call $hold)"), "script": ""}},
        )
        for number, wall, name, wanted, what, behind in _FACTS
    ),
    Case(
        "D66-residue",
        "birth",
        "a tenant's bytes in the memory of the zygote and of other workers",
        f"const kept = '{NEEDLE.decode()}'; await bridge.call('hold', null); return kept.length;",
        seen=fact("residue", "none"),
        story="While a script waits, the memory of the zygote and of other workers is searched for its text.",
        inspect=residue,
        context=f'{{"action":{{"id":"escape"}},"word":"{NEEDLE.decode()}"}}',
        limits={"wall_ms": 8000},
        runtimes=ALL,
        on={"wasm": {"wasm": lambda: command("(drop (call $in (i32.const 4096))) (call $hold)"), "script": ""}},
    ),
    *cases_of(__file__),
]
