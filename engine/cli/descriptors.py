"""The limit of open file descriptors: two for each worker, some for each request, one for each connection of the API."""

import resource
from contextlib import suppress

#: More than 64 cores' workers, their requests and a thousand clients take; the usual 1024 is for programs that wait with select().
WANTED = 65_536


def ask_for_more() -> None:
    """Raise this process's soft limit as far as the host allows and the service needs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
