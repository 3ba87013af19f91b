"""Errors that callers see, each with a code, what happened, why, and how to fix it.

One object is rendered by the command line, the HTTP API and the dashboard. How a *run* ended is never an
exception: see :class:`lodger.sandbox.outcome.Outcome`.
"""

from collections.abc import Mapping
from typing import Any, Self

from lodger.sandbox.errors import SandboxError


class Explained(Exception):
    """An error whose texts stand in ``error_table.toml``.

    Attributes:
        code: stable machine name, ``snake_case``.
        what: what happened, one sentence with the offending value.
        why: the rule that it breaks.
        fix: what to write instead.
        index: 0-based position of the mistake in the text given, when there is one.
        details: further machine-readable fields.
    """

    def __init__(
        self,
        code: str,
        *,
        near: str | None = None,
        index: int | None = None,
        details: Mapping[str, Any] | None = None,
        **values: Any,
    ) -> None:
        """Make the error of a row of the table.

        Args:
            code: the row: a code, or ``code.cause``.
            near: the existing name that is most like an unknown one.
            index: position of the mistake.
            details: further fields.
            values: a value for each placeholder of the row.
        """
        from lodger.engine.core.error_table import texts  # only for errors

        what, why, fix = texts(code, values)
        super().__init__(what)
        self.code = code.partition(".")[0]
        self.what, self.why = what, why
        self.fix = f"did you mean {near}? {fix}" if near else fix
        self.index = index
        self.details: dict[str, Any] = dict(details or {})

    @classmethod
    def told(
        cls,
        code: str,
        what: str,
        why: str = "",
        fix: str = "",
        *,
        index: int | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> Self:
        """Return the error with the texts that a server or another error has given it."""
        error = cls.__new__(cls, what)
        error.code, error.what, error.why, error.fix = code, what, why, fix
        error.index, error.details = index, dict(details or {})
        return error

    @classmethod
    def of(cls, error: "Explained | SandboxError") -> Self:
        """Return an error of another kind as one of this kind, with the same code and texts."""
        return cls.told(error.code, error.what, error.why, error.fix)

    def as_dict(self) -> dict[str, Any]:
        """Return the error as the object that ``--json`` and the API show."""
        body = {"code": self.code, "message": self.what, "why": self.why, "fix": self.fix, "index": self.index}
        return {name: value for name, value in body.items() if value not in ("", None)} | self.details


class InputError(Explained, ValueError):
    """What the caller gave cannot be used."""


class NotFound(InputError):
    """The thing named is not there for this tenant; foreign and absent ids answer alike."""


class Conflict(InputError):
    """What was asked for contradicts what is stored now (a name taken, a revision moved on)."""


class Unavailable(Explained, RuntimeError):
    """The host lacks something that the request needs: a full disk, a file that is no database, a wall."""


class Usage(Explained):
    """Wrong usage of the command line (exit 2): a missing file, an option that is not JSON."""
