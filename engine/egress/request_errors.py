"""Errors of requests. Scripts see one code for every refusal; the reason is for the operator's log."""

from collections.abc import Iterable


class NoAnswer(Exception):
    """A request was not sent, or got no response.

    Attributes:
        code: stable machine name, the script's.
        message: the script's sentence; the same for every reason of one code that concerns the network.
        reason: the cause, for the operator.
    """

    code = "fetch_failed"
    message = "the host cannot be reached, or its answer is not HTTP"

    def __init__(self, reason: str, message: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.message = message or self.message


class Refused(NoAnswer):
    """Not allowed: scheme, host, port or address, of the request or of a redirect; or a name that does not resolve."""

    code = "fetch_refused"
    message = (
        "this request is not allowed: the host's name does not resolve, or its address or port is not public; "
        "check its spelling, or ask the operator, whose log says which"
    )


class SecretRefused(Refused):
    """A secret is bound to other origins than the one that the request goes to.

    Args:
        name: of the secret, which the script has named.
        hosts: that the secret is bound to.
        origin: where it would have gone.
    """

    def __init__(self, name: str, hosts: Iterable[object], origin: object) -> None:
        bound = ", ".join(map(str, hosts)) or "no origin"
        said = f"the secret {name} may be sent to {bound}, not to {origin}"
        super().__init__(said, said)


class TooLate(NoAnswer):
    """No complete response within the time limit."""

    code = "fetch_timeout"
    message = "no complete answer came in time"


class TooLarge(NoAnswer):
    """More headers, bytes, or a higher compression ratio than a response may have."""

    code = "response_too_large"
    message = "the response is larger than its limit"

    @classmethod
    def than(cls, maximum: int) -> "TooLarge":
        """Return the error for a body of more than ``maximum`` bytes."""
        said = f"the body of the answer has more than {maximum} bytes, which are what the grant or the run's fetch_bytes leave: "
        return cls(
            f"more than {maximum} bytes", said + "ask for less, or for a grant with more, such as fetch:HOST,32MiB"
        )


class Cut(NoAnswer):
    """The connection or the protocol broke."""
