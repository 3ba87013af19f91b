"""The modules of an attempt: decoded from the bundle, resolved by name, and wrapped in a function if the entry is a snippet."""

from struct import unpack_from

from lodger.sandbox import frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

#: Precedes a snippet's first line; the second brace opens a block, so that a snippet may declare any name again.
WRAP = b"export default async function(){{"
_WRAP_END = b"\n}}"

#: Evaluated before the author's modules; a bundle for a check has one that throws, so that these are linked only.
BEGIN = frames.BEGIN.encode()
# The bootstrap imports one of these; a missing default export fails before any line of the tenant runs.
_GLUE = {
    BEGIN: b"$begin()",
    b"lodger:module": b'import "lodger:begin"; import run from "ENTRY"; export default run',
    b"lodger:body": b'import run from "ENTRY"; import "lodger:begin"; export default run',
    b"lodger:plain": b'import "lodger:begin"; import "ENTRY"',
}
#: How an entry is loaded: as a function's body, for its default export, without one. Numbers as in bootstrap.js.
WAYS = (b"body", b"module", b"plain")
_COMPILE = b"lodger:compile-"
#: Of the module that stops an evaluation before the author's modules are reached.
_GUARD = b"lodger:guard"
#: Of the bootstrap's own file, as the guest names it.
_LIBRARY = b"eval_script"
_PACKAGES = frames.PACKAGES.encode()
_DECLARATIONS = tuple(word + after for word in (b"import", b"export") for after in (b" ", b"{", b"*", b"'", b'"'))
_EXPORTS = tuple(word for word in _DECLARATIONS if word.startswith(b"export"))
#: Of a source that an error's message quotes: lines, bytes, and characters before and after the place.
_LINES_QUOTED, _QUOTED, _QUOTED_BEFORE, _QUOTED_AFTER = 40, 1 << 20, 300, 1500
_MARK = b"\xef\xbb\xbf"


#: First characters of a library's name: ``lib:NAME@VERSION``.
LIB = "lib:"
_LIB = b"lib:"


class SourceRefused(Exception):
    """A module is not text."""


def joined(base: bytes, wanted: bytes) -> bytes | None:
    """Return the path that a file imports, relative to the script's folder; None if it is neither a path nor a library.

    ``../SCRIPT/FILE`` lies in another script's folder. A path cannot leave a library, nor the folder of all scripts.
    """
    if wanted.startswith(_LIB):
        return wanted
    if not wanted.startswith((b"./", b"../", b"/")):
        return None
    parts = base.split(b"/")[:-1]
    outside = 1 if parts[:1] and parts[0].startswith(_LIB) else 2 if parts[:1] == [b".."] else 0
    if wanted.startswith(b"/"):
        parts = parts[:outside]
    for part in wanted.split(b"/"):
        if part == b"..":
            if not parts:
                parts = [part]
            elif parts == [part] or (parts[0].startswith(_LIB) and len(parts) == 1):
                return None
            else:
                parts.pop()
        elif part not in (b"", b"."):
            parts.append(part)
    return b"/".join(parts)


def sibling(path: bytes) -> bytes | None:
    """Return the folder of the script that ``./NAME.js`` names among scripts: ``../NAME``; None for other paths."""
    folder, _, file = path.rpartition(b"/")
    beside = not folder or (folder.startswith(b"../") and folder.count(b"/") == 1)
    return b"../" + file[:-3] if beside and file.endswith((b".js", b".ts")) else None


def found(names: "Container[bytes]", base: bytes, wanted: bytes) -> bytes | None:
    """Return the name among ``names`` that an import in the file ``base`` means; None if there is none."""
    path = joined(base, wanted)
    script = sibling(path) if path and wanted.startswith(b"./") else None
    own = () if script is None else (script + b"/main.js", script + script[2:] + b".js")
    places: tuple[bytes, ...] = (path, *own) if path else ()
    for place in places:
        typed = place[:-3] + b".ts" if place.endswith(b".js") else place
        for name in (place, typed, place + b"/index.js", place + b"/index.ts"):
            if name in names:
                return name
    return None


def json_module(text: bytes) -> bytes:
    """Return a module with the value of a JSON text as its default export."""
    quoted = text.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\r", b"\\r").replace(b"\n", b"\\n")
    return b'export default JSON.parse("' + quoted + b'")'


def _is_quoted(source: bytes, place: int) -> bool:
    """Return whether this place seems to be inside a template literal or a comment."""
    return source.count(b"`", 0, place) % 2 == 1 or source.rfind(b"/*", 0, place) > source.rfind(b"*/", 0, place)


class Modules:
    """The sources of one attempt by name; the first module is the entry."""

    #: Precedes a snippet's first line.
    wrap = WRAP

    def __init__(self, bundle: "bytes | memoryview") -> None:
        self.entry = b"main.js"
        self.context = b"{}"
        self.missing: tuple[bytes, int] | None = None  # file and line of an import of a missing module
        self._bundle = bundle
        self._sources: dict[bytes, tuple[int, int]] = {}  # places in the bundle: a run from an image reads none of them
        self._way = b""
        self._packages = b""
        self._asked = (b"", b"")
        at = 0
        while at < len(bundle):
            name_size, size = unpack_from("<II", bundle, at)
            at += frames.BUNDLE_PART.size
            start = at + name_size
            name, at = bytes(bundle[at:start]), start + size
            if not name:
                self.context = bytes(bundle[start:at])
                continue
            if name == _PACKAGES:
                self._packages = bytes(bundle[start:at])
                continue
            if not self._sources:
                self.entry = name
            self._sources[name] = start, at

    def _text(self, name: bytes) -> bytes:
        """Return the text of a module, empty if there is none."""
        start, end = self._sources.get(name, (0, 0))
        return bytes(self._bundle[start:end]).removeprefix(_MARK)

    def check(self) -> None:
        """Raise SourceRefused with the position if a module is not text; the guest's own error would not name it."""
        for name in self._sources:
            source, shown = self._text(name), name.decode("utf-8", "replace")
            try:
                source.decode()
            except UnicodeDecodeError as error:
                byte = source[error.start]
                raise SourceRefused(f"{shown} is not UTF-8 text: byte {error.start} is 0x{byte:02x}") from None
            if b"\0" in source:
                raise SourceRefused(f"{shown} is not text: byte {source.index(0)} is NUL")

    def names(self) -> bytes:
        """Return the names of the modules, for an error's message."""
        return b", ".join([name for name in self._sources if not name.startswith(b"lodger:")][:20]).replace(b"\n", b" ")

    def facts(self) -> list[int]:
        """Return facts about the entry for the bootstrap.

        May have a default export, columns of the wrapper, lines, has declarations, line of the default or first export (0 for none).
        """
        source = self._text(self.entry)
        declares = exports = at = 0
        looks = 20 if b"export" in source else 0  # candidates for an export that are checked
        while (looks or not declares) and (at := source.find(b"port", at)) >= 0:  # only lines with import or export
            start, end = source.rfind(b"\n", 0, at) + 1, source.find(b"\n", at)
            at = len(source) if end < 0 else end
            line = source[start:at]
            if line.lstrip().startswith(_DECLARATIONS):
                declares = 1
            if looks and b"export" in line and any(part.lstrip().startswith(_EXPORTS) for part in line.split(b";")):
                quoted, default = _is_quoted(source, start), b" default" in line
                exports = exports if quoted or (exports and not default) else source.count(b"\n", 0, start) + 1
                looks = 0 if exports and default else looks - 1
        return [int(b"export" in source), len(self.wrap), source.count(b"\n") + 1, declares, exports]

    def message(self, limits: dict[str, int], facts: list[int]) -> bytes:
        """Return the message that starts a script: its limits, :meth:`facts`, modules and context."""
        bounds = ("result_bytes", "frame_bytes", "log_lines", "log_line_bytes", "log_bytes")
        numbers = [*(limits[name] for name in bounds), *facts]
        return b"%s\n%s\n%s\n%s" % (str(numbers).encode(), self.entry, self.names(), self.context)

    def resolve(self, base: bytes, wanted: bytes) -> bytes:
        """Return the name of a module relative to its importer; unchanged if the bundle does not have it.

        ``./x.js`` is also ``./x.ts`` or the script ``x``, and a folder or a library its index file.
        """
        self._asked = (base, wanted)
        if wanted.startswith((_GUARD, _COMPILE)) and not base.startswith((_COMPILE, _LIBRARY)):
            return b"./" + wanted  # missing: an image has them evaluated, and a script could tell
        return found(self._sources, base, wanted) or wanted

    def source(self, name: bytes) -> bytes | None:
        """Return the text of a module or of the glue; None, and an entry in :attr:`missing`, if the bundle does not have it.

        A snippet is wrapped in a function; an empty module is a newline, because the guest could not load it otherwise.
        """
        if name == _GUARD:
            return b"throw 7"
        if name.startswith(_COMPILE):
            return self._first() + b'import "%s"; import "lodger:%s"' % (_GUARD, name[len(_COMPILE) :])
        if name == _PACKAGES:
            return self._packages or None
        if name in _GLUE:
            if name == BEGIN:
                return self._text(name) or _GLUE[name]
            self._way = name
            return self._first() + _GLUE[name].replace(
                b"ENTRY", self.entry.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
            )
        if name not in self._sources:
            self._note_missing()
            return None
        source = self._text(name)
        if name == self.entry and self._way == b"lodger:body":
            if source.startswith(b"#!"):
                source = b"//" + source[2:]
            return self.wrap + source + _WRAP_END
        if name.endswith(b".json"):
            return json_module(source)
        return source or b"\n"

    def around(self, name: bytes, line: int, column: int) -> bytes | None:
        """Return the text around a place, as "COUNT TEXT" with the number of characters before it; None for a place that is not there."""
        lines = self._text(name).split(b"\n")
        if not 0 < line <= len(lines):
            return None
        above = b"".join(each + b"\n" for each in lines[max(line - _LINES_QUOTED, 0) : line - 1]).decode(
            "utf-8", "replace"
        )
        below = b"\n".join(lines[line - 1 : line + _LINES_QUOTED])[:_QUOTED].decode("utf-8", "replace")
        text, place = above + below, len(above) + max(column - 1, 0)
        start = max(place - _QUOTED_BEFORE, 0)
        return b"%d %s" % (place - start, text[start : place + _QUOTED_AFTER].replace("\0", " ").encode())

    def _first(self) -> bytes:
        """Return the import of the packages that are evaluated before the author's modules."""
        return b'import "%s"; ' % _PACKAGES if self._packages else b""

    def _note_missing(self) -> None:
        """Record file and line of the import that asked for a missing module."""
        importer, wanted = self._asked
        for number, line in enumerate(self._text(importer).split(b"\n"), 1):
            if wanted in line:
                self.missing = (importer, number)
                return
