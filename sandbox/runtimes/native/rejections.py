"""Tracker of unhandled promise rejections for ``quickjs-native``, set through the C API that the extension exports.

The binding has no method for it. Values are passed as their 16 bytes from the engine to a function of stdlib/js/native.js; none is
converted or kept.
"""

import ctypes
from ctypes import CFUNCTYPE, POINTER, Structure, c_bool, c_char_p, c_int, c_int64, c_uint64, c_void_p

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

#: Offsets in the binding's object: after two words of a Python object follow JSRuntime and JSContext.
_RUNTIME, _CONTEXT = 16, 24
_TAG_BOOL, _TAG_UNDEFINED, _TAG_EXCEPTION = 1, 3, 6


class _Value(Structure):
    """A value of the engine, as its 16 bytes."""

    _fields_ = (("bits", c_uint64), ("tag", c_int64))


#: Keeps every callback alive: freeing one would write to a page that is read-only in workers.
_callbacks: "list[Any]" = []

_Tracker = CFUNCTYPE(None, c_void_p, _Value, _Value, c_bool, c_void_p)


class Rejections:
    """The rejection tracker of one context.

    Args:
        engine: the extension module.
        context: its Context.
        function: name of a global that is called with (promise, reason, handled).

    Raises:
        RuntimeError: the layout of the binding's object differs from the pinned version.
    """

    def __init__(self, engine: "ModuleType", context: "Any", function: str) -> None:
        library = ctypes.CDLL(engine.__file__)
        place = c_void_p.from_address(id(context) + _CONTEXT).value
        runtime = c_void_p.from_address(id(context) + _RUNTIME).value
        library.JS_GetRuntime.restype = c_void_p
        library.JS_GetRuntime.argtypes = (c_void_p,)
        if place is None or library.JS_GetRuntime(place) != runtime:
            raise RuntimeError("the binding's object does not have the expected layout")
        library.JS_GetGlobalObject.restype = library.JS_GetPropertyStr.restype = library.JS_Call.restype = _Value
        library.JS_GetException.restype = _Value
        library.JS_GetGlobalObject.argtypes = library.JS_GetException.argtypes = (c_void_p,)
        library.JS_GetPropertyStr.argtypes = (c_void_p, _Value, c_char_p)
        library.JS_Call.argtypes = (c_void_p, _Value, _Value, c_int, POINTER(_Value))
        library.JS_FreeValue.argtypes = (c_void_p, _Value)
        library.JS_FreeValue.restype = None
        library.JS_SetHostPromiseRejectionTracker.argtypes = (c_void_p, _Tracker, c_void_p)
        library.JS_SetHostPromiseRejectionTracker.restype = None
        self._library = library
        self._undefined = _Value(0, _TAG_UNDEFINED)
        world = library.JS_GetGlobalObject(place)
        self._function = library.JS_GetPropertyStr(place, world, function.encode())
        library.JS_FreeValue(place, world)
        self._callback = _Tracker(self._on_rejection)
        _callbacks.append(self._callback)
        self._arguments = (_Value * 3)()
        library.JS_SetHostPromiseRejectionTracker(runtime, self._callback, None)

    def _on_rejection(self, context: int, promise: _Value, reason: _Value, handled: bool, _opaque: int | None) -> None:
        """Call the tracker's function with a promise that was rejected, or has got a handler, its reason, and which of the two."""
        arguments = self._arguments
        arguments[0], arguments[1], arguments[2] = promise, reason, _Value(handled, _TAG_BOOL)
        answer = self._library.JS_Call(context, self._function, self._undefined, 3, arguments)
        if answer.tag == _TAG_EXCEPTION:  # there was no memory to record it
            self._library.JS_FreeValue(context, self._library.JS_GetException(context))
