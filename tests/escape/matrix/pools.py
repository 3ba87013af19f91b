"""Pools whose zygotes boot without some walls, or with a runtime of the tests'. Production has no such pool and no way to one."""

from functools import partial
from pathlib import Path
from typing import Any

from lodger.sandbox.pool import Pool
from lodger.sandbox.wasm.pool import WasmPool
from lodger.sandbox.workers.launcher import Zygote
from lodger.sandbox.workers.warm_pool import WarmPool


class WeakZygote(Zygote):
    """A zygote of the matrix's boot program."""

    program = Path(__file__).with_name("boot.py")


class _WeakWarmPool(WarmPool):
    zygote_type = WeakZygote

    def __init__(self, weak: dict[str, str], **other: Any) -> None:
        super().__init__(**other)
        self._weak = weak
        self._real = other.get("runtime", "quickjs") != "quickjs" or not {"runtime_path", "artefact"} & set(weak)

    async def runtime_settings(self) -> dict[str, str]:
        """What the real pool tells its zygote, unless another realm is named, and the settings of the boot program."""
        real = await super().runtime_settings() if self._real else {}
        return {**real, **self._weak}


class WeakPool(_WeakWarmPool, Pool):
    """A pool for scripts; ``weak`` holds settings of the boot program and of the runtime."""


class WeakWasmPool(WasmPool):
    """A pool for WebAssembly; both its zygotes are weak."""

    zygote_type = WeakZygote

    def __init__(self, weak: dict[str, str], **other: Any) -> None:
        self._weak = weak
        self.compilers_type = partial(_WeakWarmPool, weak)
        super().__init__(**other)

    async def runtime_settings(self) -> dict[str, str]:
        """What the real pool tells its zygote, and the settings of the boot program."""
        return {**await super().runtime_settings(), **self._weak}
