"""Resource limits: what cannot be raised again. Hard limits are set with the soft ones, so each call only ever lowers."""

import resource

MIB = 1024 * 1024

#: What a worker's writable memory may exceed its memory limit by, beside the copies of what crosses the wall: with the default
#: limits 16 MiB together. The interpreter's own growth and the runtime's tables live in it.
DATA_SLACK_BYTES = 11 * MIB


def lower(kind: int, value: int) -> None:
    """Set soft and hard limit to the value, or leave them where they are lower."""
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(kind, (value, value))


def bound_for_all(data_bytes: int, stack_bytes: int) -> None:
    """In the zygote: everything that the zygote itself can live under and a fork inherits."""
    lower(resource.RLIMIT_CORE, 0)
    lower(resource.RLIMIT_FSIZE, 0)
    lower(resource.RLIMIT_MEMLOCK, 0)
    lower(resource.RLIMIT_MSGQUEUE, 0)
    lower(resource.RLIMIT_STACK, stack_bytes)
    lower(resource.RLIMIT_DATA, data_bytes)


def ceilings() -> "tuple[int, int]":
    """Give the hard limits of CPU seconds and data bytes that this process lives under: nothing may be set above them."""
    found = [resource.getrlimit(kind)[1] for kind in (resource.RLIMIT_CPU, resource.RLIMIT_DATA)]
    cpu, data = (1 << 40 if hard == resource.RLIM_INFINITY else hard for hard in found)
    return cpu, data


def bound_worker(open_files: int) -> None:
    """In each worker: what would stop the zygote's own work."""
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, open_files))


def bound_job(cpu_seconds: int, data_bytes: int) -> None:
    """In a worker: the maxima, then this job's numbers, which are lower. Raises ValueError for what would raise a limit."""
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
    resource.setrlimit(resource.RLIMIT_DATA, (data_bytes, data_bytes))


def bound_signals() -> None:
    """In an armed worker: no more queued signals.

    Not earlier: each worker's CPU timer counts against what all processes of its uid may have pending together.
    """
    resource.setrlimit(resource.RLIMIT_SIGPENDING, (0, 0))
