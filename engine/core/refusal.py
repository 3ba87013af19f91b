"""Refusals of host calls as scripts see them: a stable code and a sentence, never Python text, SQL or a path."""

from collections.abc import Mapping
from typing import Any

from lodger.sandbox.outcome import Outcome


class CallRefused(Exception):
    """A refused host call; the script sees an error with this code and message and may go on.

    Attributes:
        code: stable machine name, ``snake_case``.
        message: one sentence for the author of the script. It may quote arguments of the script, nothing else.
        outcome: outcome of the attempt if the script does not catch the error; None stands for ``script_error``.
        details: JSON-able details for programs.
    """

    def __init__(
        self, code: str, message: str, *, outcome: Outcome | None = None, details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.outcome = outcome
        self.details = details


def bad_request(message: str) -> CallRefused:
    """Return the refusal of a wrong argument."""
    return CallRefused("bad_request", message)


def denied(message: str) -> CallRefused:
    """Return the refusal of a call that no grant allows."""
    return CallRefused("denied", message, outcome=Outcome.DENIED)


def not_found(what: str) -> CallRefused:
    """Return the one answer for ids that are absent, deleted or another tenant's."""
    return CallRefused("not_found", f"{what} has no such row")
