"""What is wrong with a rule."""

from lodger.engine.core.errors import InputError


class RuleInvalid(InputError):
    """The text is not a rule of its language; ``index`` is the 0-based position of the mistake."""


class RuleNeverFires(InputError):
    """The schedule has no slot before year 10000; ``why`` is the proof in words."""
