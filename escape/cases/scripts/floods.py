"""Class 24: inputs that are too large; with the tables of the file beside it."""

from lodger.escape.attack_files import cases_of


def _given(value: str) -> dict[str, str]:
    """Return a script with an input that contains a JSON value."""
    return {"script": "return 1;", "context": f'{{"action":{{"id":"escape"}},"x":{value}}}'}


CASES = [*cases_of(__file__, given=_given)]
