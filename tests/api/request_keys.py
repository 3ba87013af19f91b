"""Idempotency keys, and requests that are made at the same time."""

import threading


def key(name: str, **more: str) -> dict[str, str]:
    return {"idempotency-key": name} | more


def together(work: object, count: int) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]  # type: ignore[arg-type]  # any function
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
