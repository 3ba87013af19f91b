"""Mistakes of the sandbox's caller, and hosts that lack a wall. How a script ended is an Outcome, never one of these."""


class SandboxError(Exception):
    """Something the caller must change: code, what, why, how to fix."""

    def __init__(self, code: str, what: str, *, why: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.code = code
        self.what = what
        self.why = why
        self.fix = fix

    def as_dict(self) -> dict[str, str]:
        """Give the error as the object that ``--json`` and the API show."""
        body = {"code": self.code, "message": self.what, "why": self.why, "fix": self.fix}
        return {name: text for name, text in body.items() if text}


class LimitInvalid(SandboxError, ValueError):
    """A limit outside its range, or of no known name."""


class WallUnavailable(SandboxError):
    """The host cannot raise a wall that the configuration demands."""


class ZygoteFailed(SandboxError):
    """The zygote did not come up; ``why`` carries its last words."""
