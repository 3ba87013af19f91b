"""What stands on the engine's side of a worker whose own cost is measured."""

from lodger.sandbox.job import LogLine, Reply


class NoHost:
    """Answers every call with null and forgets every line."""

    async def call(self, name: str, arguments: str) -> Reply:
        """Answer null."""
        return Reply(True, "null")

    def log(self, line: LogLine) -> None:
        """Forget it."""
