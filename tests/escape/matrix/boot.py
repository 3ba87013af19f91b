"""The matrix's boot program of a zygote: the real one, without some walls, and with a runtime loaded from a file.

Run instead of ``sandbox/child/zygote.py``, with the same arguments and two more settings: ``without`` names the walls to leave out,
``runtime_path`` the file of the runtime.
"""

import sys

if __name__ == "__main__":  # as in the real program: only the two package folders can be imported
    for _name, _folder in (("lodger", sys.argv[2].rpartition("/")[0]), ("tests", __file__.rsplit("/", 3)[0])):
        _package = type(sys)(_name)
        _package.__path__ = [_folder]
        sys.modules[_name] = _package

from lodger.sandbox.child import boot, zygote
from lodger.sandbox.walls import identity, process

_real_start, _real_load, _RealBoot = zygote.start_launcher, zygote.load_runtime, boot.Boot
_settings: "dict[str, str]" = {}


class WeakBoot(_RealBoot):
    """The boot order without the walls named in the settings."""

    def _raise(self, wall, *steps):
        if wall not in _without():
            return super()._raise(wall, *steps)
        self.report[wall] = "taken away"
        return False

    def _enter_namespaces(self, launcher, outer):
        super()._enter_namespaces(launcher, outer)
        if "namespaces" in _without():
            self.report["namespaces"] = "taken away"


def _without():
    return _settings.get("without", "").split()


def _nothing(*_arguments, **_options):
    return ()


def start_launcher(settings, control):
    """Remove the functions of walls to leave out, in the first process that would call them."""
    _settings.update(settings)
    without = _without()
    if "namespaces" in without:
        zygote.enter_outer_namespaces = boot.namespaces.enter = _nothing
    if "seccomp" in without:
        process.seal_code = _nothing
    if "uid" in without:
        identity.drop_capabilities = _nothing
    return _real_start(settings, control)


def load_runtime(name):
    """Return the runtime of the file in the settings, or the real one."""
    path = _settings.get("runtime_path")
    if not path:
        return _real_load(name)
    module = type(sys)("runtime_under_test")
    with open(path, "rb") as source:
        exec(compile(source.read(), path, "exec"), module.__dict__)
    return module.Runtime()


zygote.start_launcher, zygote.load_runtime, zygote.Boot = start_launcher, load_runtime, WeakBoot

if __name__ == "__main__":
    zygote.main()
