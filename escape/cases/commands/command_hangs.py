"""Chapter I, classes 127 to 129 and 132: commands that never end, grow without end or recurse."""

from lodger.escape.evidence import where
from lodger.escape.modules import commands_of

_CHECKS = {"small_table": where("a table of at most a hundred thousand", lambda size: size <= 100_000)}

CASES = [*commands_of(__file__, checks=_CHECKS)]
