"""Images of versions: scripts are compiled once, in a worker of their tenant, and later attempts map the result.

An image is keyed by tenant, entry, all modules and everything that the guest's memory depends on. It is made after the first run of a
version, beside other attempts, one at a time; until then, or if it cannot be made, an attempt compiles its modules itself, with the same
outcome.
"""

import asyncio
import hashlib
import json
import logging
from collections import OrderedDict
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING

from lodger.sandbox import frames
from lodger.sandbox.errors import SandboxError
from lodger.sandbox.job import Job
from lodger.sandbox.limits import MIB
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.runtimes.js.artefact import read_sources, realm_key
from lodger.sandbox.runtimes.js.image import PART_BYTES
from lodger.sandbox.wasm.code_cache import CodeCache, packed
from lodger.sandbox.wasm.compiler import PERMANENT, Compilation
from lodger.sandbox.workers import codec
from lodger.sandbox.workers.version_image import VersionImage, read_image, read_layout
from lodger.stdlib import standard_modules

if TYPE_CHECKING:
    from lodger.sandbox.workers.warm_pool import WarmPool

_FORMAT = b"lodger image 1"
#: Scripts below this size, with the modules that they import, compile in less time than a mapping costs.
LEAST_BYTES = 4096
_MAX_KNOWN = 4096
_MAX_WAITING = 64
#: Maximum CPU time for an image, which is charged to no run.
_MAX_CPU_MS = 2000
_journal = logging.getLogger("lodger.sandbox")
#: How the state of a warm worker comes about, beside the realm.
_WARM_UP = ("quickjs.py", "warm_up.py", "js/realm.py", "js/image.py", "js/modules.py")

_Key = tuple[str, str, str, tuple[tuple[str, int, int], ...]]


class ImageCompilation(Compilation):
    """A compilation of a script's modules."""

    max_bytes = 64 * MIB

    def _payload(self) -> tuple[int, bytes]:
        """Return the bundle whose modules are compiled."""
        return frames.COMPILE, codec.bundle(replace(self._job.bundle, context=_seen(self._job)))


@cache
def _realm() -> bytes:
    """Return everything that the memory of a fresh guest depends on, for cache keys: the realm's key, and the code of the warm-up."""
    ours = files("lodger.sandbox.runtimes")
    texts = [(ours / name).read_bytes() for name in _WARM_UP]
    return packed((realm_key(read_sources()).encode(), *texts))


def _seen(job: Job) -> str:
    """Return all of a job that its modules can see while they are evaluated: the platform's functions, and where memory ends."""
    context, seen = job.bundle.context, {"memory_bytes": job.limits.memory_bytes}
    functions = json.loads(context).get("functions", []) if '"functions":' in context else None
    return json.dumps(seen if functions is None else seen | {"functions": functions})


def binding(job: Job) -> bytes:
    """Return the cache key of an image: a digest of its tenant, of every module by name, of all that these see, and of the realm."""
    modules = {**job.bundle.modules, **standard_modules.imported(job.bundle.modules)}
    texts = [part.encode() for pair in modules.items() for part in pair]
    parts = (job.tenant.encode(), job.bundle.entry.encode(), _seen(job).encode(), *texts, _realm())
    return packed((_FORMAT, hashlib.sha256(packed(parts)).digest()))


class ScriptImages:
    """The images of one pool's versions.

    Args:
        pool: whose workers compile.
        code_cache: where the images are kept, in memory and on disk; closed by its owner.
    """

    def __init__(self, pool: "WarmPool", code_cache: CodeCache) -> None:
        self._pool = pool
        self._cache = code_cache
        #: Bindings of versions, so that no digest is made for each run; None for versions without an image.
        self._known: OrderedDict[_Key, bytes | None] = OrderedDict()
        self._making: dict[_Key, asyncio.Task[bool]] = {}
        self._turn = asyncio.Semaphore(1)

    def find(self, job: Job) -> VersionImage | None:
        """Return the image of a job's version if there is one in memory; the caller closes it."""
        bound = self._known and self._known.get(_key(job))
        code = bound and self._cache.find(bound)
        return read_image(code.descriptor, code.size) if code else None

    def want(self, job: Job) -> None:
        """Make the image of a job's version in the background, unless it is small, known to have none, or its tenant's turn is taken."""
        size = sum(map(len, job.bundle.modules.values()))
        if size < LEAST_BYTES and not standard_modules.imported(job.bundle.modules):
            return
        key = _key(job)
        turns = {tenant for tenant, *_ in self._making}
        if self._known.get(key, b"") is not None and job.tenant not in turns and len(turns) < _MAX_WAITING:
            self._begin(key, job)

    async def make(self, job: Job) -> bool:
        """Make the image of a job's version, or wait until it is made; return whether there is one. Raises ZygoteFailed."""
        key = _key(job)
        return await asyncio.shield(self._making.get(key) or self._begin(key, job))

    def _begin(self, key: _Key, job: Job) -> "asyncio.Task[bool]":
        """Start the task that makes the image of a version; return it."""
        task = self._making[key] = asyncio.get_running_loop().create_task(self._make(key, job))
        task.add_done_callback(partial(self._made, key))
        return task

    def _made(self, key: _Key, task: "asyncio.Task[bool]") -> None:
        """Forget the finished task of an image; its error is reported by the attempts."""
        self._making.pop(key, None)
        if not task.cancelled():
            task.exception()  # a pool that cannot run anything is reported by its attempts

    async def _make(self, key: _Key, job: Job) -> bool:
        """Find or compile the image of a version, in the turn of its tenant; return whether there is one."""
        async with self._turn:
            bound = await asyncio.to_thread(binding, job)
            code = self._cache.find(bound) or await self._cache.recall(job.tenant, bound)
            if code:
                code.close()
            if code or await self._compile(key, job, bound):
                self._note(key, bound)
                return True
        return False

    def _note(self, key: _Key, bound: bytes | None) -> None:
        """Remember the cache key of a version's image; None: it has none."""
        self._known[key] = bound
        self._known.move_to_end(key)
        while len(self._known) > _MAX_KNOWN:
            self._known.popitem(last=False)

    async def _compile(self, key: _Key, job: Job, bound: bytes) -> bool:
        """Make an image and keep it in the cache; return whether there is one."""
        cpu_ms, frame_bytes = min(job.limits.cpu_ms, _MAX_CPU_MS), max(job.limits.frame_bytes, PART_BYTES)
        limits = replace(job.limits, cpu_ms=cpu_ms, frame_bytes=frame_bytes)
        writer = self._cache.begin(bound)
        try:
            order = replace(job, limits=limits, tag=f"compile {job.tag}", trace=None, stop=None)
            report = await self._pool.attempt(partial(ImageCompilation, writer, order))
            kept = writer.finish() if report.outcome is Outcome.OK else None
            if kept is None or read_layout(kept.descriptor, kept.size) is None:
                if kept or report.outcome in (Outcome.PROTOCOL_ERROR, *PERMANENT):
                    self._note(key, None)
                if kept or report.outcome is Outcome.PROTOCOL_ERROR:
                    why = report.error.message if report.error else "it cannot be read"
                    _journal.warning("the image of a version of tenant %s was refused: %s", job.tenant, why)
                if kept:
                    kept.close()
                return False
            given = self._cache.keep(bound, kept)
            try:
                await asyncio.to_thread(self._cache.store, job.tenant, bound, given)
            finally:
                given.close()
            return True
        finally:
            writer.drop()

    async def close(self) -> None:
        """Stop compiling images; the pool goes on without new ones."""
        for task in [*self._making.values()]:
            task.cancel()
            with suppress(asyncio.CancelledError, SandboxError):
                await task
        self._known.clear()


def _key(job: Job) -> _Key:
    """Return the version of a job for this process: of each text its hash, which it keeps, and its length."""
    texts = tuple((name, hash(text), len(text)) for name, text in job.bundle.modules.items())
    return job.tenant, job.bundle.entry, _seen(job), texts
