"""Resource limits: what cannot be raised again. Hard limits are set with the soft ones, so each call only ever lowers."""

import resource

MIB = 1024 * 1024

#: What a worker's writable memory may exceed its memory limit by: the interpreter's own growth and the runtime's tables.
DATA_SLACK_BYTES = 16 * MIB


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
    lower(resource.RLIMIT_SIGPENDING, 64)
    lower(resource.RLIMIT_STACK, stack_bytes)
    lower(resource.RLIMIT_DATA, data_bytes)


def bound_worker(cpu_seconds: int, open_files: int) -> None:
    """In each worker: what would stop the zygote's own work."""
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, open_files))
    lower(resource.RLIMIT_CPU, cpu_seconds)


def bound_job(cpu_seconds: int, data_bytes: int) -> None:
    """In an armed worker: this job's numbers."""
    lower(resource.RLIMIT_CPU, cpu_seconds)
    lower(resource.RLIMIT_DATA, data_bytes)
