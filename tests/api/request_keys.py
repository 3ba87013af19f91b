"""Idempotency keys, and requests that are made at the same time."""

import threading


def idempotency_key(name: str, **more: str) -> dict[str, str]:
    """Return the headers of a request with this idempotency key."""
    return {"idempotency-key": name} | more


def run_in_threads(work: object, count: int) -> None:
    """Call ``work`` with the numbers below ``count``, each in a thread of its own, and wait for all."""
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]  # type: ignore[arg-type]  # any function
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
