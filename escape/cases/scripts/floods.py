"""Class 24: inputs that are too large; with the tables of the file beside it."""

from lodger.escape.attack_files import cases_of
from lodger.escape.case import cases
from lodger.escape.evidence import ends_as
from lodger.sandbox.outcome import Outcome

_INPUTS = (
    ("text", "one long text", '{"action":{"id":"escape"},"x":"' + "x" * 70_000 + '"}'),
    ("wide", "characters of three bytes", '{"action":{"id":"escape"},"x":"' + "\u4e00" * 25_000 + '"}'),
    ("list", "a long list", '{"action":{"id":"escape"},"x":[' + "0," * 35_000 + "0]}"),
)

CASES = [
    *cases(
        "B24-input",
        "input_bytes",
        _INPUTS,
        lambda context: {"context": context},
        says="an input that is too large: {}",
        script="return 1;",
        expect=(Outcome.BAD_REQUEST,),
        seen=ends_as(Outcome.BAD_REQUEST),
        story="An input that is too large reaches no worker.",
        limits={"input_bytes": 65_536},
    ),
    *cases_of(__file__),
]
