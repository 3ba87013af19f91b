"""The one file of an attempt of ``quickjs-native``: no loader stands behind the binding, so a script is a single file.

Every module there is named ``<input>``, and a module may import itself: appended on a line of its own, that hands the default export over
without a parser and without moving a line of the author's. (Rewriting ``export default`` breaks named functions; reading the
namespace is not possible, the binding gives a module's promise only.)
"""

from lodger.sandbox.runtimes.js.modules import Modules

#: Where the author's first line lies, and our library's: stdlib/js/native.js tells them apart by these. What a script evaluates itself
#: starts at line 1.
AUTHOR_LINE = 16384
OURS_LINE = 5_000_000

_NAME = b"$0123456789abcdef"


class NativeModules(Modules):
    """The source of one attempt."""

    wrap = _NAME + b"({async default(){{"

    def facts(self) -> tuple[list[int], bytes]:
        """Say what the bootstrap must know."""
        facts, names = super().facts()
        return facts, names + b"; runtime quickjs-native takes a single file: bundle what it imports"

    def entered(self, way: bytes, name: bytes) -> bytes:
        """Give the text to evaluate: the author's lines at their place, ``name`` (17 letters) is called with the default export."""
        source = self._sources.get(self.entry, b"")
        if source.startswith(b"#!"):
            source = b"//" + source[2:]
        lines = b"\n" * AUTHOR_LINE
        if way == b"module":
            return (
                lines + source + b"\n;import %s from '<input>'; globalThis.%s(%s);" % (b"$" + name, name, b"$" + name)
            )
        if way == b"body":
            return lines + self.wrap.replace(_NAME, name) + source + b"\n}}}.default)"
        return lines + source

    def note_missing(self, wanted: bytes) -> None:
        """Remember the line that imports what is not there; the binding names it without its path."""
        self._asked = (self.entry, wanted)
        self._note_missing()
