"""Images of versions: scripts are compiled once, in a worker of their tenant, and later attempts map the result.

An image is keyed by tenant, entry, all modules and everything that the guest's memory depends on. It is made after the first run of a
version, beside other attempts, one at a time; until then, or if it cannot be made, an attempt compiles its modules itself, with the same
outcome.
"""

import asyncio
import hashlib
import json
from collections import OrderedDict
from dataclasses import replace
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING

from lodger.sandbox import frames
from lodger.sandbox.job import Job, Report
from lodger.sandbox.limits import MIB, Limits
from lodger.sandbox.runtimes.js.artefact import read_sources, realm_key
from lodger.sandbox.runtimes.js.image import PART_BYTES
from lodger.sandbox.wasm.code_cache import CodeCache, packed
from lodger.sandbox.wasm.compiler import Compilation, Compiler
from lodger.sandbox.workers import codec, verdict
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
#: How the state of a warm worker comes about, beside the realm.
_WARM_UP = ("quickjs.py", "warm_up.py", "js/realm.py", "js/image.py", "js/modules.py")

_Key = tuple[str, str, str, tuple[tuple[str, int, int], ...]]


class ImageCompilation(Compilation):
    """A compilation of a script's modules."""

    max_bytes = 64 * MIB

    def _payload(self) -> tuple[int, bytes]:
        """Return the bundle whose modules are compiled."""
        return frames.COMPILE, codec.bundle(replace(self._job.bundle, context=_seen(self._job)))

    def _done(self, payload: bytes) -> None:
        """End the compilation with its image, if that is complete and has a layout."""
        if read_layout(self._writer.descriptor, self._writer.size) is None:
            self._decide(verdict.protocol_error("an image without a layout"))
        else:
            super()._done(payload)


@cache
def _realm() -> bytes:
    """Return everything that the memory of a fresh guest depends on, for cache keys: the realm's key, and the code of the warm-up."""
    ours = files("lodger.sandbox.runtimes")
    texts = [(ours / name).read_bytes() for name in _WARM_UP]
    return packed((realm_key(read_sources()).encode(), *texts))


def _seen(job: Job) -> str:
    """Return all of a job that its modules can see while they are evaluated: the platform's functions, and where memory ends."""
    context, memory = job.bundle.context, f'{{"memory_bytes":{job.limits.memory_bytes}'
    # Admission reads the same text, so this costs less than that; most platforms have no functions.
    functions = json.loads(context).get("functions") if '"functions":' in context else None
    return f'{memory},"functions":{json.dumps(functions)}}}' if functions else f"{memory}}}"


def binding(job: Job) -> bytes:
    """Return the cache key of an image: a digest of its tenant, of every module by name, of all that these see, and of the realm."""
    modules = {**job.bundle.modules, **standard_modules.imported(job.bundle.modules)}
    texts = [part.encode() for pair in modules.items() for part in pair]
    parts = (job.tenant.encode(), job.bundle.entry.encode(), _seen(job).encode(), *texts, _realm())
    return packed((_FORMAT, hashlib.sha256(packed(parts)).digest()))


class ScriptImages(Compiler):
    """The images of one pool's versions.

    Args:
        pool: whose workers compile, with the limits of each job.
        code_cache: where the images are kept, in memory and on disk; closed by its owner.
    """

    compilation = ImageCompilation
    at_once = 1

    def __init__(self, pool: "WarmPool", code_cache: CodeCache) -> None:
        super().__init__(pool, code_cache)
        #: Cache keys of versions, so that no digest is made for each run.
        self._bindings: OrderedDict[_Key, bytes] = OrderedDict()
        self._making: dict[str, asyncio.Task[bool]] = {}  # by tenant

    def find(self, job: Job) -> VersionImage | None:
        """Return the image of a job's version if there is one in memory; the caller closes it."""
        bound = self._bindings and self._bindings.get(_key(job))
        code = bound and self._code_cache.find(bound)
        return read_image(code.descriptor, code.size) if code else None

    def want(self, job: Job) -> None:
        """Make the image of a job's version in the background, unless it is small, known to have none, or its tenant's turn is taken."""
        size = sum(map(len, job.bundle.modules.values()))
        is_small = size < LEAST_BYTES and not standard_modules.imported(job.bundle.modules)
        if is_small or job.tenant in self._making or len(self._making) >= _MAX_WAITING:
            return
        if self._bindings.get(_key(job)) not in self._refused:
            task = self._making[job.tenant] = asyncio.get_running_loop().create_task(self.make(job))
            task.add_done_callback(partial(self._made, job.tenant))

    async def make(self, job: Job) -> bool:
        """Find or make the image of a job's version; return whether there is one. Raises ZygoteFailed."""
        code = await self.code(replace(job, stop=None))
        if isinstance(code, Report):
            return False
        code.close()
        return True

    def _made(self, tenant: str, task: "asyncio.Task[bool]") -> None:
        """Forget the finished task of an image."""
        del self._making[tenant]
        if not task.cancelled():
            task.exception()  # a pool that cannot run anything is reported by its attempts

    async def _binding(self, job: Job) -> bytes:
        """Return the cache key of an image."""
        key = _key(job)
        if key not in self._bindings:
            self._bindings[key] = await asyncio.to_thread(binding, job)
            while len(self._bindings) > _MAX_KNOWN:
                self._bindings.popitem(last=False)
        return self._bindings[key]

    def _limits_of(self, job: Job) -> Limits:
        """Return the limits of an image: those of its attempts, but for CPU time that no run is charged for."""
        cpu_ms, frame_bytes = min(job.limits.cpu_ms, _MAX_CPU_MS), max(job.limits.frame_bytes, PART_BYTES)
        return replace(job.limits, cpu_ms=cpu_ms, frame_bytes=frame_bytes)

    async def close(self) -> None:
        """Stop compiling images; the pool goes on without new ones."""
        tasks = [*self._making.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._bindings.clear()


def _key(job: Job) -> _Key:
    """Return the version of a job for this process: of each text its hash, which it keeps, and its length."""
    texts = tuple((name, hash(text), len(text)) for name, text in job.bundle.modules.items())
    return job.tenant, job.bundle.entry, _seen(job), texts
