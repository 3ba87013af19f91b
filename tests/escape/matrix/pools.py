"""Pools with zygotes that boot without some walls, or with a runtime of the tests. Installed code has no such option."""

from functools import partial
from pathlib import Path
from typing import Any

from lodger.sandbox.pool import Pool
from lodger.sandbox.wasm.pool import WasmPool
from lodger.sandbox.workers.launcher import Zygote
from lodger.sandbox.workers.warm_pool import WarmPool


class WeakZygote(Zygote):
    """A zygote that runs the matrix's boot program."""

    program = Path(__file__).with_name("boot.py")


class _WeakWarmPool(WarmPool):
    zygote_type = WeakZygote

    def __init__(self, weak: dict[str, str], **other: Any) -> None:
        super().__init__(**other)
        self._weak = weak
        self._real = self.runtime != "quickjs" or not {"runtime_path", "artefact"} & set(weak)

    async def runtime_settings(self) -> dict[str, str]:
        """Return the real settings, or those of another realm, with the settings of the boot program."""
        real = await super().runtime_settings() if self._real else {}
        return {**real, **self._weak}


class WeakPool(_WeakWarmPool, Pool):
    """A pool for scripts; ``weak`` holds settings of the boot program and of the runtime."""


class WeakWasmPool(_WeakWarmPool, WasmPool):
    """A pool for WebAssembly with both zygotes weakened."""

    def __init__(self, weak: dict[str, str], **other: Any) -> None:
        self.compilers_type = partial(_WeakWarmPool, weak)
        super().__init__(weak, **other)
