"""Attacks of native code inside a worker, written as Python, with their expected results.

``call(name, …)`` is a raw system call and returns its result, a negative errno on failure. ``ids`` holds the process ids of the engine, the
zygote and a sibling as seen from outside, and the canary's path and port.
"""

import platform
from dataclasses import dataclass

#: name: (x86_64, aarch64), from the kernel's tables; -1 where there is none.
CALLS = {
    "write": (1, 64), "openat": (257, 56), "openat2": (437, 437), "open_by_handle_at": (304, 265), "statx": (332, 291),
    "readlinkat": (267, 78), "mkdirat": (258, 34), "unlinkat": (263, 35), "fchmodat": (268, 53), "symlinkat": (266, 36),
    "linkat": (265, 37), "renameat2": (316, 276), "truncate": (76, 45), "chdir": (80, 49), "execve": (59, 221), "execveat": (322, 281),
    "memfd_create": (319, 279), "clone": (56, 220), "clone3": (435, 435), "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40),
    "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "fsopen": (430, 430), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272), "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438), "kill": (62, 129), "rt_sigqueueinfo": (129, 138), "io_uring_setup": (425, 425), "add_key": (248, 217),
    "keyctl": (250, 219), "socket": (41, 198), "connect": (42, 203), "bind": (49, 200), "sendmsg": (46, 211), "shmget": (29, 194),
    "semget": (64, 190), "mq_open": (240, 180), "userfaultfd": (323, 282), "fanotify_init": (300, 262), "flock": (73, 32),
    "bpf": (321, 280), "perf_event_open": (298, 241), "kexec_load": (246, 104), "init_module": (175, 105), "finit_module": (313, 273),
    "reboot": (169, 142), "settimeofday": (164, 170), "clock_settime": (227, 112), "swapon": (167, 224), "quotactl": (179, 60),
    "syslog": (103, 116), "acct": (163, 89), "sethostname": (170, 161), "prctl": (157, 167), "iopl": (172, -1),
    "personality": (135, 92), "seccomp": (317, 277), "capset": (126, 91), "setuid": (105, 146), "setgid": (106, 144),
    "setgroups": (116, 159), "setrlimit": (160, 164), "prlimit64": (302, 261), "setpriority": (141, 140),
    "sched_setscheduler": (144, 119), "mlockall": (151, 230), "timer_settime": (223, 110), "timer_delete": (226, 111), "mmap": (9, 222),
    "mprotect": (10, 226), "pkey_mprotect": (329, 288), "mount_setattr": (442, 442), "open_tree": (428, 428),
    "name_to_handle_at": (303, 264), "futex": (202, 98), "madvise": (28, 233), "clock_gettime": (228, 113),
}  # fmt: skip
NUMBERS = {name: pair[platform.machine() == "aarch64"] for name, pair in CALLS.items()}

PRELUDE = """
NUMBERS = {numbers}
ids = {ids}
keep = []
def text(words): keep.append(ctypes.create_string_buffer(words.encode())); return keep[-1]
def room(size): keep.append(ctypes.create_string_buffer(size)); return keep[-1]
def call(name, *words): return syscall(NUMBERS[name], *words)
AT = -100
"""


@dataclass(frozen=True)
class Attack:
    """One attack of native code.

    Attributes:
        code: ends by ``answer`` with the result; a negative number if it was denied.
        held: result with all walls: ``killed``, or the number.
        bare: allowed results without the system call filter, when the other walls must hold; empty if only the filter stops it.
    """

    name: str
    code: str
    held: str = "killed"
    bare: tuple[int, ...] = ()


EPERM, ENOENT, ESRCH, EBADF, EACCES, EINVAL, ENOSYS, EMFILE, EAGAIN, ENOMEM = (
    -1,
    -2,
    -3,
    -9,
    -13,
    -22,
    -38,
    -24,
    -11,
    -12,
)
NOT_THERE = (ENOENT, EACCES, EPERM)
_ANSWER = "\ndone(str(answer))"


def _open(path: str, flags: int = 0) -> str:
    """Return code that opens a path."""
    return f"answer = min(0, call('openat', AT, text({path}), {flags}, 0o600))"


FILES = (
    Attack("open-passwd", _open("'/etc/passwd'"), bare=NOT_THERE),
    Attack("open-canary", _open("ids['path']"), bare=NOT_THERE),
    Attack("open-canary-write", _open("ids['path']", 2), bare=NOT_THERE),
    Attack("open-up", _open("'../../../../etc/passwd'"), bare=NOT_THERE),
    Attack("open-environment", _open("'/proc/1/environ'"), bare=NOT_THERE),
    Attack("open-own-memory", _open("'/proc/self/mem'", 2), bare=NOT_THERE),
    Attack("open-own-files", _open("'/proc/self/fd/0'"), bare=NOT_THERE),
    Attack("open-kernel-log", _open("'/dev/kmsg'", 1), bare=NOT_THERE),
    Attack("open-shared-memory", _open("'/dev/shm/x'", 0o102), bare=(*NOT_THERE, -30)),
    Attack("open-here", _open("'.'", 0o200000), bare=(0, *NOT_THERE)),
    Attack("create", _open("'/tmp/owned'", 0o101), bare=(*NOT_THERE, -30)),
    Attack("create-here", _open("'/owned'", 0o101), bare=(*NOT_THERE, -30)),
    Attack(
        "open-newer",
        "how = struct.pack('QQQ', 0, 0, 0); answer = min(0, call('openat2', AT, text('/etc/passwd'), how, 24))",
        bare=NOT_THERE,
    ),
    Attack("stat", "answer = call('statx', AT, text('/etc/passwd'), 0, 0xfff, room(512))", bare=NOT_THERE),
    Attack(
        "readlink", "answer = min(0, call('readlinkat', AT, text('/proc/self/exe'), room(256), 256))", bare=NOT_THERE
    ),
    Attack(
        "handle",
        "answer = call('name_to_handle_at', AT, text('/etc/passwd'), room(256), room(8), 0)",
        bare=(*NOT_THERE, -75, -95),
    ),
    Attack(
        "open-by-handle", "answer = min(0, call('open_by_handle_at', AT, room(256), 0))", bare=(EPERM, EINVAL, EBADF)
    ),
    Attack("mkdir", "answer = call('mkdirat', AT, text('/tmp/owned.d'), 0o700)", bare=(*NOT_THERE, -30)),
    Attack("unlink", "answer = call('unlinkat', AT, text(ids['path']), 0)", bare=(*NOT_THERE, -30)),
    Attack("chmod", "answer = call('fchmodat', AT, text(ids['path']), 0o777, 0)", bare=(*NOT_THERE, -30)),
    Attack(
        "symlink", "answer = call('symlinkat', text('/etc/passwd'), AT, text('/tmp/owned.l'))", bare=(*NOT_THERE, -30)
    ),
    Attack(
        "link",
        "answer = call('linkat', AT, text(ids['path']), AT, text('/tmp/owned.h'), 0)",
        bare=(*NOT_THERE, -30, -18),
    ),
    Attack(
        "rename",
        "answer = call('renameat2', AT, text(ids['path']), AT, text('/tmp/owned.r'), 0)",
        bare=(*NOT_THERE, -30, -18),
    ),
    Attack("truncate", "answer = call('truncate', text(ids['path']), 0)", bare=(*NOT_THERE, -30)),
    Attack("chdir", "answer = call('chdir', text('/etc'))", bare=NOT_THERE),
    Attack("chroot", "answer = call('chroot', text('/'))", bare=(EPERM,)),
    Attack("mount", "answer = call('mount', text('none'), text('/'), text('tmpfs'), 0, 0)", bare=(EPERM, EACCES)),
    Attack("mount-proc", "answer = call('mount', text('proc'), text('/'), text('proc'), 0, 0)", bare=(EPERM, EACCES)),
    Attack("mount-new", "answer = min(0, call('fsopen', text('tmpfs'), 0))", bare=(EPERM,)),
    Attack("mount-tree", "answer = min(0, call('open_tree', AT, text('/'), 1))", bare=(EPERM, EACCES)),
    Attack("mount-attributes", "answer = call('mount_setattr', AT, text('/'), 0, room(32), 32)", bare=(EPERM, EINVAL)),
    Attack("unmount", "answer = call('umount2', text('/'), 2)", bare=(EPERM,)),
    Attack("pivot", "answer = call('pivot_root', text('.'), text('.'))", bare=(EPERM,)),
)
_EXECUTE = "argv = (ctypes.c_char_p * 2)(b'x', None); "
PROGRAMS = (
    Attack("execute", _EXECUTE + "answer = call('execve', text('/bin/sh'), argv, argv)", bare=NOT_THERE),
    Attack("execute-self", _EXECUTE + "answer = call('execve', text('/proc/self/exe'), argv, argv)", bare=NOT_THERE),
    Attack(
        "execute-memory",
        _EXECUTE + "made = call('memfd_create', text('x'), 0); wrote = call('write', made, text('#!/bin/sh'), 9)\n"
        "answer = min(0, wrote) or call('execveat', made, text(''), argv, argv, 0x1000)",
        bare=(*NOT_THERE, -8, -27),
    ),
    Attack("fork", "answer = min(0, call('clone', 17, 0, 0, 0, 0))", bare=(EAGAIN,)),
    Attack(
        "fork-newer",
        "answer = min(0, call('clone3', struct.pack('QQQQQQQQ', 0, 0, 0, 0, 17, 0, 0, 0), 64))",
        bare=(EAGAIN,),
    ),
    Attack("thread", "answer = min(0, call('clone', 0x50f00 | 0x10000, 0, 0, 0, 0))", bare=(EAGAIN, EINVAL)),
    Attack("namespaces-own", "answer = call('unshare', 0x10000000)", bare=(0, EPERM, -28, -87)),
    Attack("namespaces-of-others", "answer = call('setns', 0, 0)", bare=(EINVAL, EBADF, EPERM)),
    Attack("user-root", "answer = call('setuid', 0)", bare=(EPERM, EINVAL)),
    Attack("group-root", "answer = call('setgid', 0)", bare=(EPERM, EINVAL)),
    Attack("groups", "answer = call('setgroups', 1, struct.pack('I', 0))", bare=(EPERM,)),
    Attack(
        "capabilities",
        "answer = call('capset', struct.pack('II', 0x20080522, 0), struct.pack('6I', *[0xffffffff] * 6))",
        bare=(EPERM,),
    ),
    Attack("personality", "answer = min(0, call('personality', 0x0040000))", bare=(0,)),
)
_MEMORY = "there = struct.pack('QQ', id(ids) & ~4095, 8); here = struct.pack('QQ', ctypes.addressof(room(8)), 8); "
OTHERS = tuple(
    attack
    for process in ("engine", "zygote", "sibling")
    for attack in (
        Attack(f"trace-{process}", f"answer = call('ptrace', 16, ids['{process}'], 0, 0)", bare=(EPERM, ESRCH)),
        Attack(f"read-{process}", _MEMORY + f"answer = min(0, call('process_vm_readv', ids['{process}'], here, 1, there, 1, 0))", bare=(EPERM, ESRCH)),
        Attack(f"write-{process}", _MEMORY + f"answer = min(0, call('process_vm_writev', ids['{process}'], here, 1, there, 1, 0))", bare=(EPERM, ESRCH)),
        Attack(f"signal-{process}", f"answer = call('kill', ids['{process}'], 0)", bare=(EPERM, ESRCH)),
        Attack(f"queue-{process}", f"answer = call('rt_sigqueueinfo', ids['{process}'], 10, room(128))", bare=(EPERM, ESRCH)),
        Attack(f"compare-{process}", f"answer = min(0, call('kcmp', os.getpid(), ids['{process}'], 0, 0, 0))", bare=(EPERM, ESRCH, ENOSYS)),
        Attack(f"limit-{process}", f"answer = call('prlimit64', ids['{process}'], 7, struct.pack('QQ', 1, 1), 0)", bare=(EPERM, ESRCH)),
    )
) + (
    # The zygote is process 1 of the workers' pid namespace and has their uid: only the filter stops this.
    Attack("signal-first", "answer = call('kill', 1, 9)"),
    Attack("limit-first", "answer = call('prlimit64', 1, 7, struct.pack('QQ', 1, 1), 0)"),
    Attack("signal-all", "answer = call('kill', -1, 9)"),
    Attack("trace-first", "answer = call('ptrace', 16, 1, 0, 0)", bare=(EPERM,)),
    Attack("read-first", _MEMORY + "answer = min(0, call('process_vm_readv', 1, here, 1, there, 1, 0))", bare=(EPERM,)),
    Attack("signal-group", "answer = call('kill', -ids['engine'], 0)", bare=(EPERM, ESRCH)),
    Attack("descriptor-of-engine", "seen = call('pidfd_open', ids['engine'], 0); answer = min(0, seen if seen < 0 else call('pidfd_getfd', seen, 0, 0))", bare=(EPERM, ESRCH, EMFILE)),
)  # fmt: skip
_OWN = "mine = channel._descriptor; "
KERNEL = (
    Attack(
        "io-uring", "answer = min(0, call('io_uring_setup', 8, room(128)))", bare=(EPERM, ENOSYS, ENOMEM, EMFILE, 0)
    ),
    Attack(
        "key-add",
        "answer = min(0, call('add_key', text('user'), text('owned'), text('x'), 1, -3))",
        bare=(ENOSYS, EPERM, EACCES, -126, 0),
    ),
    Attack("key-session", "answer = min(0, call('keyctl', 1, 0, 0, 0, 0))", bare=(ENOSYS, EPERM, 0)),
    Attack("bpf", "answer = min(0, call('bpf', 0, room(128), 128))", bare=(EPERM, ENOSYS, EINVAL)),
    Attack(
        "performance",
        "answer = min(0, call('perf_event_open', room(128), 0, -1, -1, 0))",
        bare=(EPERM, EACCES, ENOSYS, EINVAL, ENOENT, -7),
    ),
    Attack("kexec", "answer = call('kexec_load', 0, 0, 0, 0)", bare=(EPERM, ENOSYS)),
    Attack("module", "answer = call('init_module', 0, 0, text(''))", bare=(EPERM, ENOSYS)),
    Attack("module-file", "answer = call('finit_module', 0, text(''), 0)", bare=(EPERM, ENOSYS)),
    Attack("reboot", "answer = call('reboot', 0xfee1dead, 672274793, 0x01234567, 0)", bare=(EPERM, EINVAL)),
    Attack("time", "answer = call('settimeofday', struct.pack('qq', 0, 0), 0)", bare=(EPERM,)),
    Attack("clock", "answer = call('clock_settime', 0, struct.pack('qq', 0, 0))", bare=(EPERM,)),
    Attack("swap", "answer = call('swapon', text('/'), 0)", bare=(EPERM,)),
    Attack(
        "quota", "answer = call('quotactl', 0x800001 << 8, text('/'), 0, 0)", bare=(*NOT_THERE, EINVAL, ENOSYS, -15)
    ),
    Attack("log", "answer = min(0, call('syslog', 3, room(64), 64))", bare=(EPERM, 0)),
    Attack("accounting", "answer = call('acct', text('/x'))", bare=(EPERM, ENOSYS)),
    Attack("host-name", "answer = call('sethostname', text('owned'), 5)", bare=(EPERM,)),
    Attack("faults", "answer = min(0, call('userfaultfd', 1))", bare=(EPERM, ENOSYS, EMFILE, 0)),
    Attack("watch-files", "answer = min(0, call('fanotify_init', 0, 0))", bare=(EPERM, ENOSYS, EINVAL, EMFILE, 0)),
    Attack("ports", "answer = call('iopl', 3) if NUMBERS['iopl'] >= 0 else -1", bare=(EPERM, ENOSYS)),
    Attack("shared-memory", "answer = min(0, call('shmget', 0x1234, 4096, 0o1600))", bare=(0, ENOSYS)),
    Attack(
        "shared-memory-of-engine",
        "answer = min(0, call('shmget', ids['shm'], 0, 0))",
        bare=(ENOENT, EINVAL, EACCES, ENOSYS),
    ),
    Attack("semaphores", "answer = min(0, call('semget', 0x1234, 1, 0o1600))", bare=(0, ENOSYS)),
    Attack(
        "queue",
        "answer = min(0, call('mq_open', text('owned'), 0o102, 0o600, 0))",
        bare=(EMFILE, EACCES, ENOSYS, EPERM),
    ),
    Attack("lock", _OWN + "answer = call('flock', mine, 6)", bare=(0, EBADF, EINVAL)),
)
_FAMILIES = (
    ("unix", 1),
    ("inet", 2),
    ("inet6", 10),
    ("netlink", 16),
    ("packet", 17),
    ("key", 15),
    ("alg", 38),
    ("vsock", 40),
    ("xdp", 44),
    ("bluetooth", 31),
)
NETWORK = (
    *(Attack(f"socket-{name}", f"answer = min(0, call('socket', {family}, 3, 0))") for name, family in _FAMILIES),
    Attack("connect", "s = call('socket', 2, 1, 0); answer = s if s < 0 else call('connect', s, struct.pack('!HHI8x', 0x200, ids['port'], 0x7f000001), 16)", bare=(EACCES, -101, -111, EMFILE)),
    Attack("connect-abstract", "s = call('socket', 1, 1, 0); name = struct.pack('H', 1) + b'\\0' + ids['secret'].encode(); answer = s if s < 0 else call('connect', s, name, len(name))", bare=(EPERM, -111, EMFILE)),
    Attack("bind", "s = call('socket', 2, 1, 0); answer = s if s < 0 else call('bind', s, struct.pack('!HHI8x', 0x200, 8080, 0), 16)", bare=(EACCES, EPERM, -99, EMFILE)),
    # The parent does not receive passed descriptors, so the kernel closes them; see test_owned_worker.py.
    Attack("own-socket-rights", _OWN + "vector = struct.pack('QQ', ctypes.addressof(text('x')), 1); rights = struct.pack('QiiiI', 20, 1, 1, mine, 0)\n"
           "keep.append(vector); message = struct.pack('QIIQQQQI', 0, 0, 0, ctypes.addressof(ctypes.create_string_buffer(vector)), 1, 0, 0, 0)\nanswer = min(0, call('sendmsg', mine, message, 0))"),
)  # fmt: skip
LIMITS = (
    Attack("raise-files", "answer = call('prlimit64', 0, 7, struct.pack('QQ', 1 << 20, 1 << 20), 0)", bare=(EPERM,)),
    Attack("raise-processes", "answer = call('prlimit64', 0, 6, struct.pack('QQ', 100, 100), 0)", bare=(EPERM,)),
    Attack("raise-data", "answer = call('prlimit64', 0, 2, struct.pack('QQ', 1 << 40, 1 << 40), 0)", bare=(EPERM,)),
    Attack("raise-cpu", "answer = call('prlimit64', 0, 0, struct.pack('QQ', 1 << 20, 1 << 20), 0)", bare=(EPERM,)),
    Attack("raise-core", "answer = call('setrlimit', 4, struct.pack('QQ', 1 << 20, 1 << 20))", bare=(EPERM,)),
    Attack("disarm-timer", "answer = call('timer_settime', 0, 0, room(32), 0)", bare=(0,)),
    Attack("delete-timer", "answer = call('timer_delete', 0)", bare=(0,)),
    Attack("priority", "answer = call('setpriority', 0, 0, -20)", bare=(EACCES, EPERM)),
    Attack("real-time", "answer = call('sched_setscheduler', 0, 1, struct.pack('i', 99))", bare=(EPERM,)),
    Attack("lock-memory", "answer = call('mlockall', 3)", bare=(EPERM, ENOMEM)),
    Attack("dumpable", "answer = call('prctl', 4, 1, 0, 0, 0)", bare=(0,)),
    Attack("new-privileges", "answer = call('prctl', 38, 0, 0, 0, 0)", bare=(EINVAL,)),
    Attack("bounding-set", "answer = call('prctl', 24, 21, 0, 0, 0)", bare=(EPERM,)),
    Attack("own-filter", "answer = call('seccomp', 1, 0, 0)", bare=(-14,)),
    Attack("listener", "answer = call('seccomp', 1, 8, 0)", bare=(-14, EINVAL)),
    Attack("writable-code", "answer = min(0, call('mmap', 0, 4096, 7, 0x22, -1, 0))", bare=(0,)),
    Attack("stack-code", "answer = call('mprotect', ctypes.addressof(room(8192)) & ~4095, 4096, 7)", bare=(0,)),
    Attack(
        "keys-code",
        "answer = call('pkey_mprotect', ctypes.addressof(room(8192)) & ~4095, 4096, 7, -1)",
        bare=(0, ENOSYS),
    ),
)
_WORD = "word = room(8); "
_PAGE = "page = call('mmap', 0, 4096, 3, 0x22, -1, 0); "
_CLOCK = "answer = call('clock_gettime', (~ids['{0}'] << 3) | 2, room(16))"
#: Calls that are allowed, with arguments that are not.
HALVES = (
    *(
        Attack(f"futex-{name}", _WORD + f"answer = min(0, call('futex', word, {command}, 1, 0, word, 0))", bare=bare)
        for name, command, bare in (
            ("lock-pi", 6, (0, EINVAL, -35)), ("lock-pi-private", 134, (0, EINVAL, -35)), ("unlock-pi", 7, (EPERM,)),
            ("trylock-pi", 8, (0, -35)), ("lock-pi-new", 13, (0, EINVAL, -35, ENOSYS)), ("descriptor", 2, (ENOSYS, EINVAL)),
            ("requeue", 3, (0, EINVAL)), ("wake-op", 5, (0, EINVAL)), ("wait-requeue-pi", 11, (EINVAL, -11)),
        )
    ),
    Attack("memory-merged-with-strangers", _PAGE + "answer = call('madvise', page, 4096, 12)", bare=(0, EINVAL)),
    Attack("memory-poisoned", _PAGE + "answer = call('madvise', page, 4096, 100)", bare=(EPERM, EINVAL)),
    Attack("memory-kept-over-fork", _PAGE + "answer = call('madvise', page, 4096, 11)", bare=(0,)),
    Attack("memory-shared", "answer = min(0, call('mmap', 0, 4096, 3, 0x21, -1, 0))", bare=(0,)),
    Attack("memory-huge", "answer = min(0, call('mmap', 0, 2 << 20, 3, 0x40022, -1, 0))", bare=(0, ENOMEM, EINVAL, EPERM)),
    Attack("memory-grows-down", "answer = min(0, call('mmap', 0, 4096, 3, 0x122, -1, 0))", bare=(0,)),
    Attack("memory-device", "answer = min(0, call('mmap', 0, 4096, 3, 1, channel._descriptor, 0))", bare=(-19, EACCES)),
    *(Attack(f"clock-of-{process}", _CLOCK.format(process), bare=(EINVAL, ESRCH)) for process in ("engine", "zygote", "sibling")),
    Attack("clock-of-first", "answer = call('clock_gettime', (~1 << 3) | 2, room(16))", bare=(0, EINVAL)),
)  # fmt: skip
DESCRIPTORS = (
    Attack("descriptors", "found = []\nfor n in range(1024):\n    try:\n        os.read(n, 0)\n        found.append(n)\n    except OSError:\n        pass\nanswer = len(found)", held="1", bare=(1,)),
    Attack("environment", "answer = len(set(os.environ) - {'LC_CTYPE', 'TZ'})", held="0", bare=(0,)),
)  # fmt: skip
ATTACKS = (*FILES, *PROGRAMS, *OTHERS, *KERNEL, *NETWORK, *LIMITS, *HALVES, *DESCRIPTORS)


def source(attack: Attack, ids: dict[str, object]) -> str:
    """Return the attack as a program for the probe runtime."""
    return PRELUDE.format(numbers=NUMBERS, ids=ids) + attack.code + _ANSWER
