"""The source of an attempt of ``quickjs-native``: the binding has no module loader, so a script is a single file.

JSON is the exception: a line that only imports a JSON file is replaced by a constant.

The binding names every module ``<input>``, and a module may import itself: an import of its own default export is appended on a new line,
which needs no parser and keeps the author's line numbers. (Rewriting ``export default`` would break named functions, and the binding does
not return a module's namespace.)
"""

from lodger.sandbox.runtimes.js.modules import BEGIN, Modules, joined, json_module

#: Line offsets of the author's file and of the library, by which stdlib/js/native.js tells them apart. Code that a script evaluates starts
#: at line 1.
AUTHOR_LINE = 16384
OURS_LINE = 5_000_000

_NAME = b"$0123456789abcdef"


class NativeModules(Modules):
    """The source of one attempt."""

    wrap = _NAME + b"({async default(){{"

    def names(self) -> bytes:
        """Return the names of the modules, and why only one is read."""
        return super().names() + b"; runtime quickjs-native takes a single file: bundle what it imports"

    def entered(self, way: bytes, name: bytes) -> bytes:
        """Return the text to evaluate, which calls the global ``name`` (17 characters) with the default export."""
        source = self._text(self.entry)
        if b".json" in source:
            source = b"\n".join(self._constant(line) for line in source.split(b"\n"))
        if source.startswith(b"#!"):
            source = b"//" + source[2:]
        lines = b"\n" * AUTHOR_LINE + self._text(BEGIN)
        if way == b"module":
            return (
                lines + source + b"\n;import %s from '<input>'; globalThis.%s(%s);" % (b"$" + name, name, b"$" + name)
            )
        if way == b"body":
            return lines + self.wrap.replace(_NAME, name) + source + b"\n}}}.default)"
        return lines + source

    def _constant(self, line: bytes) -> bytes:
        """Return a line that only imports a JSON file as a constant, any other line as it is."""
        words, quote, rest = line.partition(b'"') if b'"' in line else line.partition(b"'")
        wanted, _, after = rest.partition(quote or b"'")
        name = joined(self.entry, wanted) if wanted.endswith(b".json") else None
        text = self._text(name) if name in self._sources else None
        parts = words.split()
        if text is None or parts[:1] != [b"import"] or parts[2:] not in ([], [b"from"]) or len(parts) == 2:
            return line
        if after.replace(b" ", b"").replace(b"'", b'"').rstrip(b";\r") not in (b"", b'with{type:"json"}'):
            return line
        return b"const %s = %s;" % (parts[1], json_module(text).removeprefix(b"export default ")) if parts[1:] else b";"

    def note_missing(self, wanted: bytes) -> None:
        """Record the line that imports a missing module, which the binding reports by name only."""
        self._asked = (self.entry, wanted)
        self._note_missing()
