"""Checks of a job before it is given to a worker: sizes, encoding, JSON of the input, module names."""

from lodger.sandbox import prescan
from lodger.sandbox.frames import PACKAGES
from lodger.sandbox.job import Job
from lodger.sandbox.workers import verdict
from lodger.sandbox.workers.verdict import Verdict

_MAX_MODULES = 1000
_LONGEST_NAME = 255


def refuse(job: Job) -> Verdict | None:
    """Return the verdict on a job that no worker may be given, or None if it is acceptable."""
    limits = job.limits
    if job.bundle.wasm is not None and len(job.bundle.wasm) > limits.wasm_bytes:
        return verdict.module_too_large(len(job.bundle.wasm), limits)
    modules = job.bundle.modules
    if job.bundle.wasm is None and job.bundle.entry not in modules:
        return verdict.compile_error(f"the script has no module {job.bundle.entry!r}")
    if len(modules) > _MAX_MODULES or any(
        not name or len(name) > _LONGEST_NAME or not name.isprintable() or name == PACKAGES for name in modules
    ):
        # The empty name stands for the context in the wire format.
        return verdict.bad_request(
            f"a script has at most {_MAX_MODULES} modules, with names of 1 to {_LONGEST_NAME} printable characters"
        )
    size = sum(map(_size, modules.values()))
    if size > limits.source_bytes:
        return verdict.source_too_large(size, limits)
    try:
        prescan.check(
            job.bundle.context.encode("utf-8", "surrogatepass"),
            max_bytes=limits.input_bytes,
            max_depth=limits.json_depth,
        )
        for source in modules.values():
            if not source.isascii():
                source.encode()
    except prescan.JsonRefused as refused:
        return verdict.bad_request(f"the input: {refused}")
    except UnicodeEncodeError:
        return verdict.bad_request("a module is not text: it contains a lone surrogate")
    return None


def _size(source: str) -> int:
    """Return the bytes of a source; most are ASCII, and are not copied."""
    return len(source) if source.isascii() else len(source.encode("utf-8", "surrogatepass"))
