"""Every function of WASI preview 1, with the types that wasmtime's own implementation gives it: what toolchains emit can be linked."""

import pytest
import wasmtime

from lodger.sandbox.runtimes.command.wasi import SIGNATURES, SPACE


@pytest.fixture(scope="module")
def reference() -> dict[str, tuple[str, str]]:
    linker = wasmtime.Linker(wasmtime.Engine())
    linker.define_wasi()
    store = wasmtime.Store(linker.engine)
    store.set_wasi(wasmtime.WasiConfig())
    codes = {"i32": "i", "i64": "I"}
    found = {}
    for name in SIGNATURES:
        function = linker.get(store, SPACE, name)
        assert isinstance(function, wasmtime.Func)
        kind = function.type(store)
        found[name] = (
            "".join(codes[str(one)] for one in kind.params),
            "".join(codes[str(one)] for one in kind.results),
        )
    return found


def test_every_function_has_its_type(reference: dict[str, tuple[str, str]]) -> None:
    assert reference == SIGNATURES


def test_none_is_missing() -> None:
    # the functions of wasi_snapshot_preview1.witx
    assert len(SIGNATURES) == 46
