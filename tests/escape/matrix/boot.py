"""The matrix's own boot program of a zygote: the real one, with walls that are not raised and a runtime loaded from a file.

Run in the place of ``sandbox/child/zygote.py``, with the same arguments. Two settings are its own: ``without`` names the walls to leave
out, ``runtime_path`` the file of the runtime. The real program knows neither.
"""

import sys

if __name__ == "__main__":  # as in the real program: nothing of the platform's path but the two package folders
    for _name, _folder in (("lodger", sys.argv[2].rpartition("/")[0]), ("tests", __file__.rsplit("/", 3)[0])):
        _package = type(sys)(_name)
        _package.__path__ = [_folder]
        sys.modules[_name] = _package

from lodger.sandbox.child import boot, launch, zygote
from lodger.sandbox.walls import identity, process

_real_descend, _real_load, _RealBoot = launch.descend, zygote.load_runtime, boot.Boot
_settings: "dict[str, str]" = {}


class WeakBoot(_RealBoot):
    """The walls without those that are named."""

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


def descend(settings, control):
    """Note what is to be left out, in the first process that could raise it."""
    _settings.update(settings)
    without = _without()
    if "namespaces" in without:
        launch.outer_namespaces = boot.namespaces.enter = _nothing
    if "seccomp" in without:
        process.seal_code = _nothing
    if "uid" in without:
        identity.drop_capabilities = _nothing
    return _real_descend(settings, control)


def load_runtime(name):
    """Load the file that the settings name, or the real runtime."""
    path = _settings.get("runtime_path")
    if not path:
        return _real_load(name)
    module = type(sys)("runtime_under_test")
    with open(path, "rb") as source:
        exec(compile(source.read(), path, "exec"), module.__dict__)
    return module.Runtime()


launch.descend, zygote.load_runtime, zygote.Boot = descend, load_runtime, WeakBoot

if __name__ == "__main__":
    zygote.main()
