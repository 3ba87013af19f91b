"""The process that forks the workers of :mod:`tests.unit.runtime.harness`: small, and nothing else happens in it."""

import gc
import json
import os
import resource
import socket
import sys
import tempfile
import traceback
from pathlib import Path

from tests.unit.runtime.harness import JOB, STATUS, SocketChannel, read_exactly

from lodger.sandbox.runtimes.js import artefact
from lodger.sandbox.runtimes.js.realm import QuickRealm
from lodger.sandbox.runtimes.libwasmtime import STACK_BYTES
from lodger.sandbox.runtimes.native.realm import NativeRealm
from lodger.sandbox.runtimes.quickjs import Runtime
from lodger.sandbox.runtimes.quickjs_native import Runtime as NativeRuntime
from lodger.sandbox.runtimes.settings import native_settings

CAPABILITY = """
$.provide("echo", (context, call) => ({
  ask: (value) => call("echo.ask", { value }),
  now: (value) => $.callSync("echo.now", { value }),
  plan: context.plan,
}));
"""


#: Parts of the runtimes that a test leaves out.
PARTS: dict[str, tuple[tuple[type, str], ...]] = {
    "": (),
    "warm-up": ((Runtime, "_touch"), (Runtime, "_rehearse")),
    "reseed": ((QuickRealm, "reseed"), (NativeRealm, "reseed")),
}


def prepare(kind: str) -> Runtime | NativeRuntime:
    """Return a runtime with one example capability; its realm is in the cache, as that of any engine is."""
    if kind == "quickjs-native":
        with tempfile.TemporaryDirectory() as folder:
            capability = Path(folder) / "cap-echo.js"
            capability.write_text(CAPABILITY)
            native, settings = NativeRuntime(), native_settings()
            files = [path for path in settings["library"].split("\n") if not Path(path).name.startswith("cap-")]
            native.prepare(settings | {"library": "\n".join([*files, str(capability)])})
        return native
    resource.setrlimit(resource.RLIMIT_STACK, (STACK_BYTES, resource.getrlimit(resource.RLIMIT_STACK)[1]))  # a worker's
    runtime = Runtime()
    sources = [(name, text) for name, text in artefact.read_sources() if not name.startswith("cap-")]
    runtime.prepare(artefact.baked([*sources, ("cap-echo.js", CAPABILITY)]).settings())
    return runtime


def serve(runtime: Runtime | NativeRuntime, line: socket.socket) -> None:
    """Fork a worker for each job that comes, until the tests have ended."""
    while True:
        head, descriptors, _, _ = socket.recv_fds(line, JOB.size, 1)
        if not head:
            return
        sizes = JOB.unpack(head)
        numbers, wire = json.loads(read_exactly(line, sizes[0])), read_exactly(line, sizes[1])
        with socket.socket(fileno=descriptors[0]) as end:
            pid = os.fork()
            if pid == 0:
                line.close()
                work(runtime, numbers, wire, end)
        line.sendall(STATUS.pack(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))


def work(runtime: Runtime | NativeRuntime, numbers: dict[str, int], wire: bytes, end: socket.socket) -> None:
    """Run a script, and end this process."""
    code = 1
    try:
        max_s = numbers["cpu_ms"] // 1000 + 2  # without walls, this ends endless scripts
        resource.setrlimit(resource.RLIMIT_CPU, (max_s, max_s))
        realm = runtime.fresh()
        realm.bound(numbers)
        realm.run(wire, SocketChannel(end))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    _, asked, without, descriptor = sys.argv
    for owner, part in PARTS[without]:
        assert hasattr(owner, part), part
        setattr(owner, part, lambda *_arguments: None)
    ready = prepare(asked)
    gc.freeze()
    serve(ready, socket.socket(fileno=int(descriptor)))
