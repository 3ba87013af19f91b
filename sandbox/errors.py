"""Exceptions of the sandbox: wrong use by the caller, or a host without a required wall. A script's end is an Outcome instead."""


class SandboxError(Exception):
    """Base class: a code, what happened, why, and how to fix it."""

    def __init__(self, code: str, what: str, *, why: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.code = code
        self.what = what
        self.why = why
        self.fix = fix

    def as_dict(self) -> dict[str, str]:
        """Return the error as the object that ``--json`` and the API show."""
        body = {"code": self.code, "message": self.what, "why": self.why, "fix": self.fix}
        return {name: text for name, text in body.items() if text}


class LimitInvalid(SandboxError, ValueError):
    """A limit is outside its range, or its name is unknown."""


class WallUnavailable(SandboxError):
    """The host cannot raise a wall that the configuration requires."""


class ZygoteFailed(SandboxError):
    """The zygote did not start; ``why`` holds its last message."""
