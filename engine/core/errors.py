"""Errors that callers see, each with a code, what happened, why, and how to fix it.

One object is rendered by the command line, the HTTP API and the dashboard. How a *run* ended is never an
exception: see :class:`lodger.sandbox.outcome.Outcome`.
"""

from typing import Any


class InputError(ValueError):
    """What the caller gave cannot be used.

    Attributes:
        code: stable machine name, ``snake_case``.
        what: what happened, one sentence with the offending value.
        why: the rule that it breaks.
        fix: what to write instead.
        index: 0-based position of the mistake in the text given, when there is one.
        details: further machine-readable fields.
    """

    def __init__(
        self, code: str, what: str, *, why: str = "", fix: str = "", index: int | None = None, **details: Any
    ) -> None:
        super().__init__(what)
        self.code = code
        self.what = what
        self.why = why
        self.fix = fix
        self.index = index
        self.details = details

    def as_dict(self) -> dict[str, Any]:
        """Return the error as the object that ``--json`` and the API show."""
        body: dict[str, Any] = {"code": self.code, "message": self.what}
        if self.why:
            body["why"] = self.why
        if self.fix:
            body["fix"] = self.fix
        if self.index is not None:
            body["index"] = self.index
        return body | self.details


class NotFound(InputError):
    """The thing named is not there for this tenant; foreign and absent ids answer alike."""


class Conflict(InputError):
    """What was asked for contradicts what is stored now (a name taken, a revision moved on)."""


class Unavailable(RuntimeError):
    """The host lacks something that the request needs: a full disk, a file that is no database, a wall.

    Attributes are those of :class:`InputError`.
    """

    def __init__(self, code: str, what: str, *, why: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.code = code
        self.what = what
        self.why = why
        self.fix = fix

    def as_dict(self) -> dict[str, Any]:
        """Return the error as the object that ``--json`` and the API show."""
        body = {"code": self.code, "message": self.what, "why": self.why, "fix": self.fix}
        return {name: text for name, text in body.items() if text}


class Usage(Exception):
    """Wrong usage of the command line (exit 2): a missing file, an option that is not JSON."""

    def __init__(self, code: str, what: str, *, why: str = "", fix: str = "") -> None:
        super().__init__(what)
        self._body = {"code": code, "message": what, "why": why, "fix": fix}

    def as_dict(self) -> dict[str, Any]:
        """Return the error as the object that ``--json`` shows."""
        return {name: text for name, text in self._body.items() if text}
